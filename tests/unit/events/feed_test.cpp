// Resources that come and go, on an API server in simulated time.

#include "rw/reactors/events/observation.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/simulated.hpp"
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace rw::observation_test {
BOOST_AUTO_TEST_SUITE(feed)

using namespace std::chrono_literals;

namespace {

namespace asio = boost::asio;
namespace json = boost::json;

const k8s::resource_type widgets{{"example.com", "v1", "Widget"}, "widgets", true};

managed_watch watch_of(std::string version) {
  return {"klm", {"example.com", std::move(version), "widgets"}, "spec", {}};
}

json::object version_of(const std::string& name, bool stored) {
  return {{"name", name},
          {"served", true},
          {"storage", stored},
          {"schema",
           {{"openAPIV3Schema",
             {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}}}}};
}

json::value definition(const std::string& plural, const std::string& kind, bool with_v1 = true) {
  json::array versions{version_of("v2", true)};
  if (with_v1) versions.push_back(version_of("v1", false));
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", plural + ".example.com"}}},
          {"spec",
           {{"group", "example.com"},
            {"scope", "Namespaced"},
            {"names",
             {{"plural", plural},
              {"singular", plural.substr(0, plural.size() - 1)},
              {"kind", kind},
              {"listKind", kind + "List"}}},
            {"versions", std::move(versions)}}}};
}

struct world : test::simulated {
  explicit world(const managed_watch& watch = watch_of("*")) : watched(watch) {
    add_cluster("skr");
    on_request = [this](const std::string&, const std::string&, const std::string& path) {
      k8s::devserver::fault fault;
      const bool cut_off =
          away && path.find("namespaces") == std::string::npos && path.ends_with("/widgets");
      if (cut_off && !drops) fault.status = 503;
      fault.drop = cut_off && drops;
      if (!failing.empty() && path == failing) fault.status = 503;
      return fault;
    };
    managers.replace(known_managers({watched}));
    finish(make_objects());
    under_test.emplace(
        context.get_executor(), rw::observation::observation_options{}, reviews,
        rw::observation::observation_environment{clock, log, numbers, core::make_random_source(),
                                                 idle, objects, &api("skr"), &managers});
    tasks.spawn(under_test->run());
    eventually([this] { return lines("resource observed") == 1; }, "the resource is observed");
    BOOST_TEST(next() == "started");
  }
  ~world() override { finish(close()); }

  asio::awaitable<void> make_objects() {
    co_await define_kind("widgets", "Widget");
    co_await make("a");
  }
  asio::awaitable<void> define_kind(std::string plural, std::string kind) {
    co_await create("skr", definition(plural, kind), test::definitions);
  }
  asio::awaitable<void> serve_v2_alone() {
    auto versions = definition("widgets", "Widget", false).at("spec").at("versions");
    co_await must(api("skr").patch(test::definitions, {"", "widgets.example.com"},
                                   k8s::patch_type::merge,
                                   {{"spec", {{"versions", std::move(versions)}}}}));
  }
  asio::awaitable<void> make(std::string name) {
    auto object = test::object_of(widgets, "default", name);
    object.as_object()["spec"] = {{"value", 1}};
    co_await create("skr", std::move(object), widgets);
  }
  /// The watch ends, and no other one begins.
  void cut_off() {
    away = true;
    server.drop_connections();
    pass(1s);
  }
  void remove_definition() {
    finish(remove("skr", test::definitions, {"", "widgets.example.com"}));
    away = false;
  }
  /// The next change's object, "" if there is none, which is delivered.
  std::string next() {
    pass(1s);
    if (auto adopted = objects.adopt()) changes = adopted;
    const auto change = changes ? objects.take(*changes, false) : std::nullopt;
    if (!change) return resync();
    objects.told(*changes, change->event, clock.now());
    return change->event.watched.name;
  }

  /// The one that is due is taken; "" if none is.
  std::string resync() {
    if (!changes || !objects.resync_due(*changes, false, clock.now())) return "";
    const auto reason = objects.begin_resync(*changes, false);
    objects.end_resync(
        *changes, dispatch::resync_account::outcome::taken, [] { return 0U; }, clock.now());
    return std::string(to_string(reason));
  }

  const managed_watch watched;
  bool away = false;
  bool drops = false;   ///< `away`: without an answer
  std::string failing;  ///< this path
  managers_in_use managers;
  core::channel<watch_event> reviews{64};
  dispatch::delivery objects{{}};
  std::shared_ptr<dispatch::delivery::queue> changes;
  std::unique_ptr<core::transport> plain = core::make_plain_transport();
  dispatch::dispatcher idle{
      context.get_executor(),
      {},
      {clock, watchdog, *plain, log, numbers, core::make_random_source(), objects}};
  std::optional<rw::observation::observation> under_test;
};

}  // namespace

BOOST_AUTO_TEST_CASE(objects_of_a_deleted_definition_are_told_as_deleted_after_two_proofs) {
  world w;
  w.cut_off();
  w.remove_definition();
  const auto begin = w.clock.now();
  w.eventually([&] { return w.objects.waiting() > 0; }, "the deletion is told");
  BOOST_TEST((w.clock.now() - begin >= 30s));
  // The first proof comes with a retry, within 30 s, and the second 30 s after it.
  BOOST_TEST((w.clock.now() - begin <= 62s));
  BOOST_TEST(w.next() == "a");
  const auto absent = w.under_test->report_of(w.watched);
  BOOST_TEST((absent.state == watch_state::live), "no object of it can be missed");
  BOOST_TEST(absent.live_since.has_value());
  BOOST_TEST(absent.reason == "the API server does not serve watches of it");
  w.pass(5min);
  BOOST_TEST((w.under_test->report_of(w.watched) == absent));
  BOOST_TEST(w.next() == "watch-back");
  BOOST_TEST(w.next() == "");
  w.finish(w.make_objects());
  w.eventually([&] { return w.lines("resource observed") == 2; }, "it is observed again");
  BOOST_TEST(w.next() == "a");
  const auto live = w.under_test->report_of(w.watched);
  BOOST_TEST((live.state == watch_state::live));
  BOOST_TEST(live.reason == "");
  BOOST_TEST((*live.live_since > *absent.live_since));
}

BOOST_AUTO_TEST_CASE(review_ends_the_pause_of_a_feed_whose_server_is_back) {
  world w;
  w.drops = true;
  w.cut_off();
  w.pass(75s);
  BOOST_TEST((w.under_test->report_of(w.watched).state != watch_state::live));
  w.away = false;
  for (int i = 0; i < 3; ++i) {
    watch_event review;
    review.manager = "klm";
    review.gvk = widgets.gvk;
    review.watched = {"default", "reviewed"};
    BOOST_REQUIRE((w.reviews.try_send(std::move(review)) == core::send_status::sent));
    w.pass(1s);
  }
  BOOST_TEST((w.under_test->report_of(w.watched).state == watch_state::live));
}

BOOST_AUTO_TEST_CASE(objects_of_a_deleted_definition_are_told_where_its_group_remains) {
  world w;
  w.finish(w.define_kind("gadgets", "Gadget"));
  w.cut_off();
  w.remove_definition();
  w.eventually([&] { return w.objects.waiting() > 0; }, "the deletion is told");
  BOOST_TEST(w.next() == "a");
}

BOOST_AUTO_TEST_CASE(unreadable_discovery_tells_nothing) {
  for (const auto* path : {"/apis", "/apis/example.com/v1", "/apis/example.com/v2"}) {
    world w;
    w.finish(w.define_kind("gadgets", "Gadget"));
    w.cut_off();
    w.failing = path;
    w.remove_definition();
    w.pass(5min);
    BOOST_TEST(w.next() == "", "unreadable: " << path);
    w.failing.clear();
    w.eventually([&] { return w.objects.waiting() > 0; }, "the deletion is told");
  }
}

BOOST_AUTO_TEST_CASE(resource_that_is_missing_in_its_version_alone_tells_nothing) {
  world w(watch_of("v1"));
  w.cut_off();
  w.finish(w.serve_v2_alone());
  w.away = false;
  w.pass(5min);
  BOOST_TEST(w.next() == "");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::observation_test
