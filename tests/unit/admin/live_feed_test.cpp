#include "rw/reactors/admin/live_feed.hpp"

#include "rw/core/task_group.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include <map>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(live_feed)

namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

struct fake_source final : rw::admin::live_source {
  json::object state() override {
    ++passes;
    return {{"total", rows.size()}, {"phase", phase}};
  }
  void for_each_row(const visitor& visit) override {
    for (const auto& [name, value] : rows) visit(name, value);
  }
  json::object row(std::string_view name) override {
    ++rendered;
    return {{"kyma", name}, {"value", rows.at(std::string(name))}};
  }

  std::map<std::string, std::uint64_t> rows = {{"a", 1}, {"b", 2}};
  std::string phase = "settled";
  int passes = 0;
  int rendered = 0;
};

/// A client that receives the feed.
struct browser {
  explicit browser(std::unique_ptr<rw::http::body_source> from) : source(std::move(from)) {
    source->on_ready([this] { ++notified; });
  }

  /// Takes what waits for it, in pieces of `piece` bytes.
  std::string take(std::size_t piece = 64) {
    std::string out;
    std::string part;
    do {
      part.clear();
      source->read(part, piece);
      BOOST_TEST(part.size() <= piece);
      out += part;
    } while (!part.empty());
    return out;
  }

  std::unique_ptr<rw::http::body_source> source;
  int notified = 0;
};

struct environment {
  explicit environment(rw::admin::live_feed_options options = {}) : feed(make(options)) {
    tasks.spawn(feed->run());
    turn();
  }
  ~environment() {
    tasks.cancel();
    turn();
  }

  std::unique_ptr<rw::admin::live_feed> make(rw::admin::live_feed_options options) {
    return std::make_unique<rw::admin::live_feed>(context.get_executor(), clock, metrics, source,
                                                  options);
  }
  void turn() {
    context.restart();
    context.poll();
  }
  void pass(rw::core::duration time = 1s) {
    clock.advance(time);
    turn();
  }
  browser open() {
    browser made(feed->open());
    turn();
    return made;
  }
  double metric(const char* name) {
    const auto text = rw::core::expose(metrics);
    const auto at = text.find("\n" + std::string(name) + " ");
    return std::stod(text.substr(at + std::string(name).size() + 2));
  }

  boost::asio::io_context context;
  rw::core::manual_clock clock;
  rw::core::metrics metrics;
  fake_source source;
  rw::core::task_group tasks{context.get_executor(), [](std::exception_ptr) {}};
  std::unique_ptr<rw::admin::live_feed> feed;
};

json::object data_of(const std::string& event, std::string_view name) {
  const auto head = "event: " + std::string(name) + "\ndata: ";
  BOOST_REQUIRE_MESSAGE(event.starts_with(head), event);
  BOOST_REQUIRE_MESSAGE(event.ends_with("\n\n"), event);
  BOOST_TEST(event.find('\n', head.size()) == event.size() - 2);
  return json::parse(event.substr(head.size())).as_object();
}

}  // namespace

BOOST_AUTO_TEST_CASE(feed_sends_all_rows_first_and_then_those_that_changed) {
  environment env;
  auto viewer = env.open();
  const auto full = data_of(viewer.take(), "full");
  BOOST_TEST(json::serialize(full.at("rows")) ==
             R"([{"kyma":"a","value":1},{"kyma":"b","value":2}])");
  BOOST_TEST(full.at("total").to_number<int>() == 2);
  BOOST_TEST(full.contains("now"));
  env.source.rows = {{"b", 3}, {"c", 4}};
  BOOST_TEST(viewer.take() == "");
  env.pass();
  const auto update = data_of(viewer.take(), "update");
  BOOST_TEST(json::serialize(update.at("rows")) ==
             R"([{"kyma":"b","value":3},{"kyma":"c","value":4}])");
  BOOST_TEST(json::serialize(update.at("gone")) == R"(["a"])");
}

BOOST_AUTO_TEST_CASE(feed_sends_an_update_without_rows_if_nothing_changes_for_long) {
  environment env;
  auto viewer = env.open();
  viewer.take();
  for (int i = 0; i < 14; ++i) env.pass();
  BOOST_TEST(viewer.take() == "");
  env.pass();
  BOOST_TEST(data_of(viewer.take(), "update").at("rows").as_array().empty());
  env.pass();
  BOOST_TEST(viewer.take() == "");
  env.source.phase = "grace";
  env.pass();
  BOOST_TEST(data_of(viewer.take(), "update").at("phase").as_string() == "grace");
}

BOOST_AUTO_TEST_CASE(feed_does_nothing_without_viewers) {
  environment env;
  for (int i = 0; i < 5; ++i) env.pass();
  BOOST_TEST(env.source.passes == 0);
  {
    auto viewer = env.open();
    BOOST_TEST(env.source.passes == 1);
    BOOST_TEST(env.metric("rw_admin_viewers") == 1);
  }
  env.pass();
  BOOST_TEST(env.metric("rw_admin_viewers") == 0);
  const auto passes = env.source.passes;
  for (int i = 0; i < 5; ++i) env.pass();
  BOOST_TEST(env.source.passes == passes);
  auto next = env.open();
  BOOST_TEST(data_of(next.take(), "full").at("rows").as_array().size() == 2U);
}

BOOST_AUTO_TEST_CASE(feed_renders_a_frame_once_for_all_viewers) {
  environment env;
  auto first = env.open();
  auto second = env.open();
  auto third = env.open();
  env.pass();
  first.take();
  second.take();
  third.take();
  env.source.rendered = 0;
  env.source.rows["a"] = 7;
  env.pass();
  BOOST_TEST(env.source.rendered == 1);
  const auto text = first.take();
  BOOST_TEST(data_of(text, "update").at("rows").as_array().size() == 1U);
  BOOST_TEST(second.take() == text);
  BOOST_TEST(third.take() == text);
}

BOOST_AUTO_TEST_CASE(feed_rejects_more_viewers_than_allowed_until_one_leaves) {
  environment env({.viewers = 2});
  auto first = std::make_unique<browser>(env.feed->open());
  const browser second(env.feed->open());
  BOOST_TEST(!env.feed->open());
  BOOST_TEST(env.metric("rw_admin_viewers_rejected_total") == 1);
  first.reset();
  BOOST_TEST((env.feed->open() != nullptr));
}

BOOST_AUTO_TEST_CASE(viewer_that_read_nothing_for_longest_makes_room_for_another) {
  environment env({.keep_alive = 15s, .viewers = 3});
  auto oldest = env.open();
  auto silent = env.open();
  auto latest = env.open();
  for (int i = 0; i < 20; ++i) {
    env.source.rows["a"] = 100 + static_cast<std::uint64_t>(i);
    env.pass();
    oldest.take();
    latest.take();
  }
  auto fourth = env.open();
  BOOST_TEST_REQUIRE(fourth.source != nullptr);
  BOOST_TEST(env.metric("rw_admin_viewers") == 3);
  std::string rest;
  while (silent.source->read(rest, 1000) == rw::http::body_source::state::more) {
  }
  BOOST_TEST((silent.source->read(rest, 1000) == rw::http::body_source::state::end));
  BOOST_TEST((oldest.source->read(rest, 1000) == rw::http::body_source::state::pending));
  // One at a time: viewers that all read do not chase one another.
  BOOST_TEST(!env.feed->open());
  env.pass(14s);
  BOOST_TEST(!env.feed->open());
  oldest.take();
  latest.take();
  fourth.take();
  env.pass(2s);
  BOOST_TEST((env.feed->open() != nullptr));
}

BOOST_AUTO_TEST_CASE(slow_viewer_gets_all_anew_in_place_of_what_it_missed) {
  environment env({.pending_frames = 3});
  auto slow = env.open();
  auto quick = env.open();
  env.pass();
  quick.take();
  std::string begun;
  slow.source->read(begun, 10);  // of the first frame
  for (std::uint64_t i = 0; i < 20; ++i) {
    env.source.rows["a"] = 100 + i;
    env.pass();
    BOOST_TEST(data_of(quick.take(), "update").at("rows").as_array().size() == 1U);
  }
  BOOST_TEST(env.metric("rw_admin_dropped_frames_total") > 0);
  BOOST_TEST(data_of(begun + slow.take(), "full").at("rows").as_array().size() == 2U);
  env.pass();
  const auto full = data_of(slow.take(), "full");
  BOOST_TEST(full.at("rows").at(0).at("value").to_number<int>() == 119);
}

BOOST_AUTO_TEST_CASE(viewer_may_outlive_the_feed) {
  environment env;
  auto viewer = env.open();
  env.tasks.cancel();
  env.turn();
  env.feed.reset();
  BOOST_TEST(!viewer.take().empty());
  BOOST_TEST(viewer.take().empty());
}

BOOST_AUTO_TEST_SUITE_END()
