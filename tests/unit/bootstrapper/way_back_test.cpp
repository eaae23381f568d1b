// The way back from a set that the runtime would not have: what it leaves alone, and how it ends
// where there is none.

#include "k8s/types.hpp"
#include "reactors/bootstrapper/desired_set.hpp"
#include "reactors/bootstrapper/record.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/runtime.hpp"
#include "tests/unit/run.hpp"
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(way_back)

using bootstrapper::sources_of_set;

namespace {

const k8s::resource_type config_maps{{"", "v1", "ConfigMap"}, "configmaps", true};

struct generations {
  std::string pem = ca_pem();
  sources_of_set first = good_sources(pem);
  sources_of_set second = good_sources(pem, "2.0.0");
};

bootstrapper::sync_request nothing_valid() {
  return {.subject = subject, .invalid = "broken", .now = std::chrono::system_clock::now()};
}

}  // namespace

asio::awaitable<void> leaves_theirs(runtimes_world* w, generations all) {
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all.first));
  json::value theirs{{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", {{"name", "theirs"}, {"namespace", "kyma-system"}}},
                     {"data", {{"a", "theirs"}}}};
  const auto made = co_await w->api("skr")->create(config_maps, theirs, {.field_manager = "them"});
  BOOST_REQUIRE(made.has_value());
  all.second.manifests.text = manifests("2.0.0",
                                        "---\napiVersion: v1\nkind: ConfigMap\n"
                                        "metadata: {name: theirs, namespace: kyma-system}\n"
                                        "data: {a: ours}\n");
  w->faults["skr"] = {.refuse = 2, .only_path = "/deployments/"};  // after the dry run
  auto report = co_await w->must_sync("skr", request_for(all.second));
  BOOST_TEST(report.rolled_back);
  auto after = co_await w->get("skr", "ConfigMap", "theirs");
  BOOST_TEST_REQUIRE(after.is_object());
  BOOST_TEST(k8s::find_string(after, {"data", "a"}) == "theirs");
  // It is left alone from then on, too.
  report = co_await w->must_sync("skr", nothing_valid());
  BOOST_TEST(report.writes == 0U);
  co_await w->must_sync("skr", request_for(all.first));
  after = co_await w->get("skr", "ConfigMap", "theirs");
  BOOST_TEST_REQUIRE(after.is_object());
  BOOST_TEST(k8s::find_string(after, {"data", "a"}) == "theirs");
  const bool good = co_await w->has("skr", set_of(all.first), {});
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(what_a_refused_set_had_taken_over_of_others_is_theirs_again) {
  runtimes_world w;
  test::run(w.context, leaves_theirs(&w, {}));
}

/// The second set is refused, and the former one is not there to be put back.
asio::awaitable<void> loses_way_back(runtimes_world* w, const generations* all) {
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all->first));
  w->faults["skr"] = {.refuse = 2, .only_path = "/deployments/"};
  const auto digest = bootstrapper::short_digest(set_of(all->first).digest);
  const auto removed = co_await w->api("skr")->remove(
      secrets_type(), {"kyma-system", "rt-bootstrapper-sync-" + digest + "-0"});
  BOOST_REQUIRE(removed.has_value());
  const auto report = co_await w->must_sync("skr", request_for(all->second));
  BOOST_TEST(!report.rolled_back);
  BOOST_TEST(report.half_way);
  BOOST_TEST(report.refused.find("did not take it") != report.refused.npos, report.refused);
  BOOST_TEST(report.refused.find("can't be put back") != report.refused.npos, report.refused);
}

asio::awaitable<void> goes_on_forward(runtimes_world* w, generations all) {
  co_await loses_way_back(w, &all);
  auto corrected = all.second;
  corrected.pull_secret.object = pull_secret("corrected");
  const auto report = co_await w->must_sync("skr", request_for(corrected));
  BOOST_TEST(report.refused == "");
  const bool good = co_await w->has("skr", set_of(corrected), set_of(all.first));
  BOOST_TEST(good);
  const auto phase = co_await w->phase("skr");
  BOOST_TEST(phase == "settled");
}

BOOST_AUTO_TEST_CASE(where_there_is_no_way_back_a_corrected_set_comes_into_place) {
  runtimes_world w;
  test::run(w.context, goes_on_forward(&w, {}));
}

asio::awaitable<void> tries_again(runtimes_world* w, generations all) {
  co_await loses_way_back(w, &all);
  auto request = request_for(all.second);
  auto report = co_await w->must_sync("skr", request);
  BOOST_TEST(report.refused != "");
  BOOST_TEST(report.objects == 0U);
  request.now += std::chrono::hours(1);
  report = co_await w->must_sync("skr", request);
  BOOST_TEST(report.refused == "");
  const bool good = co_await w->has("skr", set_of(all.second), set_of(all.first));
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(where_there_is_no_way_back_the_refused_set_is_tried_again_in_time) {
  runtimes_world w;
  test::run(w.context, tries_again(&w, {}));
}

asio::awaitable<std::size_t> kept_secrets(runtimes_world* w) {
  const auto list = co_await w->api("skr")->list(secrets_type(), {.ns = "kyma-system"});
  BOOST_REQUIRE(list.has_value());
  std::size_t out = 0;
  for (const auto& one : list->at("items").as_array()) {
    out += k8s::key_of(one).name.starts_with("rt-bootstrapper-sync-") ? 1 : 0;
  }
  co_return out;
}

asio::awaitable<void> cleans_later(runtimes_world* w, generations all) {
  co_await w->add("skr");
  co_await w->must_sync("skr", request_for(all.first));
  // The new set's piece, the record twice, and then the removal of the former set's piece.
  w->faults["skr"] = {.refuse = 4, .only_path = "/secrets/rt-bootstrapper-sync-"};
  auto report = co_await w->must_sync("skr", request_for(all.second));
  BOOST_TEST_REQUIRE(w->faults["skr"].paths.size() >= 4U);
  BOOST_TEST(w->faults["skr"].paths[3].starts_with("delete "), w->faults["skr"].paths[3]);
  BOOST_TEST(report.refused == "");
  BOOST_TEST(!report.rolled_back);
  bool good = co_await w->has("skr", set_of(all.second), set_of(all.first));
  BOOST_TEST(good);
  auto left = co_await kept_secrets(w);
  BOOST_TEST(left == 3U);
  w->faults["skr"] = {};
  co_await w->must_sync("skr", request_for(all.second));
  left = co_await kept_secrets(w);
  BOOST_TEST(left == 2U);
  report = co_await w->must_sync("skr", request_for(all.second));
  BOOST_TEST(report.writes == 0U);
}

BOOST_AUTO_TEST_CASE(a_set_in_place_is_no_failure_because_the_former_one_can_not_be_removed) {
  runtimes_world w;
  test::run(w.context, cleans_later(&w, {}));
}

asio::awaitable<void> bounds_live(runtimes_world* w, generations all) {
  co_await w->add("skr");
  std::string many;
  for (int i = 0; i < 18; ++i) {
    const auto name = "large-" + std::to_string(i);
    many += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
            ", namespace: kyma-system}\n";
    json::value large{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", {{"name", name}, {"namespace", "kyma-system"}}},
                      {"data", {{"a", std::string(1'000'000, 'x')}}}};
    const auto made = co_await w->api("skr")->create(config_maps, std::move(large));
    BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  }
  all.first.manifests.text = manifests("1.0.0", many);
  w->faults["skr"] = {};
  const auto report = co_await w->must_sync("skr", request_for(all.first));
  BOOST_TEST(report.refused.find("is more than 16777216 bytes") != report.refused.npos,
             report.refused);
  BOOST_TEST(w->faults["skr"].seen == 0);
}

BOOST_AUTO_TEST_CASE(a_runtime_that_has_more_than_is_believed_is_refused) {
  runtimes_world w;
  test::run(w.context, bounds_live(&w, {}));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
