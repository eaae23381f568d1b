// What the next reconcile would write, and that it is what the reconcile then writes.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <set>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(preview)

using test::eventually;

namespace {

const boost::unit_test::label kube("kube");
const k8s::object_key skr_kyma{"kcp-system", "skr"};

std::set<std::string> names_of(const pass_preview& of) {
  std::set<std::string> out;
  for (const auto& each : of.writes) out.insert(each.type.gvk.kind + " " + each.key.name);
  return out;
}

/// A reconcile that is no dry run writes the objects of the preview, and no others.
asio::awaitable<void> expect_written(world* w, std::set<std::string> expected) {
  *w->is_dry = false;
  w->installer->requeue(skr_kyma);
  const bool written = co_await eventually([&] {
    const auto* const changes = w->installer->changes(skr_kyma);
    return changes != nullptr &&
           std::set<std::string>(changes->begin(), changes->end()) == expected;
  });
  BOOST_TEST(written);
}

asio::awaitable<void> previews_changes(world* w) {
  co_await w->begin_with_runtime();
  auto got = co_await w->installer->preview(skr_kyma);
  BOOST_TEST(got.error == "");
  BOOST_TEST(got.writes.empty());
  *w->is_dry = true;  // so that nothing is repaired
  const k8s::object_key service{"kyma-system", "skr-webhook-metrics"};
  const auto removed = co_await w->api("skr").remove(services, service);
  BOOST_REQUIRE(removed.has_value());
  auto present = test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  present.at("webhooks").as_array().at(0).as_object()["timeoutSeconds"] = 7;
  present = test::required(co_await w->api("skr").update(webhook_configurations, present));
  got = co_await w->installer->preview(skr_kyma);
  BOOST_TEST(got.error == "");
  BOOST_TEST(
      (names_of(got) == std::set<std::string>{"Service skr-webhook-metrics",
                                              "ValidatingWebhookConfiguration skr-webhook"}));
  for (const auto& each : got.writes) {
    BOOST_TEST(each.live.is_null() == (each.key == service));
    BOOST_TEST(each.next.is_object());
    BOOST_TEST(!each.next.at("metadata").as_object().contains("managedFields"));
    if (each.key == service) continue;
    BOOST_TEST(each.live.at("webhooks").at(0).at("timeoutSeconds") == 7);
    BOOST_TEST(each.next.at("webhooks").at(0).at("timeoutSeconds") == 5);
  }
  // Nothing was written.
  const auto after =
      test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  BOOST_TEST(k8s::resource_version_of(after) == k8s::resource_version_of(present));
  const auto missing = co_await w->api("skr").get(services, service);
  BOOST_TEST(missing.has_error());
  co_await expect_written(w, names_of(got));
}

/// Dry runs do not see that the namespace would have been created before.
asio::awaitable<void> previews_installation(world* w) {
  co_await w->begin();
  co_await w->add_any_runtime();
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  *w->is_dry = true;
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  const bool known = co_await eventually([w] { return w->tracker.find(skr_kyma) != nullptr; });
  BOOST_REQUIRE(known);
  const auto got = co_await w->installer->preview(skr_kyma);
  BOOST_TEST(got.error == "");
  auto names = names_of(got);
  const auto ns = co_await w->api("skr").get(namespaces_type(), {{}, std::string(skr_namespace)});
  BOOST_TEST(names.erase("Namespace kyma-system") == (ns ? 0U : 1U));
  BOOST_TEST(names.contains("Deployment skr-webhook"));
  BOOST_TEST(names.contains("Secret skr-webhook-tls"));
  for (const auto& each : got.writes) BOOST_TEST(each.live.is_null());
  co_await expect_written(w, names);
}

asio::awaitable<void> previews_what_waits(world* w) {
  co_await w->begin_with_runtime();
  auto got = co_await w->installer->preview({"kcp-system", "nope"});
  BOOST_TEST(got.writes.empty());
  co_await w->merge(kymas_type(), skr_kyma, {{"metadata", {{"labels", {{skip_label, "true"}}}}}});
  const bool left = co_await eventually([w] {
    const auto* const state = w->tracker.find(skr_kyma);
    return state != nullptr && state->scope == cluster_scope::left_alone;
  });
  BOOST_REQUIRE(left);
  got = co_await w->installer->preview(skr_kyma);
  BOOST_TEST(got.writes.empty());
  BOOST_TEST_REQUIRE(got.waits.size() == 1U);
  BOOST_TEST(got.waits.front().find("skip-reconciliation") != std::string::npos);
}

/// What the informer has may be old.
asio::awaitable<void> previews_the_kyma_as_it_is(world* w) {
  co_await w->begin_with_runtime();
  w->server.faults("kcp").decide = [](const std::string& verb, const std::string& path) {
    const bool fails = verb == "list" && path.ends_with("/kymas");
    return k8s::devserver::fault{.status = fails ? 403U : 0U};
  };
  const auto got = co_await w->installer->preview(skr_kyma);
  BOOST_TEST(got.error.find("kymas") != std::string::npos, got.error);
}

asio::awaitable<void> previews_unreachable(world* w) {
  co_await w->begin_with_runtime();
  w->on_request = [](const std::string& cluster, const std::string&, const std::string&) {
    return k8s::devserver::fault{.status = cluster == "skr" ? 401U : 0U};
  };
  const auto got = co_await w->installer->preview(skr_kyma);
  BOOST_TEST(got.error.find("the runtime is unreachable: ") == 0U, got.error);
  BOOST_TEST(got.writes.empty());
  w->on_request = {};
}

std::set<std::string> kcp_names_of(const pass_preview& of) {
  return names_of({.writes = of.kcp_writes});
}

asio::awaitable<void> previews_removal(world* w) {
  w->releases = false;  // so that the deleted Kyma stays
  co_await w->begin_with_runtime();
  *w->is_dry = true;
  test::required(co_await w->api("kcp").remove(kymas_type(), skr_kyma));
  auto got = co_await w->installer->preview(skr_kyma);
  BOOST_TEST(got.error == "");
  const auto all = names_of(got);
  BOOST_TEST(all.contains("Deployment skr-webhook"));
  BOOST_TEST((kcp_names_of(got) == std::set<std::string>{"Kyma skr", "Secret skr"}));
  const auto& kyma = got.kcp_writes.back();
  BOOST_TEST(k8s::has_finalizer(kyma.live, "operator.kyma-project.io/runtime-watcher"));
  BOOST_TEST(!k8s::has_finalizer(kyma.next, "operator.kyma-project.io/runtime-watcher"));
  // A runtime that refuses, or hangs: what was found until then is there, and KCP waits.
  k8s::devserver::fault fault{.status = 403};
  w->on_request = [&](const std::string& cluster, const std::string& verb,
                      const std::string& path) {
    const bool hit = cluster == "skr" && verb == "delete" && path.find("/secrets/") != path.npos;
    return hit ? fault : k8s::devserver::fault();
  };
  got = co_await w->installer->preview(skr_kyma);
  BOOST_TEST(got.error.find("secrets") != std::string::npos, got.error);
  BOOST_TEST(names_of(got).contains("ValidatingWebhookConfiguration skr-webhook"));
  BOOST_TEST(got.kcp_writes.empty());
  fault = {.latency = std::chrono::minutes(1)};
  got = co_await w->installer->preview(skr_kyma, std::chrono::milliseconds(500));
  BOOST_TEST(got.error == "the runtime has not answered all requests within 15 s");
  BOOST_TEST(names_of(got).contains("ValidatingWebhookConfiguration skr-webhook"));
  BOOST_TEST(got.kcp_writes.empty());
  w->on_request = {};
  const auto after = test::required(co_await w->api("kcp").get(kymas_type(), skr_kyma));
  BOOST_TEST(k8s::has_finalizer(after, "operator.kyma-project.io/runtime-watcher"));
}

}  // namespace

BOOST_AUTO_TEST_CASE(preview_of_a_removal_has_the_writes_to_kcp_and_what_was_found) {
  world w(quick_options());
  test::run(w.context, previews_removal(&w));
}

BOOST_AUTO_TEST_CASE(preview_has_the_writes_of_the_next_reconcile, *kube) {
  world w(quick_options());
  test::run(w.context, previews_changes(&w));
}

BOOST_AUTO_TEST_CASE(preview_of_an_empty_runtime_has_the_installation, *kube) {
  world w(quick_options());
  test::run(w.context, previews_installation(&w));
}

BOOST_AUTO_TEST_CASE(preview_says_why_nothing_is_written) {
  world w(quick_options());
  test::run(w.context, previews_what_waits(&w));
}

BOOST_AUTO_TEST_CASE(preview_reads_the_kyma_from_kcp) {
  world w(quick_options());
  test::run(w.context, previews_the_kyma_as_it_is(&w));
}

BOOST_AUTO_TEST_CASE(preview_of_an_unreachable_runtime_says_so) {
  world w(quick_options());
  test::run(w.context, previews_unreachable(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
