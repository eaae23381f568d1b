// What a runtime says of itself is not believed: whoever may write Secrets there may not have more
// done than that.

#include "k8s/types.hpp"
#include "reactors/bootstrapper/record.hpp"
#include "reactors/bootstrapper/runtime_store.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/runtime.hpp"
#include "tests/unit/run.hpp"
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(trust)

using bootstrapper::known_set;
using bootstrapper::sync_record;

namespace {

const k8s::resource_type config_maps{{"", "v1", "ConfigMap"}, "configmaps", true};
const k8s::object_key record_key{"kyma-system", "rt-bootstrapper-sync-record"};

known_set planted_set() {
  json::value object{{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", {{"name", "planted"}, {"namespace", "kyma-system"}}},
                     {"data", {{"a", "b"}}}};
  known_set out{.version = "1.0.0"};
  out.items.push_back({bootstrapper::part::manifests, std::move(object), config_maps});
  out.digest = bootstrapper::digest_of(out.items);
  return out;
}

/// A set and a record, as somebody writes them who knows all but the key.
asio::awaitable<void> plant(runtimes_world* w, sync_record record, std::string key) {
  bootstrapper::writer with(w->api("skr"), "somebody", {});
  bootstrapper::runtime_store store(with, "kyma-system", std::move(key), subject);
  const auto kept = co_await store.keep(planted_set());
  BOOST_REQUIRE(kept.has_value());
  const auto written = co_await store.write(std::move(record));
  BOOST_REQUIRE_MESSAGE(written.has_value(), written.error().message);
}

bootstrapper::sync_request nothing_valid() {
  return {.subject = subject, .invalid = "broken", .now = std::chrono::system_clock::now()};
}

asio::awaitable<void> add_bystander(runtimes_world* w) {
  json::value object{{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", {{"name", "bystander"}, {"namespace", "kyma-system"}}}};
  const auto made =
      co_await w->api("skr")->create(config_maps, object, {.field_manager = w->how.field_manager});
  BOOST_REQUIRE(made.has_value());
}

}  // namespace

asio::awaitable<void> ignores_planted(runtimes_world* w, sync_record::phase phase) {
  const auto all = good_sources(ca_pem());
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all));
  co_await add_bystander(w);
  const auto digest = planted_set().digest;
  sync_record record{.now = phase,
                     .good = digest,
                     .good_parts = 1,
                     .target = digest,
                     .target_parts = 1,
                     .since = std::chrono::system_clock::now()};
  record.inventory.push_back({config_maps, {"kyma-system", "bystander"}, {}});
  co_await plant(w, record, "a guess");
  auto report = co_await w->must_sync("skr", nothing_valid());
  BOOST_TEST(report.distrusted);
  BOOST_TEST(report.writes == 0U);
  BOOST_TEST(report.refused == "broken");
  const auto gone = co_await bootstrapper::undeploy(w->api("skr"), &w->how, subject, {},
                                                    std::chrono::system_clock::now());
  BOOST_TEST(gone.has_error());
  report = co_await w->must_sync("skr", request_for(all));
  BOOST_TEST(report.distrusted);
  BOOST_TEST(report.refused == "");
  BOOST_TEST(!report.half_way);
  const auto planted = co_await w->get("skr", "ConfigMap", "planted");
  BOOST_TEST(planted.is_null());
  const auto bystander = co_await w->get("skr", "ConfigMap", "bystander");
  BOOST_TEST(bystander.is_object());
  const bool good = co_await w->has("skr", set_of(all), {});
  BOOST_TEST(good);
  // From then on the record is ours again.
  report = co_await w->must_sync("skr", request_for(all));
  BOOST_TEST(!report.distrusted);
  BOOST_TEST(report.writes == 0U);
}

BOOST_AUTO_TEST_CASE(a_planted_record_neither_brings_nor_removes_anything) {
  for (const auto phase : {sync_record::phase::settled, sync_record::phase::applying,
                           sync_record::phase::rolling_back, sync_record::phase::removing}) {
    BOOST_TEST_CONTEXT(to_string(phase)) {
      runtimes_world w;
      test::run(w.context, ignores_planted(&w, phase));
    }
  }
}

asio::awaitable<void> ignores_other_runtimes(runtimes_world* w) {
  const auto all = good_sources(ca_pem());
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all));
  auto theirs = nothing_valid();
  theirs.subject = "kcp-system/other";
  auto report = co_await w->must_sync("skr", theirs);
  BOOST_TEST(report.distrusted);
  BOOST_TEST(report.digest == "");
  report = co_await w->must_sync("skr", nothing_valid());
  BOOST_TEST(!report.distrusted);
  BOOST_TEST(report.digest == set_of(all).digest);
}

BOOST_AUTO_TEST_CASE(a_record_of_another_runtime_is_not_believed) {
  runtimes_world w;
  test::run(w.context, ignores_other_runtimes(&w));
}

asio::awaitable<void> ignores_damage(runtimes_world* w) {
  const auto all = good_sources(ca_pem());
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all));
  json::value change{{"data", {{"content", "e30="}}}};
  const auto done = co_await w->api("skr")->patch(secrets_type(), record_key,
                                                  k8s::patch_type::merge, std::move(change));
  BOOST_REQUIRE(done.has_value());
  auto report = co_await w->must_sync("skr", request_for(all));
  BOOST_TEST(report.distrusted);
  BOOST_TEST(report.digest == set_of(all).digest);
  report = co_await w->must_sync("skr", request_for(all));
  BOOST_TEST(report.writes == 0U);
}

BOOST_AUTO_TEST_CASE(a_damaged_record_is_written_anew_with_all_that_is_wanted) {
  runtimes_world w;
  test::run(w.context, ignores_damage(&w));
}

BOOST_AUTO_TEST_CASE(what_would_come_into_the_path_of_a_request_is_checked) {
  const auto with = [](const std::string& version, const std::string& plural) {
    json::value item{{"apiVersion", version}, {"kind", "A"},   {"resource", plural},
                     {"namespaced", true},    {"name", "one"}, {"namespace", "kyma-system"}};
    return bootstrapper::read_record(
               json::value{{"phase", "settled"}, {"inventory", json::array{std::move(item)}}})
        .has_value();
  };
  BOOST_TEST(with("v1", "configmaps"));
  BOOST_TEST(with("rbac.authorization.k8s.io/v1", "clusterroles"));
  for (const auto* bad : {"", "a/b", "a b", "as\r\nX: y", "..", "A", "-a", "a?x=y"}) {
    BOOST_TEST(!with("v1", bad), bad);
    BOOST_TEST(!with(bad + std::string("/v1/v1"), "as"), bad);
    BOOST_TEST(!with(std::string("example.com/") + bad, "as"), bad);
  }
  BOOST_TEST(!with("a..b/v1", "as"));
  BOOST_TEST(!with("a\r\nb/v1", "as"));
}

asio::awaitable<void> finds_key(runtimes_world* w) {
  co_await w->add("skr");
  const auto first = co_await bootstrapper::find_record_key(*w->api("skr"), "kyma-system");
  BOOST_REQUIRE_MESSAGE(first.has_value(), first.error().message);
  BOOST_TEST(first->size() == 32U);
  const auto again = co_await bootstrapper::find_record_key(*w->api("skr"), "kyma-system");
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST((*again == *first));
}

BOOST_AUTO_TEST_CASE(the_key_is_made_once_and_kept) {
  runtimes_world w;
  test::run(w.context, finds_key(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
