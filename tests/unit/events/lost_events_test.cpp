// What becomes of events that are accepted and cannot be sent on, and of reviews that give no
// event.

#include "rw/reactors/events/admission.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "review_text.hpp"
#include "tests/unit/manual_clock.hpp"
#include <malloc.h>
#include <stdexcept>
#include <string>

BOOST_AUTO_TEST_SUITE(lost_events)

namespace {

using namespace rw::admission;

/// A webhook without a server: its handler is called as a server calls it.
struct direct {
  explicit direct(std::size_t capacity, event_observer on_event = {})
      : events(capacity),
        hook({.wait = std::chrono::seconds(10), .on_event = std::move(on_event)}, events, clock,
             log, metrics) {}

  boost::asio::awaitable<void> review(std::string body = review_text().text(),
                                      std::string target = "/validate/klm") {
    request.clear();
    response.clear();
    request.method = "POST";
    request.target = std::move(target);
    request.body = std::move(body);
    request.peer.address = {boost::asio::ip::make_address("10.1.2.3"), 4711};
    return hook.handle(request, response);
  }

  /// The same where the answer needs no wait.
  void review_at_once(std::string body = review_text().text(),
                      std::string target = "/validate/klm") {
    BOOST_TEST(!review(std::move(body), std::move(target)).valid());
  }

  double metric(const std::string& series) const {
    const auto text = rw::core::expose(metrics);
    const auto line = '\n' + series + ' ';
    const auto at = text.find(line);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + line.size()));
  }
  double overflows() const { return metric("rw_admission_overflow_total"); }

  bool logged(const std::string& part) const { return lines.find(part) != std::string::npos; }

  std::string lines;
  rw::core::manual_clock clock;
  rw::core::metrics metrics;
  rw::core::logger log{rw::core::log_level::debug,
                       [this](std::string_view line) { lines += line; }};
  rw::core::channel<rw::watch_event> events;
  rw::http::request request;
  rw::http::response response;
  webhook hook;
};

struct full : direct {
  full() : direct(1) {
    review_at_once();
    BOOST_TEST(overflows() == 0);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(event_is_counted_when_its_connection_ends_before_the_wait_begins) {
  full f;
  {
    const auto rest = f.review();
    BOOST_TEST(rest.valid());
  }
  BOOST_TEST(f.overflows() == 1);
  BOOST_TEST(f.logged("event dropped"));
  BOOST_TEST(f.logged(R"("manager":"klm")"));
  BOOST_TEST(f.logged(R"("peer":"10.1.2.3")"));
}

BOOST_AUTO_TEST_CASE(event_is_counted_once_when_its_connection_is_cancelled) {
  for (const bool before_start : {true, false}) {
    full f;
    boost::asio::io_context context;
    boost::asio::cancellation_signal cancel;
    boost::asio::co_spawn(
        context, f.review(),
        boost::asio::bind_cancellation_slot(cancel.slot(), [](std::exception_ptr) {}));
    if (!before_start) context.poll();
    cancel.emit(boost::asio::cancellation_type::terminal);
    context.restart();
    context.run();
    BOOST_TEST(f.overflows() == 1, "cancelled before its start: " << before_start);
  }
}

BOOST_AUTO_TEST_CASE(event_is_counted_when_its_execution_context_is_destroyed) {
  full f;
  {
    boost::asio::io_context context;
    boost::asio::co_spawn(context, f.review(), [](std::exception_ptr) {});
    context.poll();
  }
  BOOST_TEST(f.overflows() == 1);
}

BOOST_AUTO_TEST_CASE(event_that_finds_room_late_is_not_counted_as_lost) {
  full f;
  boost::asio::io_context context;
  boost::asio::co_spawn(context, f.review(), [](std::exception_ptr) {});
  context.poll();
  BOOST_TEST(f.events.try_receive().has_value());
  context.restart();
  context.poll();
  BOOST_TEST(f.events.try_receive().has_value());
  BOOST_TEST(f.overflows() == 0);
  BOOST_TEST(f.response.body.find("warnings") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(event_that_finds_no_room_in_its_time_is_counted_and_the_write_allowed) {
  full f;
  boost::asio::io_context context;
  bool done = false;
  boost::asio::co_spawn(context, f.review(), [&](std::exception_ptr) { done = true; });
  context.poll();
  f.clock.advance(std::chrono::milliseconds(9'999));
  context.restart();
  context.poll();
  BOOST_TEST(!done);
  f.clock.advance(std::chrono::milliseconds(1));
  context.restart();
  context.poll();
  BOOST_TEST(done);
  BOOST_TEST(f.overflows() == 1);
  BOOST_TEST(f.response.status == 200u);
  BOOST_TEST(f.response.body.find(R"("warnings":[)") != std::string::npos);
  BOOST_TEST(f.events.try_receive().has_value());
  BOOST_TEST(!f.events.try_receive().has_value());
}

BOOST_AUTO_TEST_CASE(event_of_a_closed_channel_is_counted_and_the_write_allowed) {
  direct f(1);
  f.events.close();
  boost::asio::io_context context;
  boost::asio::co_spawn(context, f.review(), [](std::exception_ptr) {});
  context.poll();
  BOOST_TEST(f.overflows() == 1);
  BOOST_TEST(f.response.status == 200u);
  BOOST_TEST(f.response.body.find(R"("warnings":[)") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(observer_that_throws_changes_nothing_and_is_logged) {
  direct f(1, [](const rw::watch_event&) { throw std::runtime_error("out of ideas"); });
  BOOST_CHECK_NO_THROW(f.review_at_once());
  BOOST_TEST(f.response.status == 200u);
  BOOST_TEST(f.events.try_receive().has_value());
  BOOST_TEST(f.logged("out of ideas"));
}

BOOST_AUTO_TEST_CASE(refusal_is_logged_with_its_peer_and_path) {
  direct f(1);
  f.review_at_once("nonsense");
  BOOST_TEST(f.response.status == 400u);
  BOOST_TEST(f.logged(R"("peer":"10.1.2.3")"), f.lines);
  BOOST_TEST(f.logged(R"("path":"/validate/klm")"), f.lines);
  f.lines.clear();
  f.review_at_once(review_text().text(), "/" + std::string(10'000, 'x'));
  BOOST_TEST(f.response.status == 404u);
  BOOST_TEST(!f.lines.empty());
  BOOST_TEST(f.lines.size() < 1000u);
}

BOOST_AUTO_TEST_CASE(change_without_a_name_is_counted_as_missing_and_logged) {
  direct f(1);
  review_text review;
  review.name = review.object = review.old_object = std::nullopt;
  f.review_at_once(review.text());
  BOOST_TEST(f.response.status == 200u);
  BOOST_TEST(f.metric(R"(rw_admission_reviews_total{verdict="unidentified"})") == 1);
  BOOST_TEST(f.metric(R"(rw_admission_unidentified_total{reason="missing"})") == 1);
  BOOST_TEST(f.metric(R"(rw_admission_unidentified_total{reason="too_long"})") == 0);
  BOOST_TEST(f.logged(R"("manager":"klm")"), f.lines);
}

BOOST_AUTO_TEST_CASE(names_of_3_mib_are_unidentified_counted_logged_and_not_kept) {
  direct f(100);
  const std::string giant = '"' + std::string(3u << 20, 'n') + '"';
  const auto used = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  f.review_at_once();
  f.events.try_receive();
  const auto before = used();
  for (int i = 0; i < 30; ++i) {
    review_text review;
    review.object = review_text::watched(R"({"a":1})", {}, R"({"name":)" + giant + "}");
    f.review_at_once(review.text());
    BOOST_TEST(f.response.status == 200u);
    BOOST_TEST(f.response.body.find(R"("allowed":true)") != std::string::npos);
  }
  f.request.clear();
  f.request.body = std::string();
  f.request.body.shrink_to_fit();
  BOOST_TEST(f.events.size() == 0u);
  BOOST_TEST(used() < before + (1u << 20));
  BOOST_TEST(f.metric(R"(rw_admission_reviews_total{verdict="unidentified"})") == 30);
  BOOST_TEST(f.metric(R"(rw_admission_unidentified_total{reason="too_long"})") == 30);
  BOOST_TEST(f.logged(R"("manager":"klm")"));
  BOOST_TEST(f.lines.size() < 10'000u);
}

BOOST_AUTO_TEST_SUITE_END()
