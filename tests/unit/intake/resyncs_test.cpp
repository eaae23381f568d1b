#include "rw/reactors/intake/listener.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/http/host.hpp"
#include "tests/unit/http/wire.hpp"
#include "tests/unit/manual_clock.hpp"
#include "tests/unit/tls/pki.hpp"
#include <atomic>
#include <optional>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(resyncs)

namespace {

using namespace rw::listener;
using namespace rw::http::test;
using namespace rw::tls::test;
using rw::resync_reason;

constexpr std::string_view events_path = "/v2/klm/events";
constexpr int in_front = rw::listener::listener::channel_capacity + 1;  // outside of the queue

std::string pod(const std::string& name) {
  return R"({"watched":{"Namespace":"n","Name":")" + name +
         R"("},"watchedGvk":{"version":"v1","kind":"Pod"}})";
}

std::string pods(int count, int first = 0) {
  std::string all = "[";
  for (int i = 0; i < count; ++i) all += (i > 0 ? "," : "") + pod(std::to_string(first + i));
  return all + "]";
}

std::string forwarded(const std::string& certificate) {
  std::string out = "x-forwarded-client-cert: Cert=\"";
  for (const char c : certificate) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += code;
  }
  return out + "\"\r\n";
}

listener_options taking() {
  listener_options options;
  options.address = {boost::asio::ip::address_v4::loopback(), 0};
  options.component = "klm";
  options.resyncs = true;
  return options;
}

/// A listener whose time stands still, and two runtimes.
struct fixture {
  explicit fixture(listener_options options = taking())
      : made(register_component(here.executor(), std::move(options),
                                {.clock = clock, .log = here.log, .metrics = here.metrics})) {
    here.spawn(made.runnable->run());
  }
  ~fixture() { here.stop(); }

  answer send(std::string_view target, std::string_view body, std::string_view fields) {
    wire client(made.runnable->address());
    return ask(client, post(target, body, fields));
  }
  answer resync(const std::string& reason) { return resync(reason, sender); }
  answer resync(const std::string& reason, const std::string& from) {
    return send(events_path, "[]", from + "watch-resync: " + reason + "\r\n");
  }
  std::optional<received_event> next() {
    std::optional<received_event> one;
    eventually([&] { return (one = made.events->try_receive()).has_value(); });
    return one;
  }
  /// Nothing is in the channel, and nothing is on its way there.
  bool is_quiet() {
    here.on_thread([] {});
    return !made.events->try_receive();
  }
  void check_next(const std::string& runtime, resync_reason reason) {
    const auto got = next();
    BOOST_TEST_REQUIRE(got.has_value());
    BOOST_TEST(got->runtime_id == runtime);
    BOOST_TEST((got->resync == reason));
    BOOST_TEST((got->event == rw::watch_event{.manager = "klm", .gvk = {}, .watched = {}}));
  }
  double counted(const std::string& outcome) {
    return here.metric("rw_listener_resyncs_total{outcome=\"" + outcome + "\"}");
  }

  host here;
  rw::core::manual_clock clock;
  const std::string sender = forwarded(the_pki().client.certificate);
  const std::string other = forwarded(
      good(the_pki().ca.issue({.common_name = "runtime-2", .client_auth = true})).certificate);
  registration made;
};

}  // namespace

BOOST_AUTO_TEST_CASE(resync_arrives_with_its_runtime_and_reason) {
  fixture f;
  const auto got = f.resync("watch-back");
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.says("watch-resync: taken\r\n"));
  BOOST_TEST(got.says("watch-event-batch: "));
  f.check_next("runtime-1", resync_reason::watch_back);
  BOOST_TEST(f.counted("handed_over") == 1);
  BOOST_TEST(f.counted("merged") == 0);
}

BOOST_AUTO_TEST_CASE(responses_to_events_offer_to_take_resyncs) {
  fixture f;
  BOOST_TEST(f.send("/v2/klm/event", pod("a"), f.sender).says("watch-resync: 1\r\n"));
  BOOST_TEST(f.send(events_path, pods(2), f.sender).says("watch-resync: 1\r\n"));
  BOOST_TEST(f.send(events_path, "[]", f.sender).says("watch-resync: 1\r\n"));
  const auto in_part = f.send(events_path, "[17," + pod("b") + "]", f.sender);
  BOOST_TEST(in_part.status == 207u);
  BOOST_TEST(in_part.says("watch-resync: 1\r\n"));
  for (int i = 0; i < 4; ++i) {
    const auto got = f.next();
    BOOST_TEST_REQUIRE(got.has_value());
    BOOST_TEST(!got->resync);
  }
}

BOOST_AUTO_TEST_CASE(listener_whose_host_did_not_opt_in_responds_404_and_offers_nothing) {
  auto options = taking();
  options.resyncs = false;
  fixture f(options);
  const auto got = f.resync("dropped");
  BOOST_TEST(got.status == 404u);
  BOOST_TEST(!got.says("watch-resync"));
  BOOST_TEST(!f.send("/v2/klm/event", pod("a"), f.sender).says("watch-resync"));
  BOOST_TEST(f.send(events_path, "[]", f.sender).status == 200u);
  BOOST_TEST(f.next()->event.watched.name == "a");
  BOOST_TEST(f.is_quiet());
}

BOOST_AUTO_TEST_CASE(header_of_a_request_with_events_is_ignored) {
  fixture f;
  const auto fields = f.sender + "watch-resync: dropped\r\n";
  BOOST_TEST(f.send(events_path, pods(1), fields).says("watch-resync: 1\r\n"));
  BOOST_TEST(f.send("/v2/klm/event", pod("1"), fields).says("watch-resync: 1\r\n"));
  BOOST_TEST(f.send("/v2/klm/event", "[]", fields).status == 400u);
  for (int i = 0; i < 2; ++i) BOOST_TEST(!f.next()->resync);
  BOOST_TEST(f.is_quiet());
}

BOOST_AUTO_TEST_CASE(verification_is_called_without_an_object) {
  auto options = taking();
  std::atomic<bool> accepts = false;
  std::atomic<int> without_object = 0;
  options.verify = [&](const rw::http::request&, const rw::watch_event& event,
                       const event_sender& from) {
    if (event == rw::watch_event{.manager = "klm", .gvk = {}, .watched = {}}) ++without_object;
    return accepts && from.runtime_id == "runtime-1";
  };
  fixture f(options);
  const auto got = f.resync("started");
  BOOST_TEST(got.status == 403u);
  BOOST_TEST(!got.says("watch-resync"));
  BOOST_TEST(f.is_quiet());
  accepts = true;
  BOOST_TEST(f.resync("started").status == 200u);
  f.check_next("runtime-1", resync_reason::started);
  BOOST_TEST(without_object == 2);
}

BOOST_AUTO_TEST_CASE(verification_that_throws_is_an_error_of_the_server) {
  auto options = taking();
  options.verify = [](const rw::http::request&, const rw::watch_event&,
                      const event_sender&) -> bool { throw std::runtime_error("no index"); };
  fixture f(options);
  BOOST_TEST(f.resync("started").status == 500u);
  BOOST_TEST(f.is_quiet());
}

BOOST_AUTO_TEST_CASE(resync_is_refused_as_an_event_is) {
  auto options = taking();
  std::atomic<bool> leads = true;
  options.takes_events = [&] { return leads.load(); };
  fixture f(options);
  BOOST_TEST(f.resync("started", "").status == 401u);
  leads = false;
  const auto got = f.resync("started");
  BOOST_TEST(got.status == 503u);
  BOOST_TEST(got.says("retry-after: 1\r\n"));
  leads = true;
  BOOST_TEST(f.is_quiet());
  f.made.events->close();
  BOOST_TEST(f.resync("started").status == 503u);
}

BOOST_AUTO_TEST_CASE(unknown_reason_is_read_as_dropped_and_malformed_one_is_rejected) {
  fixture f;
  for (const auto& reason : {std::string("Dropped"), std::string("a b"), std::string(33, 'a'),
                             std::string("a,b"), std::string("1"), std::string()}) {
    BOOST_TEST(f.resync(reason).status == 400u, reason);
  }
  BOOST_TEST(f.is_quiet());
  BOOST_TEST(f.resync("a-later-one").status == 200u);
  f.check_next("runtime-1", resync_reason::dropped);
}

BOOST_AUTO_TEST_CASE(resyncs_of_a_runtime_are_handed_over_once_a_minute) {
  fixture f;
  f.resync("started");
  f.check_next("runtime-1", resync_reason::started);
  for (const auto* reason : {"started", "dropped", "watch-back"}) {
    BOOST_TEST(f.resync(reason).says("watch-resync: taken\r\n"));
  }
  BOOST_TEST(f.counted("merged") == 2);
  f.clock.advance(std::chrono::seconds(59));
  BOOST_TEST(f.is_quiet());
  f.clock.advance(std::chrono::seconds(1));
  f.check_next("runtime-1", resync_reason::dropped);
  BOOST_TEST(f.counted("handed_over") == 2);
  f.clock.advance(std::chrono::seconds(60));
  BOOST_TEST(f.is_quiet());
  f.resync("started");
  f.check_next("runtime-1", resync_reason::started);
}

BOOST_AUTO_TEST_CASE(runtime_that_sends_many_delays_neither_another_nor_its_own_events) {
  fixture f;
  for (int i = 0; i < 20; ++i) BOOST_TEST(f.resync("dropped").status == 200u);
  f.check_next("runtime-1", resync_reason::dropped);
  f.resync("started", f.other);
  f.check_next("runtime-2", resync_reason::started);
  f.send("/v2/klm/event", pod("a"), f.sender);
  BOOST_TEST(f.next()->event.watched.name == "a");
}

BOOST_AUTO_TEST_CASE(resync_has_room_when_the_queue_is_full) {
  auto options = taking();
  options.runtime_events = 2;
  options.events = 6;
  fixture f(options);
  for (int i = 0; i < in_front; ++i) f.send(events_path, pods(1, i), f.sender);
  f.send(events_path, pods(2, in_front), f.sender);
  BOOST_TEST(f.send("/v2/klm/event", pod("x"), f.sender).status == 503u);
  BOOST_TEST(f.resync("watch-back").status == 200u);
  BOOST_TEST(f.resync("started").status == 200u);
  BOOST_TEST(f.resync("started", f.other).status == 200u);
  for (int i = 0; i < in_front; ++i) BOOST_TEST(!f.next()->resync);
  // They take turns with the events that wait.
  f.check_next("runtime-1", resync_reason::watch_back);
  BOOST_TEST(!f.next()->resync);
  f.check_next("runtime-2", resync_reason::started);
  BOOST_TEST(!f.next()->resync);
  BOOST_TEST(f.is_quiet());
}

BOOST_AUTO_TEST_CASE(drained_listener_hands_over_resyncs_before_their_minute_has_ended) {
  fixture f;
  f.resync("started");
  f.check_next("runtime-1", resync_reason::started);
  f.resync("watch-back");
  f.resync("started", f.other);
  f.check_next("runtime-2", resync_reason::started);
  f.made.runnable->drain();
  f.check_next("runtime-1", resync_reason::watch_back);
  BOOST_TEST(eventually([&] { return f.made.events->is_closed(); }));
  BOOST_TEST(f.here.metric("rw_listener_abandoned_events_total") == 0);
}

BOOST_AUTO_TEST_CASE(cancelled_listener_hands_over_resyncs_as_far_as_the_channel_has_room) {
  fixture f;
  f.resync("started");
  f.check_next("runtime-1", resync_reason::started);
  f.resync("watch-back");
  f.here.stop();
  f.check_next("runtime-1", resync_reason::watch_back);
  BOOST_TEST(f.made.runnable->pending() == 0u);
}

BOOST_AUTO_TEST_CASE(resync_without_room_at_cancellation_is_counted_as_abandoned) {
  fixture f;
  for (int i = 0; i < in_front; ++i) f.send(events_path, pods(1, i), f.sender);
  f.resync("watch-back");
  f.here.stop();
  BOOST_TEST(f.made.runnable->pending() == 2u);  // and the event that waits for room
  BOOST_TEST(f.here.metric("rw_listener_abandoned_events_total") == 2);
}

BOOST_AUTO_TEST_SUITE_END()
