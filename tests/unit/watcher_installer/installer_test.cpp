// The installer against embedded API servers: a control plane and its runtimes.

#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/managers_file.hpp"
#include "rw/reactors/shared/watcher.hpp"
#include "rw/tls/trust_store.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include "tests/unit/watcher_installer/world.hpp"
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(installer)

using namespace std::chrono_literals;
using test::eventually;
using watcher_installer::installer_options;
using state = runtime_state;

namespace {

/// These tests run against a real API server as well.
const boost::unit_test::label kube("kube");

/// The manager that each webhook's path names.
std::set<std::string> managers(const json::value& of) {
  std::set<std::string> out;
  const auto* webhooks = k8s::find(of, {"webhooks"});
  if (webhooks == nullptr || !webhooks->is_array()) return out;
  for (const auto& one : webhooks->as_array()) {
    out.emplace(k8s::find_string(one, {"clientConfig", "service", "path"}));
  }
  return out;
}
std::function<bool(const json::value&)> has(std::set<std::string> wanted) {
  return [wanted = std::move(wanted)](const json::value& one) {
    return one.is_object() && managers(one) == wanted;
  };
}

/// A reconcile begins and ends.
asio::awaitable<void> one_pass(world* w, std::string kyma) {
  const auto before = w->passes();
  w->installer->requeue({"kcp-system", kyma});
  const bool passed = co_await eventually([w, before] { return w->passes() > before; });
  BOOST_REQUIRE(passed);
}

}  // namespace

asio::awaitable<void> installs(world* w) {
  co_await w->begin();
  co_await w->add_any_runtime();
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  const bool told = co_await w->until_event("skr", "WatcherNotReady", "NoPods");
  BOOST_TEST(told);
  BOOST_TEST(w->installer->count(state::not_ready) == 1U);
  BOOST_TEST((w->tracker.find({"kcp-system", "skr"}) != nullptr));
  const bool ready = co_await w->until_ready("skr");
  BOOST_TEST(ready);
  BOOST_TEST(w->installer->count(state::installed) == 1U);
  bool good = co_await w->until("skr", webhook_configurations, configuration,
                                has({"/validate/lifecycle-manager"}));
  BOOST_TEST(good);
  good = co_await w->until("skr", services, {"kyma-system", "skr-webhook-metrics"}, is_there);
  BOOST_TEST(good);
  good = co_await w->until("skr", secrets_type(), tls_secret, [w](const json::value& one) {
    return k8s::secret_data(one, "tls.crt") == w->certificates.certificate("skr");
  });
  BOOST_TEST(good);
  good = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, [](const json::value& one) {
    return k8s::has_finalizer(one, "operator.kyma-project.io/runtime-watcher");
  });
  BOOST_TEST(good);
  const auto* seen = w->tracker.find({"kcp-system", "skr"});
  BOOST_TEST_REQUIRE(seen != nullptr);
  BOOST_TEST_REQUIRE(seen->observed.has_value());
  BOOST_TEST(seen->observed->authorities.size() == 1U);
  BOOST_TEST(w->tracker.is_complete());
}

BOOST_AUTO_TEST_CASE(watcher_is_installed_on_the_runtime_of_a_new_kyma, *kube) {
  world w(quick_options());
  test::run(w.context, installs(&w));
}

asio::awaitable<void> settles(world* w) {
  const auto writes = [w] { return w->metric("rw_watcher_installer_writes_total"); };
  co_await w->begin_with_runtime();
  co_await one_pass(w, "skr");
  const auto before = writes();
  const auto asked = w->asked["skr"];
  BOOST_TEST(before > 0);
  for (int i = 0; i < 3; ++i) co_await one_pass(w, "skr");
  BOOST_TEST(writes() == before);
  BOOST_TEST(w->asked["skr"].writes == asked.writes);
  BOOST_TEST(w->asked["skr"].reads - asked.reads <= 4 * 15);
}

BOOST_AUTO_TEST_CASE(settled_runtime_costs_reads_only, *kube) {
  world w(quick_options());
  test::run(w.context, settles(&w));
}

/// Objects as another release has left them, whose digests have another form.
asio::awaitable<void> upgrades(world* w) {
  co_await w->begin_with_runtime();
  const std::string applied(watcher_installer::applied_annotation);
  const std::string content(watcher_installer::content_annotation);
  const auto before = co_await w->must(w->api("skr").get(deployments, deployment));
  json::object former;
  former[applied] = "8e1e86";
  former[content] = nullptr;
  const json::value change{{"metadata", {{"annotations", former}}}};
  const std::vector<std::pair<k8s::resource_type, k8s::object_key>> objects{
      {deployments, deployment}, {webhook_configurations, configuration}, {services, deployment}};
  co_await w->stop();
  for (const auto& [type, key] : objects) {
    co_await w->must(w->api("skr").patch(type, key, k8s::patch_type::merge, change));
  }
  co_await w->take_over(quick_options());
  for (const auto& [type, key] : objects) {
    const bool good = co_await w->until("skr", type, key, [&](const json::value& one) {
      return k8s::annotation(one, applied).size() == 32;
    });
    BOOST_TEST(good);
  }
  const auto after = co_await w->must(w->api("skr").get(deployments, deployment));
  BOOST_TEST(k8s::annotation(after, content) == k8s::annotation(before, content));
  // Its generation may change with the annotations; pods restart only if their template does.
  BOOST_TEST((after.at("spec").at("template") == before.at("spec").at("template")));
}

BOOST_AUTO_TEST_CASE(upgrade_to_another_form_of_digests_restarts_no_pod, *kube) {
  world w(quick_options());
  test::run(w.context, upgrades(&w));
}

/// Without a resync, which comes after an hour.
asio::awaitable<void> drifts(world* w) {
  co_await w->begin_with_runtime();
  json::value change = {{"spec", {{"replicas", 0}}}};
  auto done = co_await w->api("skr").patch(deployments, deployment, k8s::patch_type::merge, change);
  BOOST_REQUIRE(done.has_value());
  bool good = co_await w->until("skr", deployments, deployment, [](const json::value& one) {
    return *k8s::find(one, {"spec", "replicas"}) == 1;
  });
  BOOST_TEST(good);
  const std::vector<std::pair<k8s::resource_type, k8s::object_key>> essential = {
      {services, {"kyma-system", "skr-webhook"}},
      {secrets_type(), tls_secret},
      {deployments, deployment},
      {webhook_configurations, configuration}};
  for (const auto& [type, key] : essential) {
    done = co_await w->api("skr").remove(type, key);
    BOOST_REQUIRE(done.has_value());
    const auto uid = k8s::uid_of(*done);
    good = co_await w->until("skr", type, key, [uid](const json::value& one) {
      return is_there(one) && k8s::uid_of(one) != uid;
    });
    BOOST_TEST(good, type.plural);
  }
}

/// An hour of two events each second.
asio::awaitable<void> skips_events(world* w) {
  const k8s::object_key skr{"kcp-system", "skr"};
  const auto skipped = [w] { return w->metric("rw_watcher_installer_skipped_events_total"); };
  const auto adds = [w] { return w->metric("workqueue_adds_total{name=\"watcher-installer\"}"); };
  const auto event = [w, skr] { w->installer->on_event(skr, core::duration::zero()); };
  co_await w->begin_with_runtime();
  bool good = co_await eventually([&] {
    event();
    return skipped() > 0;
  });
  BOOST_REQUIRE(good);
  good = co_await eventually([w] {
    return w->metric("workqueue_depth{name=\"watcher-installer\"}") == 0 &&
           w->metric("controller_runtime_active_workers{controller=\"watcher-installer\"}") == 0;
  });
  BOOST_TEST(good);
  const auto before = adds();
  const auto first = skipped();
  const auto asked = w->asked["skr"];
  for (int i = 0; i < 7200; ++i) event();
  BOOST_TEST(skipped() == first + 7200);
  BOOST_TEST(adds() == before);
  BOOST_TEST(w->asked["skr"].reads == asked.reads);

  // What is due comes meanwhile: a repair, and a step of the CA with another certificate.
  json::value change = {{"spec", {{"replicas", 0}}}};
  const auto done =
      co_await w->api("skr").patch(deployments, deployment, k8s::patch_type::merge, change);
  BOOST_REQUIRE(done.has_value());
  good = co_await w->until("skr", deployments, deployment, [&event](const json::value& one) {
    event();
    return *k8s::find(one, {"spec", "replicas"}) == 1;
  });
  BOOST_TEST(good);
  w->certificates.use(w->second);
  co_await w->set_bundle(w->second.pem() + w->first.pem());
  good = co_await w->until("skr", secrets_type(), tls_secret, [&](const json::value& one) {
    event();
    return k8s::secret_data(one, "tls.crt") == w->certificates.certificate("skr");
  });
  BOOST_TEST(good, "the open step of the trust goes on");

  co_await w->set_ready("skr");  // the repair has changed the Deployment
  good = co_await eventually([&] {
    const auto now = skipped();
    event();
    return skipped() > now;
  });
  BOOST_TEST(good, "everything is in place again");
  const auto latest = skipped();
  w->installer->suspect(skr);
  event();
  BOOST_TEST(skipped() == latest, "events may have been missed");
}

BOOST_AUTO_TEST_CASE(event_of_a_runtime_where_all_is_in_place_costs_no_request) {
  world w(quick_options());
  test::run(w.context, skips_events(&w), 3 * test::patience);
}

/// The router drops events whose Kyma is not known.
asio::awaitable<void> gets_its_runtime_id(world* w) {
  int reconciled = 0;
  w->on_reconcile = [&](const k8s::object_key&) { ++reconciled; };
  co_await w->begin_with_runtime();
  for (const json::value& id : {json::value(nullptr), json::value("another")}) {
    bool good = co_await eventually([w] {
      return w->metric("workqueue_depth{name=\"watcher-installer\"}") == 0 &&
             w->metric("controller_runtime_active_workers{controller=\"watcher-installer\"}") == 0;
    });
    BOOST_REQUIRE(good);
    const auto before = reconciled;
    json::value change{{"metadata", {{"labels", {{runtime_id_label, id}}}}}};
    co_await w->merge(kymas_type(), {"kcp-system", "skr"}, std::move(change));
    good = co_await eventually([&] { return reconciled > before; });
    BOOST_TEST(good);
  }
}

BOOST_AUTO_TEST_CASE(kyma_that_gets_its_runtime_id_later_is_reconciled) {
  world w(quick_options());
  test::run(w.context, gets_its_runtime_id(&w));
}

/// A runtime that touches the objects for ever costs a reconcile less and less often.
asio::awaitable<void> is_contested(world* w) {
  co_await w->begin_with_runtime();
  for (int i = 0; i < 6; ++i) {
    json::value change = {{"spec", {{"replicas", 0}}}};
    const auto done =
        co_await w->api("skr").patch(deployments, deployment, k8s::patch_type::merge, change);
    BOOST_REQUIRE(done.has_value());
    const auto repaired = co_await w->until(
        "skr", deployments, deployment,
        [](const json::value& one) { return *k8s::find(one, {"spec", "replicas"}) == 1; });
    BOOST_TEST(repaired);
  }
  BOOST_TEST(w->metric("rw_watcher_installer_held_back_total") >= 4);
}

BOOST_AUTO_TEST_CASE(repairs_that_are_undone_wait_longer_each_time) {
  auto with = quick_options();
  with.drift_delay = 20ms;
  world w(with);
  test::run(w.context, is_contested(&w));
}

BOOST_AUTO_TEST_CASE(drift_on_a_runtime_is_repaired, *kube) {
  world w(quick_options());
  test::run(w.context, drifts(&w));
}

asio::awaitable<void> follows_watchers(world* w) {
  co_await w->begin_with_runtime();
  const auto arrived = [w](std::set<std::string> wanted) {
    return w->until("skr", webhook_configurations, configuration, has(std::move(wanted)));
  };
  co_await w->add_watcher("other", "warden", "status");
  bool good = co_await arrived({"/validate/lifecycle-manager", "/validate/warden"});
  BOOST_TEST(good);
  co_await w->add_watcher("other", "keda", "status");
  good = co_await arrived({"/validate/lifecycle-manager", "/validate/keda"});
  BOOST_TEST(good);
  const auto gone = co_await w->api("kcp").remove(watchers_type(), {"kcp-system", "kyma"});
  BOOST_REQUIRE(gone.has_value());
  good = co_await arrived({"/validate/keda"});
  BOOST_TEST(good);
  // What became invalid stays as its VirtualService remembers it.
  const auto valid = co_await w->api("kcp").get(watchers_type(), {"kcp-system", "other"});
  BOOST_REQUIRE(valid.has_value());
  auto route = test::object_of(virtual_services_type(), "kcp-system", "other");
  k8s::set_owner(route, {watchers_type().gvk.api_version(), "Watcher", "other",
                         std::string(k8s::uid_of(*valid))});
  k8s::set_annotation(route, last_valid_annotation, last_valid_text(*valid));
  co_await w->apply(route, virtual_services_type());
  // Path elements can't hold this, and no definition says so.
  co_await w->add_watcher("other", "../keda", "status");
  co_await w->add_watcher("third", "warden", "status");
  good = co_await arrived({"/validate/keda", "/validate/warden"});
  BOOST_TEST(good);
  // Without that it was never valid.
  const auto forgotten =
      co_await w->api("kcp").remove(virtual_services_type(), {"kcp-system", "other"});
  BOOST_REQUIRE(forgotten.has_value());
  good = co_await arrived({"/validate/warden"});
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(webhooks_follow_the_watchers, *kube) {
  world w(quick_options());
  test::run(w.context, follows_watchers(&w));
}

asio::awaitable<void> drops_webhooks_of_others(world* w) {
  co_await w->begin_with_runtime();
  auto object = co_await w->api("skr").get(webhook_configurations, configuration);
  BOOST_REQUIRE(object.has_value());
  auto& webhooks = object->as_object()["webhooks"].as_array();
  auto copy = webhooks.front();
  copy.as_object()["name"] = "kcp-system.gone.operator.kyma-project.io";
  webhooks.push_back(copy);
  copy.as_object()["name"] = "mine.example.com";
  webhooks.push_back(copy);
  const auto done =
      co_await w->api("skr").update(webhook_configurations, *object, {.field_manager = "hand"});
  BOOST_REQUIRE(done.has_value());
  w->installer->requeue({"kcp-system", "skr"});
  const bool good =
      co_await w->until("skr", webhook_configurations, configuration, [](const json::value& one) {
        std::set<std::string> names;
        for (const auto& each : one.at("webhooks").as_array()) {
          names.emplace(k8s::find_string(each, {"name"}));
        }
        return names == std::set<std::string>{"kcp-system.kyma.operator.kyma-project.io",
                                              "mine.example.com"};
      });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(owned_webhook_is_removed_even_if_another_client_wrote_it, *kube) {
  auto with = quick_options();
  with.withdrawn_patience = 0s;
  world w(with);
  test::run(w.context, drops_webhooks_of_others(&w));
}

asio::awaitable<void> moves(world* w) {
  co_await w->begin_with_runtime();
  w->add_cluster("new");
  co_await w->set_kubeconfig("skr", "skr", w->kubeconfig("new"));
  const bool good = co_await w->until("new", deployments, deployment, is_there);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(changed_kubeconfig_leads_to_another_cluster) {
  world w(quick_options());
  test::run(w.context, moves(&w));
}

asio::awaitable<void> follows_the_gateway(world* w) {
  co_await w->begin_with_runtime();
  const k8s::object_key key{"kcp-system", "klm-watcher"};
  const auto set = [w, key](json::array hosts, int port) {
    json::value change = {
        {"spec",
         {{"servers", json::array{{{"hosts", std::move(hosts)}, {"port", {{"number", port}}}}}}}}};
    return w->api("kcp").patch(gateways_type(), key, k8s::patch_type::merge, std::move(change));
  };
  auto done = co_await set({"new.kcp.example.com"}, 8443);
  BOOST_REQUIRE(done.has_value());
  bool good = co_await w->until("skr", deployments, deployment, [](const json::value& one) {
    return json::serialize(one).find("new.kcp.example.com:8443") != std::string::npos;
  });
  BOOST_TEST(good);
  const k8s::resource_type policies{{"networking.k8s.io", "v1", "NetworkPolicy"},
                                    "networkpolicies"};
  good = co_await w->until(
      "skr", policies, {"kyma-system", "kyma-project.io--watcher-to-apiserver"},
      [](const json::value& one) { return one.at_pointer("/spec/egress/0/ports/0/port") == 8443; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(changed_address_for_events_reaches_the_runtimes) {
  world w(quick_options());
  test::run(w.context, follows_the_gateway(&w));
}

asio::awaitable<void> waits_for_certificate(world* w) {
  w->certificates.issues = false;
  co_await w->begin();
  w->add_cluster("skr");
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  bool good = co_await w->until_event("skr", "WatcherNotReady", "the issuer is asleep");
  BOOST_TEST(good);
  const auto got = co_await w->api("skr").get(deployments, deployment);
  BOOST_TEST(got.has_error());
  w->certificates.issues = true;
  w->installer->requeue({"kcp-system", "skr"});
  good = co_await w->until("skr", deployments, deployment, is_there);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(watcher_is_not_installed_before_there_is_a_certificate) {
  world w(quick_options());
  test::run(w.context, waits_for_certificate(&w));
}

asio::awaitable<void> bears_the_unhealthy(world* w) {
  co_await w->begin();
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  w->add_cluster("hanging");
  w->hanging["hanging"] = true;
  w->add_cluster("refusing");
  auto refusing = w->kubeconfig("refusing");
  const auto port = ":" + std::to_string(w->server.address().port()) + "/";
  refusing.replace(refusing.find(port), port.size(), ":1/");
  co_await w->add_kyma("hanging", w->kubeconfig("hanging"));
  co_await w->add_kyma("refusing", refusing);
  co_await w->add_kyma("garbage", "apiVersion: [");
  co_await w->add_kyma("running", "{users: [{name: u, user: {exec: {command: /bin/sh}}}]}");
  for (int i = 0; i < 8; ++i) {
    const auto name = "well-" + std::to_string(i);
    w->add_cluster(name);
    co_await w->add_kyma(name, w->kubeconfig(name));
  }
  for (int i = 0; i < 8; ++i) {
    const bool ready = co_await w->until_ready("well-" + std::to_string(i));
    BOOST_TEST(ready);
  }
  bool good = co_await eventually([w] {
    return w->installer->count(state::unreachable) == 2 && w->installer->count(state::failed) == 2;
  });
  BOOST_TEST(good);
  good = co_await w->until_event("garbage", "WatcherFailed", "kubeconfig of kcp-system/garbage");
  BOOST_TEST(good);
  good = co_await w->until_event("refusing", "RuntimeUnreachable");
  BOOST_TEST(good);
  const auto* entry = w->tracker.find({"kcp-system", "hanging"});
  BOOST_TEST((entry != nullptr && entry->own_fault_since().has_value()));
  BOOST_TEST(w->lines("\"name\":\"refusing\"") == 1, "an error is logged when it begins");

  w->hanging["hanging"] = false;
  good = co_await w->until_ready("hanging");
  BOOST_TEST(good);
  BOOST_TEST(w->installer->count(state::unreachable) == 1U);
}

BOOST_AUTO_TEST_CASE(unhealthy_runtimes_do_not_keep_the_others_waiting) {
  auto with = quick_options();
  with.concurrent = 3;
  with.unhealthy_concurrent = 1;
  with.runtime_limit = 2s;
  with.unhealthy_probe = 300ms;
  world w(with);
  test::run(w.context, bears_the_unhealthy(&w));
}

asio::awaitable<void> removes(world* w) {
  co_await w->begin_with_runtime();
  const auto done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "skr"});
  BOOST_REQUIRE(done.has_value());
  bool good = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_gone);
  BOOST_TEST(good);
  for (const auto& [type, key] :
       {std::pair{deployments, deployment}, std::pair{webhook_configurations, configuration},
        std::pair{services, k8s::object_key{"kyma-system", "skr-webhook"}},
        std::pair{secrets_type(), tls_secret}}) {
    good = co_await w->until("skr", type, key, is_gone);
    BOOST_TEST(good, type.plural);
  }
  BOOST_TEST(w->certificates.removed == std::vector<std::string>{"skr"});
  good = co_await w->until_event("skr", "WatcherRemoved");
  BOOST_TEST(good);
  good = co_await eventually([w] { return w->tracker.find({"kcp-system", "skr"}) == nullptr; });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(deleted_kyma_leaves_a_clean_runtime, *kube) {
  world w(quick_options());
  test::run(w.context, removes(&w));
}

// --- beside lifecycle-manager ----------------------------------------------------------

const k8s::object_key metrics_service{"kyma-system", "skr-webhook-metrics"};

/// What lifecycle-manager applies, as its field manager; with a field that the installer has not.
asio::awaitable<void> apply_as_klm(world* w, std::int64_t timeout) {
  auto service = test::object_of(services, metrics_service.ns, metrics_service.name);
  k8s::set_annotation(service, "example.com/klm", "here");
  service.as_object()["spec"] = {
      {"selector", {{"app", "skr-webhook"}}},
      {"ports", json::array{{{"name", "klm"}, {"port", 2112}, {"protocol", "TCP"}}}}};
  auto hooks = test::object_of(webhook_configurations, "", configuration.name);
  const auto policy = [&](const std::string& watcher) {
    return json::value{
        {"name", "kcp-system." + watcher + ".operator.kyma-project.io"},
        {"admissionReviewVersions", {"v1"}},
        {"clientConfig",
         {{"service",
           {{"name", "skr-webhook"}, {"namespace", "kyma-system"}, {"path", "/validate/klm"}}}}},
        {"sideEffects", "NoneOnDryRun"},
        {"timeoutSeconds", timeout}};
  };
  hooks.as_object()["webhooks"] = json::array{policy("kyma")};
  const k8s::apply_options klm{.field_manager = "lifecycle-manager", .force = true};
  test::required(co_await w->api("skr").apply(services, std::move(service), klm));
  test::required(co_await w->api("skr").apply(webhook_configurations, std::move(hooks), klm));
}

std::set<std::string> field_managers(const json::value& of) {
  std::set<std::string> out;
  for (const auto& one : of.at("metadata").at("managedFields").as_array()) {
    if (k8s::find_string(one, {"subresource"}).empty()) {
      out.emplace(k8s::find_string(one, {"manager"}));
    }
  }
  return out;
}

asio::awaitable<void> takes_over(world* w) {
  co_await w->begin();
  co_await w->add_any_runtime();
  auto ns = test::object_of(namespaces_type(), "", "kyma-system");
  static_cast<void>(co_await w->api("skr").create(namespaces_type(), std::move(ns)));
  co_await apply_as_klm(w, 15);
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  const bool ready = co_await w->until_ready("skr");
  BOOST_REQUIRE(ready);
  const auto service = test::required(co_await w->api("skr").get(services, metrics_service));
  BOOST_TEST((field_managers(service) == std::set<std::string>{"runtime-watcher"}));
  BOOST_TEST(!k8s::has_annotation(service, "example.com/klm"));
  BOOST_TEST(service.at("spec").at("ports").as_array().size() == 1U);
  const auto hooks =
      test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  BOOST_TEST((field_managers(hooks) == std::set<std::string>{"runtime-watcher"}));
  const auto before = w->metric("rw_watcher_installer_writes_total");
  co_await one_pass(w, "skr");
  BOOST_TEST(w->metric("rw_watcher_installer_writes_total") == before);
}

BOOST_AUTO_TEST_CASE(fields_of_lifecycle_manager_are_taken_over_once, *kube) {
  world w(quick_options());
  test::run(w.context, takes_over(&w));
}

/// Until its write is later than the installer's, to the second.
asio::awaitable<bool> klm_wins(world* w) {
  std::int64_t timeout = 10;
  const auto end = std::chrono::steady_clock::now() + test::patience;
  while (std::chrono::steady_clock::now() < end) {
    co_await apply_as_klm(w, ++timeout % 20 + 6);
    w->installer->requeue({"kcp-system", "skr"});
    if (w->installer->contested() == 1) co_return true;
  }
  co_return false;
}

asio::awaitable<void> stands_back(world* w) {
  co_await w->begin_with_runtime();
  bool good = co_await klm_wins(w);
  BOOST_REQUIRE(good);
  good = co_await w->until_event("skr", "WatcherFailed", "lifecycle-manager writes");
  BOOST_TEST(good);
  BOOST_TEST(w->metric("rw_watcher_installer_contested_runtimes") == 1);
  // The other one goes on, and nobody writes against it.
  const auto before = w->metric("rw_watcher_installer_writes_total");
  const auto warned = w->lines("lifecycle-manager writes");
  for (std::int64_t i = 0; i < 5; ++i) {
    co_await apply_as_klm(w, 7 + i);
    co_await one_pass(w, "skr");
  }
  BOOST_TEST(w->metric("rw_watcher_installer_writes_total") == before);
  BOOST_TEST(w->lines("lifecycle-manager writes") == warned);
  const auto hooks =
      test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  BOOST_TEST(hooks.at("webhooks").at(0).at("timeoutSeconds") == 11);
}

BOOST_AUTO_TEST_CASE(runtime_is_left_to_lifecycle_manager_when_that_writes_it_too) {
  world w(quick_options());
  test::run(w.context, stands_back(&w));
}

asio::awaitable<void> comes_back(world* w) {
  co_await w->begin_with_runtime();
  bool good = co_await klm_wins(w);
  BOOST_REQUIRE(good);
  // It is gone: after the pause the runtime is taken over again.
  good = co_await w->until("skr", webhook_configurations, configuration,
                           has({"/validate/lifecycle-manager"}));
  BOOST_TEST(good);
  good = co_await eventually([&] { return w->installer->contested() == 0; });
  BOOST_TEST(good);
}

/// A tenant that writes as lifecycle-manager, which does not run, gains nothing.
asio::awaitable<void> writes_over(world* w, std::shared_ptr<bool> runs) {
  co_await w->begin_with_runtime();
  bool good = co_await klm_wins(w);
  BOOST_REQUIRE(good);
  *runs = false;
  for (int i = 0; i < 3; ++i) {
    w->installer->requeue({"kcp-system", "skr"});
    good = co_await w->until("skr", webhook_configurations, configuration,
                             has({"/validate/lifecycle-manager"}));
    BOOST_TEST(good, "it is written over, without a pause");
    good = co_await eventually([&] { return w->installer->contested() == 0; });
    BOOST_TEST(good);
    BOOST_TEST(!w->tracker.find({"kcp-system", "skr"})->error);
    co_await apply_as_klm(w, 7 + i);
  }
}

BOOST_AUTO_TEST_CASE(fields_of_an_absent_manager_are_overwritten) {
  auto with = quick_options();
  const auto runs = std::make_shared<bool>(true);
  with.install.former_runs = runs;
  world w(with);
  test::run(w.context, writes_over(&w, runs));
}

BOOST_AUTO_TEST_CASE(runtime_is_taken_over_when_lifecycle_manager_has_gone) {
  auto with = quick_options();
  with.install.contest_pause = 3s;
  world w(with);
  test::run(w.context, comes_back(&w));
}

asio::awaitable<void> shadows(world* w) {
  co_await w->begin_with_runtime();
  *w->is_dry = true;
  co_await apply_as_klm(w, 15);
  const auto before =
      test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  w->installer->requeue({"kcp-system", "skr"});
  bool good = co_await eventually([&] {
    const auto* const changes = w->installer->changes({"kcp-system", "skr"});
    return changes != nullptr && changes->size() == 2 &&
           changes->back() == "ValidatingWebhookConfiguration skr-webhook";
  });
  BOOST_TEST(good);
  // A Kyma that is deleted does not wait, and its runtime is not touched.
  const auto done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "skr"});
  BOOST_REQUIRE(done.has_value());
  good = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_gone);
  BOOST_TEST(good);
  const auto after =
      test::required(co_await w->api("skr").get(webhook_configurations, configuration));
  BOOST_TEST(k8s::resource_version_of(after) == k8s::resource_version_of(before));
  BOOST_TEST(w->certificates.removed.empty());
}

BOOST_AUTO_TEST_CASE(shadow_tells_what_would_be_written_and_writes_nothing, *kube) {
  auto with = quick_options();
  with.install.contest_pause = 0s;
  world w(with);
  test::run(w.context, shadows(&w));
}

/// The watcher is this manager's own, and lifecycle-manager is not there to remove it.
asio::awaitable<void> keeps_a_kyma_in_shadow(world* w) {
  co_await w->begin_with_runtime();
  *w->is_dry = true;
  const auto done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "skr"});
  BOOST_REQUIRE(done.has_value());
  bool good =
      co_await eventually([w] { return w->tracker.find({"kcp-system", "skr"}) == nullptr; });
  BOOST_TEST(good);
  const auto kyma = test::required(co_await w->api("kcp").get(kymas_type(), {"kcp-system", "skr"}));
  BOOST_TEST(k8s::has_finalizer(kyma, installer_options().finalizer));
  const auto seen = co_await w->installer->preview({"kcp-system", "skr"});
  BOOST_TEST(seen.error == "");
  BOOST_TEST_REQUIRE(seen.waits.size() == 1U);
  BOOST_TEST(seen.waits.front() == "the Kyma is being deleted");
  BOOST_TEST(!seen.writes.empty());
  for (const auto& each : seen.writes) BOOST_TEST(each.next.is_null());
  // A manager that writes removes it.
  *w->is_dry = false;
  w->installer->requeue({"kcp-system", "skr"});
  good = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_gone);
  BOOST_TEST(good);
  good = co_await w->until("skr", webhook_configurations, configuration, is_gone);
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(shadow_releases_no_kyma_whose_watcher_is_its_own, *kube) {
  world w(quick_options());
  w.releases = false;
  test::run(w.context, keeps_a_kyma_in_shadow(&w));
}

asio::awaitable<void> canaries(world* w) {
  co_await w->begin();
  w->add_cluster("skr");
  w->add_cluster("other");
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  co_await w->add_kyma("other", w->kubeconfig("other"));
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  json::value canary{{"metadata", {{"labels", {{"canary", "yes"}}}}}};
  co_await w->merge(kymas_type(), {"kcp-system", "skr"}, std::move(canary));
  const bool ready = co_await w->until_ready("skr");
  BOOST_TEST(ready);
  BOOST_TEST(w->asked["other"].reads == 0);
  const auto other =
      test::required(co_await w->api("kcp").get(kymas_type(), {"kcp-system", "other"}));
  BOOST_TEST(!k8s::has_finalizer(other, installer_options().finalizer));
}

BOOST_AUTO_TEST_CASE(only_canaries_are_touched) {
  auto with = quick_options();
  with.only = *k8s::label_selector::parse("canary=yes");
  world w(with);
  test::run(w.context, canaries(&w));
}

/// What keeps a Kyma as long as its modules are being deleted.
asio::awaitable<void> set_other_finalizer(world* w, bool present) {
  auto kyma = test::required(co_await w->api("kcp").get(kymas_type(), {"kcp-system", "skr"}));
  if (present) {
    k8s::add_finalizer(kyma, "operator.kyma-project.io/Kyma");
  } else {
    k8s::remove_finalizer(kyma, "operator.kyma-project.io/Kyma");
  }
  json::value change{{"metadata", {{"finalizers", kyma.at("metadata").at("finalizers")}}}};
  co_await w->merge(kymas_type(), {"kcp-system", "skr"}, std::move(change));
}

asio::awaitable<void> outlasts_the_modules(world* w) {
  co_await w->begin_with_runtime();
  co_await set_other_finalizer(w, true);
  const auto done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "skr"});
  BOOST_REQUIRE(done.has_value());
  // It is kept in place meanwhile: what is deleted comes back.
  bool good = true;
  for (int i = 0; i < 3; ++i) {
    const auto before = w->passes();
    w->installer->requeue({"kcp-system", "skr"});
    good = co_await test::eventually([&] { return w->passes() > before; });
    BOOST_REQUIRE(good);
  }
  co_await w->remove("skr", webhook_configurations, configuration);
  w->installer->requeue({"kcp-system", "skr"});
  good = co_await w->until("skr", webhook_configurations, configuration, is_there);
  BOOST_TEST(good);
  BOOST_TEST(w->certificates.removed.empty());
  co_await set_other_finalizer(w, false);
  good = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_gone);
  BOOST_TEST(good);
  good = co_await w->until("skr", webhook_configurations, configuration, is_gone);
  BOOST_TEST(good);
  good = co_await w->until_event("skr", "WatcherRemoved");
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(watcher_outlasts_the_other_finalizers_of_its_kyma) {
  world w(quick_options());
  test::run(w.context, outlasts_the_modules(&w));
}

asio::awaitable<void> fails_to_remove(world* w) {
  co_await w->begin_with_runtime();
  w->on_request = [](const std::string& cluster, const std::string& verb, const std::string&) {
    return k8s::devserver::fault{.status = cluster == "skr" && verb == "delete" ? 403U : 0U};
  };
  const auto done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "skr"});
  BOOST_REQUIRE(done.has_value());
  bool good = co_await w->until_event("skr", "WatcherRemovalFailed");
  BOOST_TEST(good);
  const auto* const seen = w->installer->runtimes().find({"kcp-system", "skr"});
  BOOST_TEST_REQUIRE(seen != nullptr);
  BOOST_TEST((seen->state == runtime_state::failed));
  BOOST_TEST(seen->reason == status_reason::removal_failed);
  BOOST_TEST(seen->message.find("cannot delete") == 0U, seen->message);
  w->on_request = {};
  good = co_await w->until_event("skr", "WatcherRemoved");
  BOOST_TEST(good);
  BOOST_TEST((w->installer->runtimes().find({"kcp-system", "skr"}) == nullptr));
}

BOOST_AUTO_TEST_CASE(removal_that_fails_is_a_state_of_the_runtime) {
  world w(quick_options());
  test::run(w.context, fails_to_remove(&w));
}

asio::awaitable<void> gives_up(world* w) {
  co_await w->begin_with_runtime();
  w->add_cluster("lost");
  co_await w->add_kyma("lost", w->kubeconfig("lost"));
  bool good = co_await w->until_ready("lost");
  BOOST_REQUIRE(good);
  w->hanging["skr"] = true;
  auto done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "skr"});
  BOOST_REQUIRE(done.has_value());
  good = co_await w->until_event("skr", "WatcherRemovalAbandoned");
  BOOST_TEST(good);
  good = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_gone);
  BOOST_TEST(good);

  done = co_await w->api("kcp").remove(secrets_type(), {"kcp-system", "kubeconfig-lost"});
  BOOST_REQUIRE(done.has_value());
  done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "lost"});
  BOOST_REQUIRE(done.has_value());
  good = co_await w->until_event("lost", "WatcherRemovalAbandoned", "no Secret");
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(kyma_waits_a_bounded_time_for_a_runtime_that_is_gone) {
  auto with = quick_options();
  with.runtime_limit = 2s;
  with.unhealthy_probe = 300ms;
  with.removal_limit = 1s;
  world w(with);
  test::run(w.context, gives_up(&w));
}

/// It left the scope, or got the label, after it was installed.
asio::awaitable<void> leaves_alone(world* w, json::object labels) {
  co_await w->begin_with_runtime();
  json::value change{{"metadata", {{"labels", std::move(labels)}}}};
  co_await w->merge(kymas_type(), {"kcp-system", "skr"}, std::move(change));
  // Nothing tells when the reconcile of a Kyma that is left alone has ended, but its state.
  const bool left = co_await eventually(
      [w] { return w->installer->runtimes().find({"kcp-system", "skr"}) == nullptr; });
  BOOST_REQUIRE(left);
  const auto* const known = w->tracker.find({"kcp-system", "skr"});
  BOOST_TEST((known != nullptr && known->scope != cluster_scope::managed));
  BOOST_TEST(!known->is_reporting());
  w->asked["skr"] = {};
  const auto done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "skr"});
  BOOST_REQUIRE(done.has_value());
}

asio::awaitable<void> releases_what_it_leaves_alone(world* w, json::object labels) {
  co_await leaves_alone(w, std::move(labels));
  bool good = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_gone);
  BOOST_TEST(good);
  good = co_await w->until_event("skr", "WatcherRemovalAbandoned", "leaves it alone");
  BOOST_TEST(good);
  const auto asked = w->asked["skr"];  // the checks ask, too
  BOOST_TEST(asked.reads + asked.writes == 0);
  const auto kept = co_await w->api("skr").get(webhook_configurations, configuration);
  BOOST_TEST(kept.has_value());
}

BOOST_AUTO_TEST_CASE(kyma_that_is_skipped_is_released_when_it_is_deleted) {
  auto with = quick_options();
  with.removal_limit = 1s;
  world w(with);
  test::run(w.context, releases_what_it_leaves_alone(&w, {{skip_label, "true"}}));
}

BOOST_AUTO_TEST_CASE(kyma_that_left_the_scope_is_released_when_it_is_deleted) {
  auto with = quick_options();
  with.removal_limit = 1s;
  with.only = *k8s::label_selector::parse("scope!=other");
  world w(with);
  test::run(w.context, releases_what_it_leaves_alone(&w, {{"scope", "other"}}));
}

asio::awaitable<void> cleans_what_another_leaves(world* w) {
  co_await leaves_alone(w, {{"scope", "other"}});
  auto in_scope = quick_options();
  in_scope.only = *k8s::label_selector::parse("scope=other");
  co_await w->take_over(std::move(in_scope));
  bool good = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_gone);
  BOOST_TEST(good);
  good = co_await w->until("skr", webhook_configurations, configuration, is_gone);
  BOOST_TEST(good);
  good = co_await w->until_event("skr", "WatcherRemoved");
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(manager_in_scope_removes_at_once_what_another_leaves) {
  auto with = quick_options();
  with.only = *k8s::label_selector::parse("scope!=other");
  world w(with);
  test::run(w.context, cleans_what_another_leaves(&w));
}

/// Its calendar goes ahead of the system's.
class shifted_clock final : public core::clock {
 public:
  core::time_point now() const noexcept override { return real_.now(); }
  std::chrono::system_clock::time_point wall() const noexcept override {
    return real_.wall() + ahead;
  }
  std::unique_ptr<core::timer> make_timer(asio::any_io_executor executor) override {
    return real_.make_timer(std::move(executor));
  }

  std::chrono::hours ahead{0};

 private:
  core::real_clock real_;
};

asio::awaitable<void> gives_up_under_the_next_leader(world* w, shifted_clock* clock,
                                                     installer_options with) {
  co_await w->begin_with_runtime();
  w->hanging["skr"] = true;
  const auto done = co_await w->api("kcp").remove(kymas_type(), {"kcp-system", "skr"});
  BOOST_REQUIRE(done.has_value());
  co_await w->stop();
  auto there = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_there);
  BOOST_REQUIRE(there);
  clock->ahead = std::chrono::hours(2);
  co_await w->take_over(std::move(with));
  const bool gone = co_await w->until("kcp", kymas_type(), {"kcp-system", "skr"}, is_gone);
  BOOST_TEST(gone);
}

BOOST_AUTO_TEST_CASE(limit_of_a_removal_survives_a_leader) {
  auto with = quick_options();
  with.runtime_limit = 2s;
  with.unhealthy_probe = 300ms;
  with.removal_limit = 1h;
  auto owned = std::make_unique<shifted_clock>();
  auto* const clock = owned.get();
  world w(with, std::move(owned));
  test::run(w.context, gives_up_under_the_next_leader(&w, clock, with));
}

/// What was created since the backup is gone, and its runtime is not touched.
asio::awaitable<void> follows_a_restored_control_plane(world* w) {
  co_await w->begin_with_runtime();
  w->add_cluster("later");
  const auto backup = w->server.back_up("kcp");
  co_await w->add_kyma("later", w->kubeconfig("later"));
  bool good = co_await w->until_ready("later");
  BOOST_REQUIRE(good);
  w->server.restore("kcp", *backup);
  w->server.drop_connections();  // API servers are restarted for it
  const auto is_known = [w](const char* kyma) {
    return w->installer->runtimes().find({"kcp-system", kyma}) != nullptr;
  };
  good = co_await eventually([is_known] { return !is_known("later"); });
  BOOST_TEST(good);
  BOOST_TEST(is_known("skr"));
  const auto left = co_await w->api("later").get(webhook_configurations, configuration);
  BOOST_TEST(left.has_value());
  co_await w->add_kyma("later", w->kubeconfig("later"));
  good = co_await eventually([is_known] { return is_known("later"); });
  BOOST_TEST(good);
}

BOOST_AUTO_TEST_CASE(kymas_of_a_restored_control_plane_are_followed) {
  world w(quick_options());
  test::run(w.context, follows_a_restored_control_plane(&w));
}

/// What the runtime serves with must be believed by its API server, whenever one looks.
asio::awaitable<void> watch_trust(world* w, std::string until_certificate, int* wrong) {
  const auto end = std::chrono::steady_clock::now() + test::patience;
  std::string served;
  while (served != until_certificate && std::chrono::steady_clock::now() < end) {
    // The Secret first: what is believed then is believed later as well.
    const auto secret = co_await w->api("skr").get(secrets_type(), tls_secret);
    const auto hooks = co_await w->api("skr").get(webhook_configurations, configuration);
    BOOST_REQUIRE((secret.has_value() && hooks.has_value()));
    served = k8s::secret_data(*secret, "tls.crt").value_or("");
    const auto own = tls::certificate::from_pem(served);
    BOOST_REQUIRE(own.has_value());
    for (const auto& one : hooks->at("webhooks").as_array()) {
      const auto text = k8s::find_string(one, {"clientConfig", "caBundle"});
      const auto store = tls::trust_store::from_pem(*k8s::base64_decode(text));
      if (!store || !store->verify(*own, {}, tls::purpose::server_auth)) ++*wrong;
    }
  }
  BOOST_TEST(served == until_certificate);
}

asio::awaitable<json::value> pod_template(world* w) {
  const auto got = co_await w->api("skr").get(deployments, deployment);
  BOOST_REQUIRE(got.has_value());
  co_return got->at_pointer("/spec/template");
}

/// Its pods are never ready, and never restarted.
asio::awaitable<void> rotates(world* w) {
  co_await w->begin();
  co_await w->add_any_runtime();
  co_await w->add_watcher("kyma", "lifecycle-manager", "spec");
  co_await w->add_kyma("skr", w->kubeconfig("skr"));
  const bool told = co_await w->until_event("skr", "WatcherNotReady", "NoPods");
  BOOST_REQUIRE(told);
  const auto before = co_await pod_template(w);
  const auto begin = std::chrono::steady_clock::now();
  w->certificates.use(w->second);
  co_await w->set_bundle(w->second.pem() + w->first.pem());
  int wrong = 0;
  co_await watch_trust(w, w->certificates.certificate("skr"), &wrong);
  BOOST_TEST(wrong == 0);
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= 1s), "the bundle was not in place");
  const auto issuer = [w] {
    const auto* entry = w->tracker.find({"kcp-system", "skr"});
    return entry != nullptr && entry->observed ? entry->observed->client_issuer : std::string();
  };
  const auto authority_now = tls::certificate::from_pem(w->second.pem()).value().fingerprint();
  const bool seen =
      co_await eventually([issuer, authority_now] { return issuer() == authority_now; });
  BOOST_TEST(seen, "what the Secret and the webhooks hold counts, not whether a pod runs");
  const auto after = co_await pod_template(w);
  BOOST_TEST((after == before));
}

BOOST_AUTO_TEST_CASE(rotated_authority_is_trusted_before_it_is_needed, *kube) {
  world w(quick_options());
  test::run(w.context, rotates(&w));
}

namespace {

/// The managers that the file on the runtime names.
std::set<std::string> managers_in_file(const json::value& secret) {
  std::set<std::string> out;
  const auto text = k8s::secret_data(secret, "managers.json");
  const auto parsed = parse_managers(text.value_or(std::string()));
  if (!parsed) return {"none"};
  for (const auto& each : parsed->watches()) out.insert(each.manager);
  return out;
}

/// When an object was written last, in the order of its cluster's writes.
std::uint64_t version_of(const json::value& object) {
  return std::stoull(std::string(k8s::find_string(object, {"metadata", "resourceVersion"})));
}

}  // namespace

asio::awaitable<void> keeps_managers(world* w) {
  co_await w->begin_with_runtime();
  std::uint64_t secret = 0;
  std::uint64_t webhooks = 0;
  std::set<std::string> expected{"lifecycle-manager"};
  const auto in_file = [&](const json::value& one) {
    secret = one.is_object() ? version_of(one) : 0;
    return one.is_object() && managers_in_file(one) == expected;
  };
  const auto in_webhooks = [&](const json::value& one) {
    webhooks = one.is_object() ? version_of(one) : 0;
    return one.is_object() && managers(one).size() == expected.size();
  };
  bool good = co_await w->until("skr", secrets_type(), tls_secret, in_file);
  BOOST_TEST(good);
  const auto restarts = co_await w->api("skr").get(deployments, deployment);

  expected.insert("other");
  co_await w->add_watcher("other", "other", "status");
  good = co_await w->until("skr", webhook_configurations, configuration, in_webhooks);
  BOOST_TEST(good);
  good = co_await w->until("skr", secrets_type(), tls_secret, in_file);
  BOOST_TEST(good);
  BOOST_TEST(secret < webhooks);  // grown before

  expected.erase("other");
  const auto removed = co_await w->api("kcp").remove(watchers_type(), {"kcp-system", "other"});
  BOOST_TEST(removed.has_value());
  good = co_await w->until("skr", secrets_type(), tls_secret, in_file);
  BOOST_TEST(good);
  good = co_await w->until("skr", webhook_configurations, configuration, in_webhooks);
  BOOST_TEST(good);
  BOOST_TEST(webhooks < secret);  // narrowed after
  const auto now = co_await w->api("skr").get(deployments, deployment);
  BOOST_TEST((now->at_pointer("/spec/template") == restarts->at_pointer("/spec/template")));
}

BOOST_AUTO_TEST_CASE(managers_file_grows_before_the_webhooks_and_narrows_after_them, *kube) {
  world w(quick_options());
  test::run(w.context, keeps_managers(&w));
}

/// True if the managers' file, read before the webhooks, has all of their managers.
bool has_all(const json::value& secret, const json::value& webhooks) {
  const auto text = k8s::secret_data(secret, watcher_installer::managers_entry);
  const auto file = parse_managers(text.value_or(""));
  return file && std::ranges::all_of(managers(webhooks), [&](const std::string& path) {
           return file->find(path.substr(path.rfind('/') + 1)) != nullptr;
         });
}

/// Has the Watcher "other" a manager that is new, and waits until there is a webhook of it;
/// meanwhile there are as many as before, and the pods know the managers of all. Returns how long
/// that took.
asio::awaitable<std::chrono::steady_clock::duration> introduce(world* w, std::string manager,
                                                               std::size_t before) {
  const auto begin = std::chrono::steady_clock::now();
  const auto path = "/validate/" + manager;
  co_await w->add_watcher("other", manager, "status");
  for (bool there = false; !there;) {
    BOOST_REQUIRE((std::chrono::steady_clock::now() - begin < test::patience));
    const auto file = co_await w->api("skr").get(secrets_type(), tls_secret);
    const auto got = co_await w->api("skr").get(webhook_configurations, configuration);
    BOOST_REQUIRE((file.has_value() && got.has_value()));
    BOOST_TEST(has_all(*file, *got));
    there = managers(*got).contains(path);
    BOOST_TEST(got->at("webhooks").as_array().size() >= before);
  }
  co_return std::chrono::steady_clock::now() - begin;
}

asio::awaitable<void> introduces_managers(world* w) {
  co_await w->begin_with_runtime();
  const auto first = co_await introduce(w, "warden", 1);
  BOOST_TEST((first >= 1s), "kubelet has not brought the managers' file");
  // The Watcher keeps the webhook of its former manager until the pods know the new one.
  const auto second = co_await introduce(w, "keda", 2);
  BOOST_TEST((second >= 1s));
}

BOOST_AUTO_TEST_CASE(webhook_of_a_new_manager_waits_until_the_pods_know_it) {
  world w(quick_options());
  test::run(w.context, introduces_managers(&w));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
