// The reactor on an API server: what it lists and watches, and what it sends.

#include "rw/reactors/events/observation.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/events/upstream.hpp"
#include "tests/unit/run.hpp"
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
  options.observer.list_pause = 20ms;
  options.retry_base = 5ms;
  options.retry_limit = 10ms;
  return options;
}

/// The reactor, on a cluster that it is restarted on as often as a test likes.
struct observed : test::environment {
  explicit observed(std::vector<std::string> protocols = {"h2", "http/1.1"},
                    std::chrono::milliseconds bookmarks = 50ms)
      : environment(
            {.server = {.protocols = std::move(protocols), .bookmark_interval = bookmarks}}) {
    add_cluster("skr");
    managers.replace(known_managers({leases}));
    upstream.name = "kcp";
    upstream.host = "127.0.0.1";
    upstream.port = gateway.address().port();
    tasks.spawn(gateway.run());
  }
  ~observed() override { shut_down(); }

  void begin() {
    under_test.reset();
    dispatcher.reset();
    reviews.emplace(64);
    objects.emplace(dispatch::delivery_options{.objects = limit});
    dispatch::dispatch_options sending;
    sending.upstream = upstream;
    sending.schedule.retry_base = 1ms;
    dispatcher.emplace(context.get_executor(), sending,
                       dispatch::dispatch_environment{clock, watchdog, *plain, log, numbers,
                                                      core::make_random_source(), *objects});
    under_test.emplace(
        context.get_executor(), options, *reviews,
        rw::observation::observation_environment{clock, log, numbers, core::make_random_source(),
                                                 *dispatcher, *objects, &api("skr"), &managers});
    running = 2;
    tasks.spawn(run_observation());
    tasks.spawn(run_dispatcher());
  }
  asio::awaitable<void> run_observation() {
    co_await under_test->run();
    --running;
  }
  asio::awaitable<void> run_dispatcher() {
    co_await dispatcher->run();
    --running;
  }
  /// Ends it as a pod that is stopped does.
  asio::awaitable<void> end() {
    reviews->close();
    const bool ended = co_await test::eventually([this] { return running == 0; });
    BOOST_TEST(ended);
  }
  /// Returns the name of the object of the next event that arrives.
  asio::awaitable<std::string> next() {
    const bool came = co_await test::eventually([this] { return kcp.got.size() > read; });
    BOOST_REQUIRE(came);
    const auto event = boost::json::parse(kcp.got.at(read++).body);
    co_return std::string(event.at("watched").at("Name").as_string());
  }
  std::size_t arrived() const { return kcp.got.size() - read; }
  double events_by(const std::string& cause) {
    return metric("rw_observation_events_total{cause=\"" + cause + "\"}");
  }
  asio::awaitable<void> until_live(double watches) {
    const bool live = co_await test::eventually(
        [this, watches] { return lines("resource observed") >= watches; });
    BOOST_TEST(live);
  }
  asio::awaitable<void> until_resyncs(std::vector<std::string> reasons) {
    const bool came =
        co_await test::eventually([&] { return kcp.resyncs.size() >= reasons.size(); });
    BOOST_TEST(came);
    BOOST_TEST(kcp.resyncs == reasons, boost::test_tools::per_element());
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
    watch_event event{"klm", {"coordination.k8s.io", "v1", "Lease"}, {"default", name}};
    const auto error = co_await reviews->send(std::move(event));
    BOOST_TEST(!error);
  }

  observation_options options = quick();
  std::size_t limit = 1000;
  managers_in_use managers;
  std::unique_ptr<core::transport> plain = core::make_plain_transport();
  dispatch::test::upstream kcp{context.get_executor()};
  http::server gateway{context.get_executor(),
                       {"kcp", {asio::ip::address_v4::loopback(), 0}, {}},
                       kcp,
                       {*plain, watchdog, log, numbers}};
  http::client_options upstream;
  std::optional<core::channel<watch_event>> reviews;
  std::optional<dispatch::delivery> objects;
  std::optional<dispatch::dispatcher> dispatcher;
  std::optional<rw::observation::observation> under_test;
  std::size_t read = 0;  ///< events
  int running = 0;
};

#define EXPECT_EVENT(of, name)               \
  {                                          \
    const auto came = co_await (of)->next(); \
    BOOST_TEST(came == (name));              \
  }

asio::awaitable<void> watches(observed* w) {
  co_await w->write("a", "1");
  w->begin();
  co_await w->until_live(1);
  co_await w->until_resyncs({"started"});
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
                          .state = watch_state::live,
                          .live_since = w->under_test->report_of(leases).live_since};
  BOOST_TEST(live.live_since.has_value());
  BOOST_TEST((w->under_test->report_of(leases) == live));
  BOOST_TEST(w->arrived() == 0U);
  co_await w->end();
}

asio::awaitable<void> knows_a_new_watcher_at_its_first_review(observed* w) {
  w->managers.replace(known_managers({{"klm", {"", "v1", "secrets"}, "spec", {}}}));
  w->begin();
  const bool ticked =
      co_await test::eventually([w] { return w->lines("Watcher not observed") == 1; });
  BOOST_TEST(ticked);
  w->managers.replace(known_managers({leases}));
  co_await w->review("gone");
  EXPECT_EVENT(w, "gone");
  co_await w->until_live(1);
  co_await w->until_resyncs({"started", "watcher-changed"});
  co_await w->end();
}

/// 5,000 pods that start must not send 5,000 times all objects.
/// Three operators watch the same; one Watcher is edited, one comes, one goes.
asio::awaitable<void> edits(observed* w) {
  const auto of = [](const char* manager) {
    auto watch = leases;
    watch.manager = manager;
    return watch;
  };
  for (int i = 0; i < 20; ++i) co_await w->write("n" + std::to_string(i), "1");
  w->managers.replace(known_managers({of("a"), of("b"), of("c")}));
  w->begin();
  co_await w->until_live(1);
  co_await w->until_resyncs({"started", "started", "started"});
  auto edited = of("a");
  edited.labels = {{"watched", "yes"}};
  w->managers.replace(known_managers({edited, of("b"), of("d")}));
  co_await w->until_live(3);
  co_await w->until_resyncs(
      {"started", "started", "started", "watcher-changed", "watcher-changed"});
  co_await w->write("n3", "2");
  std::set<std::string> told{co_await w->next(), co_await w->next()};
  BOOST_TEST((told == std::set<std::string>{"n3"}));
  co_await w->end();
  BOOST_TEST(w->kcp.resyncs.size() == 5U);
}

asio::awaitable<void> restarts(observed* w) {
  for (int i = 0; i < 50; ++i) co_await w->write("n" + std::to_string(i), "1");
  w->begin();
  co_await w->until_live(1);
  co_await w->until_resyncs({"started"});
  co_await w->end();
  co_await w->write("n1", "2");
  co_await w->erase("n2");
  w->begin();
  co_await w->until_live(2);
  co_await w->until_resyncs({"started", "started"});
  BOOST_TEST(w->arrived() == 0U);
  co_await w->erase("n3");
  EXPECT_EVENT(w, "n3");
  co_await w->end();
}

/// As the Go listener: 404 to what it does not know, 200 to events.
asio::awaitable<void> resends(observed* w) {
  w->kcp.takes_resyncs = false;
  w->kcp.script = [](const http::request& from, http::response& into) {
    if (from.target.ends_with("/events")) into.text(404, "not found");
  };
  for (const auto* name : {"a", "b"}) co_await w->write(name, "1");
  w->begin();
  co_await w->until_live(1);
  std::string probed;
  while (probed.empty()) {
    const bool came = co_await test::eventually([w] { return w->arrived() > 0; });
    BOOST_REQUIRE(came);
    const auto got = w->kcp.got.at(w->read++);
    if (got.body == "[]") continue;
    probed = std::string(boost::json::parse(got.body).at("watched").at("Name").as_string());
  }
  BOOST_TEST((probed == "a" || probed == "b"));
  co_await w->write("live", "1");
  EXPECT_EVENT(w, "live");
  BOOST_TEST(w->arrived() == 0U, "the others are not sent in the first minute");
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

/// etcd is restored without new versions: the watch resumes from one that is still to come.
asio::awaitable<void> tells_a_restored_store(observed* w) {
  int watches = 0;
  w->on_request = [&watches](const std::string&, const std::string& verb, const std::string&) {
    watches += verb == "watch" ? 1 : 0;
    return k8s::devserver::fault{};
  };
  w->begin();
  co_await w->until_live(1);
  for (const auto* name : {"changed", "deleted", "same"}) {
    co_await w->write(name, "1");
    EXPECT_EVENT(w, name);
  }
  const auto backup = w->server.back_up("skr");
  co_await w->write("changed", "2");
  EXPECT_EVENT(w, "changed");
  co_await w->erase("deleted");
  EXPECT_EVENT(w, "deleted");
  for (int i = 0; i < 50; ++i) {
    co_await w->write("created", std::to_string(i));
    EXPECT_EVENT(w, "created");
  }
  const int before = watches;
  w->server.restore("skr", *backup, true);
  const bool resumed = co_await test::eventually([&] { return watches > before; });
  BOOST_TEST(resumed);
  co_await w->write("neighbour", "1");
  BOOST_TEST(w->arrived() == 0U, "the watch is silent");
  const auto shown = core::time_point::clock::now();
  co_await w->write("same", "2");
  co_await w->review("same");
  std::set<std::string> names;
  while (names.size() < 5) {
    auto name = co_await w->next();
    names.insert(std::move(name));
  }
  BOOST_TEST((core::time_point::clock::now() - shown < 10s));
  const std::set<std::string> expected{"changed", "created", "deleted", "neighbour", "same"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  co_await w->write("latest", "1");
  auto name = co_await w->next();
  while (expected.contains(name)) name = co_await w->next();
  BOOST_TEST(name == "latest");
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
  BOOST_TEST(w->events_by("review") == 1);
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
  w->limit = 2;
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
  BOOST_TEST(w->lines("resource observed") == 2, "a watch that stays is not begun again");
  co_await w->end();
}

asio::awaitable<void> reports_unobserved_watches(observed* w) {
  auto any = leases;
  any.watched.plural = "*";
  w->managers.replace(known_managers({any, leases}));
  w->begin();
  co_await w->until_live(1);
  const auto report = w->under_test->report_of(any);
  BOOST_TEST((report.state == watch_state::unobserved));
  BOOST_TEST(report.reason == "wildcard");
  co_await w->end();
  w->options.watches = false;
  w->begin();
  BOOST_TEST((w->under_test->report_of(leases).state == watch_state::unobserved));
  co_await w->end();
}

asio::awaitable<void> sends_rejected_events_again(observed* w) {
  int rejections = 3;
  w->kcp.script = [&rejections](const http::request&, http::response& into) {
    if (rejections-- > 0) into.text(400, "not yet");
  };
  w->begin();
  co_await w->until_live(1);
  co_await w->write("a", "1");
  for (int i = 0; i < 4; ++i) EXPECT_EVENT(w, "a");
  const bool delivered = co_await test::eventually([w] { return w->objects->undelivered() == 0; });
  BOOST_TEST(delivered);
  co_await w->end();
}

asio::awaitable<void> flushes_at_the_end(observed* w) {
  w->options.observer.confirm_wait = 1h;
  w->managers.replace(known_managers());
  w->begin();
  co_await w->review("a");
  co_await w->review("b");
  w->reviews->close();
  EXPECT_EVENT(w, "a");
  EXPECT_EVENT(w, "b");
  co_await w->end();
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

BOOST_AUTO_TEST_CASE(restored_store_is_told_after_the_first_review_that_shows_it) {
  observed w({"h2"}, 1h);
  test::run(w.context, tells_a_restored_store(&w));
}

BOOST_AUTO_TEST_CASE(restored_store_is_told_over_http1_after_the_first_review_that_shows_it) {
  observed w({"http/1.1"}, 1h);
  test::run(w.context, tells_a_restored_store(&w));
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

BOOST_AUTO_TEST_CASE(watcher_that_comes_owes_its_operator_a_resync) {
  run(knows_a_new_watcher_at_its_first_review);
}

BOOST_AUTO_TEST_CASE(edit_of_a_watcher_tells_other_operators_nothing) {
  run(edits);
}

BOOST_AUTO_TEST_CASE(restart_is_told_by_one_resync_and_no_events) {
  run(restarts);
}

BOOST_AUTO_TEST_CASE(receiver_without_resyncs_is_judged_by_one_event) {
  run(resends);
}

BOOST_AUTO_TEST_CASE(unobserved_watcher_is_reported_with_its_reason) {
  run(reports_unobserved_watches);
}

BOOST_AUTO_TEST_CASE(rejected_event_is_sent_again) {
  run(sends_rejected_events_again);
}

BOOST_AUTO_TEST_CASE(accepted_reviews_are_sent_at_the_end) {
  run(flushes_at_the_end);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::observation_test
