// The reactor on an API server: what it lists and watches, and what it sends.

#include "reactors/observation/observation.hpp"

#include "k8s/objects/types.hpp"
#include "reactors/observation/ledger.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/run.hpp"
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rw::observation_test {
BOOST_AUTO_TEST_SUITE(observation)

using namespace std::chrono_literals;
using rw::observation::observation_options;

namespace {

namespace asio = boost::asio;

const managed_watch leases{"klm", {"coordination.k8s.io", "*", "leases"}, "spec", {}};
const managed_watch maps{"klm", {"", "v1", "configmaps"}, "spec", {{"watched", "yes"}}};

observation_options quick() {
  observation_options options;
  options.observer.settle = 1ms;
  options.observer.confirm_wait = 20ms;
  options.observer.loss_pause = 1ms;
  options.retry_base = 5ms;
  options.retry_limit = 10ms;
  return options;
}

/// The reactor, on a cluster that it is restarted on as often as a test likes.
struct observed : test::environment {
  observed() : environment({.server = {.bookmark_interval = 50ms}}) {
    std::string name = (std::filesystem::temp_directory_path() / "rw-observe-XXXXXX").string();
    directory = ::mkdtemp(name.data());
    add_cluster("skr");
    options.ledger = (directory / "ledger").string();
    managers.replace(known_managers({leases}));
  }
  ~observed() override {
    shut_down();
    std::filesystem::remove_all(directory);
  }

  void begin() {
    reviews.emplace(64);
    events.emplace(64);
    under_test.emplace(
        context.get_executor(), options, *reviews, *events,
        rw::observation::observation_environment{clock, log, numbers, core::make_random_source(),
                                                 &api("skr"), &managers});
    tasks.spawn(under_test->run());
  }
  /// Ends it as a pod that is stopped does.
  asio::awaitable<void> end() {
    reviews->close();
    const bool closed = co_await test::eventually([this] { return events->is_closed(); });
    BOOST_TEST(closed);
    co_await under_test->save();
  }
  /// Returns the name of the next event's object, and delivers it; "" if the channel was closed.
  asio::awaitable<std::string> next() {
    const auto until = core::time_point::clock::now() + test::patience;
    for (;;) {
      if (auto event = events->try_receive()) {
        if (event->mark != 0) under_test->delivered(*event, event->mark);
        marked = event->mark != 0;
        co_return event->watched.name;
      }
      BOOST_REQUIRE(core::time_point::clock::now() < until);
      if (events->is_closed()) co_return "";
      co_await test::turn();
    }
  }
  asio::awaitable<void> until_live(double watches) {
    const bool live = co_await test::eventually(
        [this, watches] { return lines("resource observed") >= watches; });
    BOOST_TEST(live);
  }
  asio::awaitable<void> write(std::string name, std::string holder) {
    auto lease = test::object_of(k8s::leases_type(), "default", name);
    lease.as_object()["spec"] = {{"holderIdentity", holder}};
    co_await must(api("skr").apply(k8s::leases_type(), std::move(lease),
                                   {.field_manager = "test", .force = true}));
  }
  asio::awaitable<void> erase(std::string name) {
    co_await remove("skr", k8s::leases_type(), {"default", name});
  }
  asio::awaitable<void> review(std::string name) {
    watch_event event{"klm", {"coordination.k8s.io", "v1", "Lease"}, {"default", name}, {}};
    const auto error = co_await reviews->send(std::move(event));
    BOOST_TEST(!error);
  }

  observation_options options = quick();
  managers_in_use managers;
  std::filesystem::path directory;
  std::optional<core::channel<watch_event>> reviews;
  std::optional<core::channel<watch_event>> events;
  std::optional<rw::observation::observation> under_test;
  bool marked = false;
};

#define EXPECT_EVENT(of, name)               \
  {                                          \
    const auto came = co_await (of)->next(); \
    BOOST_TEST(came == (name));              \
  }

asio::awaitable<void> watches(observed* w) {
  co_await w->write("a", "1");
  w->begin();
  EXPECT_EVENT(w, "a");
  BOOST_TEST(w->marked);
  co_await w->until_live(1);
  co_await w->write("a", "2");
  EXPECT_EVENT(w, "a");
  co_await w->write("b", "1");
  EXPECT_EVENT(w, "b");
  co_await w->erase("a");
  EXPECT_EVENT(w, "a");
  co_await w->end();
}

asio::awaitable<void> confirms(observed* w) {
  w->begin();
  BOOST_TEST((w->under_test->report_of(leases).state == watch_state::catching_up));
  co_await w->until_live(1);
  co_await w->review("never-written");
  const bool read = co_await test::eventually([w] {
    return w->metric("rw_observation_confirmations_total{result=\"not_persisted\"}") == 1;
  });
  BOOST_TEST(read);
  BOOST_TEST(w->under_test->statistics().not_persisted == 1U);
  const watch_report live{.manager = "klm",
                          .group = "coordination.k8s.io",
                          .resource = "leases",
                          .field = "spec",
                          .state = watch_state::live};
  BOOST_TEST((w->under_test->report_of(leases) == live));
  BOOST_TEST(w->events->size() == 0U);
  co_await w->end();
}

asio::awaitable<void> finds_what_a_watch_misses(observed* w) {
  // The first watch, a streaming list, fails, so that there is a list; the second is silent.
  int watches = 0;
  w->on_request = [&watches](const std::string&, const std::string& verb, const std::string&) {
    k8s::devserver::fault fault;
    if (verb != "watch") return fault;
    ++watches;
    fault.status = watches == 1 ? 400 : 0;
    fault.silent = watches == 2;
    return fault;
  };
  w->begin();
  co_await w->until_live(1);
  co_await w->write("a", "1");
  co_await w->review("a");
  EXPECT_EVENT(w, "a");
  BOOST_TEST(w->metric("rw_observation_confirmations_total{result=\"missed\"}") == 1);
  // The new watch is alive.
  co_await w->write("b", "1");
  EXPECT_EVENT(w, "b");
  co_await w->end();
  w->on_request = {};
}

asio::awaitable<void> goes_on_without_rights(observed* w) {
  unsigned status = 403;
  w->on_request = [&status](const std::string&, const std::string& verb, const std::string& path) {
    const bool lists = verb == "list" || verb == "watch";
    const bool refused = lists && path.find("leases") != std::string::npos;
    return k8s::devserver::fault{.status = refused ? status : 0};
  };
  w->begin();
  const bool given_up =
      co_await test::eventually([w] { return w->lines("resource not observed") == 1; });
  BOOST_TEST(given_up);
  const auto report = w->under_test->report_of(leases);
  BOOST_TEST((report.state == watch_state::unobserved));
  BOOST_TEST(!report.reason.empty());
  co_await w->review("a");
  EXPECT_EVENT(w, "a");
  BOOST_TEST(!w->marked);
  status = 0;
  co_await w->until_live(1);
  BOOST_TEST((w->under_test->report_of(leases).state == watch_state::live));
  BOOST_TEST(w->lines("resource not observed") == 1, "each reason is logged once");
  co_await w->end();
  w->on_request = {};
}

known_managers four_resources() {
  return known_managers({leases,
                         maps,
                         {"klm", {"", "v1", "services"}, "spec", {}},
                         {"klm", {"apps", "v1", "deployments"}, "spec", {}}});
}

asio::awaitable<void> lists_in_turns(observed* w) {
  std::vector<core::time_point> begun;
  w->on_request = [&begun](const std::string&, const std::string& verb, const std::string&) {
    k8s::devserver::fault fault;
    if (verb != "watch") return fault;
    begun.push_back(core::time_point::clock::now());
    fault.latency = 100ms;
    return fault;
  };
  w->managers.replace(four_resources());
  w->begin();
  co_await w->until_live(4);
  BOOST_REQUIRE(begun.size() == 4U);
  BOOST_TEST((begun[2] - begun[0] >= 100ms));
  BOOST_TEST((begun[3] - begun[1] >= 100ms));
  co_await w->end();
  w->on_request = {};
}

asio::awaitable<void> leaves_the_turn_to_others(observed* w) {
  std::vector<std::string> paths;
  w->on_request = [&paths](const std::string&, const std::string& verb, const std::string& path) {
    k8s::devserver::fault fault;
    if (verb != "watch" && verb != "list") return fault;
    paths.push_back(path);
    fault.status = paths.size() <= 2 ? 503 : 0;
    return fault;
  };
  w->managers.replace(four_resources());
  w->begin();
  co_await w->until_live(4);
  paths.resize(4);
  BOOST_TEST(std::set<std::string>(paths.begin(), paths.end()).size() == 4U,
             "the two that failed come after the others");
  co_await w->end();
  w->on_request = {};
}

asio::awaitable<void> bounds_objects(observed* w) {
  w->options.observer.objects = 2;
  for (const auto* name : {"a", "b", "c"}) co_await w->write(name, "1");
  w->begin();
  const bool given_up = co_await test::eventually(
      [w] { return w->lines("there are more objects than may be observed") == 1; });
  BOOST_TEST(given_up);
  BOOST_TEST(w->under_test->report_of(leases).reason ==
             "there are more objects than may be observed");
  co_await w->erase("c");
  co_await w->until_live(1);
  co_await w->end();
}

asio::awaitable<void> reloads_managers(observed* w) {
  w->begin();
  co_await w->until_live(1);
  w->managers.replace(known_managers({leases, maps}));
  co_await w->until_live(2);
  co_await w->write("a", "1");
  EXPECT_EVENT(w, "a");
  auto map =
      test::object_of(k8s::resource_type{{"", "v1", "ConfigMap"}, "configmaps"}, "default", "map");
  map.as_object()["metadata"].as_object()["labels"] = {{"watched", "yes"}};
  co_await w->create("skr", map, {{"", "v1", "ConfigMap"}, "configmaps"});
  EXPECT_EVENT(w, "map");
  w->managers.replace(known_managers({maps}));
  const bool removed =
      co_await test::eventually([w] { return w->metric("rw_observation_objects") == 1; });
  BOOST_TEST(removed);
  // Leases are no longer observed.
  co_await w->review("a");
  EXPECT_EVENT(w, "a");
  BOOST_TEST(!w->marked);
  BOOST_TEST(w->lines("resource observed") == 2, "a watch that stays is not begun again");
  co_await w->end();
}

asio::awaitable<void> compares_with_its_ledger(observed* w) {
  for (const auto* name : {"changed", "deleted", "same"}) co_await w->write(name, "1");
  w->begin();
  for (int i = 0; i < 3; ++i) co_await w->next();
  co_await w->until_live(1);
  BOOST_TEST(w->under_test->statistics().ledger == "missing");
  BOOST_TEST(w->under_test->statistics().resyncs == 3U);
  co_await w->end();

  co_await w->write("changed", "2");
  co_await w->write("created", "1");
  co_await w->erase("deleted");
  w->begin();
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    const auto name = co_await w->next();
    names.push_back(name);
  }
  std::ranges::sort(names);
  const std::vector<std::string> expected{"changed", "created", "deleted"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  co_await w->until_live(2);
  BOOST_TEST(w->events->size() == 0U);
  BOOST_TEST(w->under_test->statistics().ledger == "read");
  co_await w->end();

  BOOST_TEST(rw::observation::write_ledger(w->options.ledger, "damaged") == "");
  w->begin();
  for (int i = 0; i < 3; ++i) co_await w->next();
  BOOST_TEST(w->lines("ledger not usable") == 1);
  BOOST_TEST(w->under_test->statistics().ledger == "missing");
  co_await w->end();
}

asio::awaitable<void> reports_unobserved_watches(observed* w) {
  auto any = leases;
  any.watched.plural = "*";
  w->options.ledger = {};
  w->managers.replace(known_managers({any, leases}));
  w->begin();
  co_await w->until_live(1);
  const auto report = w->under_test->report_of(any);
  BOOST_TEST((report.state == watch_state::unobserved));
  BOOST_TEST(report.reason == "wildcard");
  BOOST_TEST(w->under_test->statistics().ledger == "none");
  co_await w->end();
  w->options.observer.source = rw::observation::event_source::webhook;
  w->begin();
  BOOST_TEST((w->under_test->report_of(leases).state == watch_state::unobserved));
  co_await w->end();
}

asio::awaitable<void> sends_lost_events_again(observed* w) {
  w->begin();
  co_await w->until_live(1);
  co_await w->write("a", "1");
  auto event = co_await w->events->receive();
  BOOST_REQUIRE(event.has_value());
  w->under_test->lost(*event, event->mark);
  EXPECT_EVENT(w, "a");
  co_await w->end();
}

asio::awaitable<void> flushes_at_the_end(observed* w) {
  w->options.observer.settle = 1h;
  w->options.observer.confirm_wait = 1h;
  w->managers.replace(known_managers());
  w->begin();
  co_await w->review("a");
  co_await w->review("b");
  w->reviews->close();
  EXPECT_EVENT(w, "a");
  EXPECT_EVENT(w, "b");
  EXPECT_EVENT(w, "");
}

void run(asio::awaitable<void> (*body)(observed*)) {
  observed w;
  test::run(w.context, body(&w));
}

}  // namespace

BOOST_AUTO_TEST_CASE(changes_of_watched_objects_are_sent) {
  run(watches);
}

BOOST_AUTO_TEST_CASE(write_that_was_not_persisted_is_counted) {
  run(confirms);
}

BOOST_AUTO_TEST_CASE(change_that_a_silent_watch_misses_is_read) {
  run(finds_what_a_watch_misses);
}

BOOST_AUTO_TEST_CASE(refused_list_leaves_the_reviews) {
  run(goes_on_without_rights);
}

BOOST_AUTO_TEST_CASE(two_lists_at_most_are_under_way) {
  run(lists_in_turns);
}

BOOST_AUTO_TEST_CASE(failed_list_leaves_its_turn_to_others) {
  run(leaves_the_turn_to_others);
}

BOOST_AUTO_TEST_CASE(resource_with_too_many_objects_is_not_observed) {
  run(bounds_objects);
}

BOOST_AUTO_TEST_CASE(managers_file_changes_while_running) {
  run(reloads_managers);
}

BOOST_AUTO_TEST_CASE(restart_sends_what_differs_from_the_ledger) {
  run(compares_with_its_ledger);
}

BOOST_AUTO_TEST_CASE(what_is_not_observed_is_reported_with_its_reason) {
  run(reports_unobserved_watches);
}

BOOST_AUTO_TEST_CASE(lost_event_is_sent_again) {
  run(sends_lost_events_again);
}

BOOST_AUTO_TEST_CASE(accepted_reviews_are_sent_at_the_end) {
  run(flushes_at_the_end);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::observation_test
