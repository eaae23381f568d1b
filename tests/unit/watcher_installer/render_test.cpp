// What goes to a runtime, held against the contract line by line.

#include "rw/reactors/watcher_installer/render.hpp"

#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/source_dir.hpp"
#include "tests/unit/watcher_installer/samples.hpp"
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {
BOOST_AUTO_TEST_SUITE(render)

namespace json = boost::json;
using namespace rw::watcher_installer;

namespace {

inputs sample() {
  return {.address = {"events.kcp.example.com", 8443},
          .ca_bundle = "the bundle",
          .bundle_since = "2026-11-21T09:00:00Z",
          .certificate = "the certificate",
          .key = "the key",
          .certificate_since = "2026-11-21T08:00:00Z",
          .restart_trigger = "4711",
          .watchers = {sample_watcher()}};
}

json::value object_of(const inputs& runtime, std::string_view kind, std::string_view name,
                      const manifest_settings& with = {}) {
  for (auto& one : rw::watcher_installer::render(templates::built_in(), with, runtime)) {
    if (is(one, kind, name)) return one;
  }
  BOOST_FAIL("there is no " << kind << " " << name);
  return {};
}

json::value deployment(const inputs& runtime = sample(), const manifest_settings& with = {}) {
  return object_of(runtime, "Deployment", "skr-webhook", with);
}

json::value at(const json::value& object, const char* pointer) {
  return object.at_pointer(pointer);
}

json::value webhooks(const inputs& runtime) {
  return object_of(runtime, "ValidatingWebhookConfiguration", "skr-webhook").at("webhooks");
}

json::value policy(const std::string& name) {
  return object_of(sample(), "NetworkPolicy", "kyma-project.io--" + name).at("spec");
}

std::string variable(const json::value& object, std::string_view name) {
  const auto env = at(object, "/spec/template/spec/containers/0/env");
  for (const auto& one : env.as_array()) {
    if (k8s::find_string(one, {"name"}) == name) {
      return std::string(k8s::find_string(one, {"value"}));
    }
  }
  return "none";
}

const auto& pod = "/spec/template/spec";

}  // namespace

BOOST_AUTO_TEST_CASE(managers_are_in_the_secret_and_change_no_pod) {
  auto other = sample();
  other.managers =
      known_managers({watch_of(sample_watcher("more", "other", watched_field::status))});
  const auto secret = object_of(other, "Secret", "skr-webhook-tls");
  BOOST_TEST(k8s::secret_data(secret, "managers.json").value() == render_managers(other.managers));
  BOOST_TEST((deployment(other) == deployment()));
  BOOST_TEST(variable(deployment(), "MANAGERS_FILE") == "/etc/skr-webhook/tls/managers.json");
}

BOOST_AUTO_TEST_CASE(only_the_api_servers_tunnel_may_post_reviews) {
  BOOST_TEST(at(policy("seed-to-watcher"), "/ingress/0/from") == json::parse(R"([{
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"app": "vpn-shoot"}}}])"));
}

BOOST_AUTO_TEST_CASE(sources_of_reviews_are_a_setting) {
  const auto rule = [](const std::string& sources) {
    return at(object_of(sample(), "NetworkPolicy", "kyma-project.io--seed-to-watcher",
                        {.webhook_sources = sources}),
              "/spec/ingress/0");
  };
  BOOST_TEST(rule("app=konnectivity-agent,tier=system").at("from").at(0).at("podSelector") ==
             json::parse(R"({"matchLabels": {"app": "konnectivity-agent", "tier": "system"}})"));
  BOOST_TEST(rule("any") == json::parse(R"({"ports": [{"protocol": "TCP", "port": 8443}]})"));
  for (const auto* good : {"", "any", "app=vpn-shoot", "example.com/app=a,b=c"}) {
    BOOST_TEST(webhook_sources_error(good) == "", good);
  }
  for (const auto* bad : {"vpn-shoot", "app=", "=x", "a=b c", "app=a,=x"}) {
    BOOST_TEST(webhook_sources_error(bad) != "", bad);
  }
}

BOOST_AUTO_TEST_CASE(objects_make_the_watcher_in_a_fixed_order) {
  std::string all;
  for (const auto& one : rw::watcher_installer::render(templates::built_in(), {}, sample())) {
    all += std::string(k8s::find_string(one, {"kind"})) + " " +
           std::string(k8s::find_string(one, {"metadata", "name"})) + "\n";
    BOOST_TEST(k8s::label(one, "operator.kyma-project.io/managed-by") == "kyma");
    const auto kind = k8s::find_string(one, {"kind"});
    const bool scoped = kind == "PriorityClass" || kind == "ValidatingWebhookConfiguration" ||
                        kind.starts_with("ClusterRole");
    BOOST_TEST(k8s::key_of(one).ns == (scoped ? "" : "kyma-system"));
  }
  BOOST_TEST(all ==
             "NetworkPolicy kyma-project.io--seed-to-watcher\n"
             "NetworkPolicy kyma-project.io--watcher-to-apiserver\n"
             "NetworkPolicy kyma-project.io--metrics-to-watcher\n"
             "NetworkPolicy kyma-project.io--watcher-to-dns\n"
             "NetworkPolicy kyma-project.io--watcher-to-kube-apiserver\n"
             "PriorityClass skr-webhook-priority\n"
             "ServiceAccount skr-webhook\n"
             "Secret skr-webhook-tls\n"
             "ClusterRole skr-webhook\n"
             "ClusterRoleBinding skr-webhook\n"
             "Service skr-webhook\n"
             "Service skr-webhook-metrics\n"
             "Deployment skr-webhook\n"
             "ValidatingWebhookConfiguration skr-webhook\n");
}

BOOST_AUTO_TEST_CASE(watcher_becomes_a_webhook) {
  const auto all = webhooks(sample());
  BOOST_TEST_REQUIRE(all.as_array().size() == 1U);
  BOOST_TEST(all.at(0) == json::parse(R"({
    "name": "kcp-system.kyma.operator.kyma-project.io",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {
      "service": {"name": "skr-webhook", "namespace": "kyma-system",
                  "path": "/validate/lifecycle-manager"},
      "caBundle": "dGhlIGJ1bmRsZQ=="},
    "objectSelector": {"matchLabels": {"operator.kyma-project.io/watched-by": "kyma"}},
    "rules": [{"apiGroups": ["operator.kyma-project.io"], "apiVersions": ["*"],
               "resources": ["kymas"], "operations": ["CREATE", "UPDATE", "DELETE"]}],
    "sideEffects": "NoneOnDryRun",
    "timeoutSeconds": 5,
    "failurePolicy": "Ignore"})"));
}

BOOST_AUTO_TEST_CASE(probe_has_a_webhook_of_its_own) {
  const auto configuration =
      object_of(sample(), "ValidatingWebhookConfiguration", "skr-webhook", {.probed = true});
  const auto all = configuration.at("webhooks").as_array();
  BOOST_TEST_REQUIRE(all.size() == 2U);
  BOOST_TEST(all[1] == json::parse(R"({
    "name": "kyma-system.watcher-probe.operator.kyma-project.io",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {
      "service": {"name": "skr-webhook", "namespace": "kyma-system",
                  "path": "/validate/runtime-watcher"},
      "caBundle": "dGhlIGJ1bmRsZQ=="},
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kyma-system"}},
    "objectSelector": {"matchLabels": {"operator.kyma-project.io/watcher-probe": "true"}},
    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
               "operations": ["CREATE"]}],
    "sideEffects": "NoneOnDryRun",
    "timeoutSeconds": 3,
    "failurePolicy": "Fail"})"));
}

BOOST_AUTO_TEST_CASE(watched_status_is_a_subresource) {
  auto runtime = sample();
  runtime.watchers = {sample_watcher("kyma", "lifecycle-manager", watched_field::status)};
  BOOST_TEST(at(webhooks(runtime), "/0/rules/0/resources") == json::array{"kymas/status"});
}

BOOST_AUTO_TEST_CASE(subresource_is_in_the_rule) {
  auto runtime = sample();
  runtime.watchers.front().watched.subresource = "scale";
  BOOST_TEST(at(webhooks(runtime), "/0/rules/0/resources") == json::array{"kymas/scale"});
}

BOOST_AUTO_TEST_CASE(watcher_without_labels_watches_all_objects) {
  auto runtime = sample();
  runtime.watchers.front().labels.clear();
  BOOST_TEST(at(webhooks(runtime), "/0/objectSelector") == json::object());
}

BOOST_AUTO_TEST_CASE(webhooks_are_in_the_order_of_their_watchers_names) {
  auto runtime = sample();
  runtime.watchers = {sample_watcher("b"), sample_watcher("a", "warden"), sample_watcher("c")};
  const auto once = webhooks(runtime);
  std::ranges::reverse(runtime.watchers);
  BOOST_TEST(webhooks(runtime) == once);
  BOOST_TEST(at(once, "/0/name").as_string() == "kcp-system.a.operator.kyma-project.io");
  BOOST_TEST(at(once, "/0/clientConfig/service/path").as_string() == "/validate/warden");
  BOOST_TEST(at(once, "/2/name").as_string() == "kcp-system.c.operator.kyma-project.io");
}

BOOST_AUTO_TEST_CASE(kept_webhook_stays_as_it_is_but_for_the_bundle) {
  auto runtime = sample();
  runtime.watchers = {sample_watcher("former", "warden")};
  const auto former = webhooks(runtime).as_array().front();
  runtime.watchers = {sample_watcher()};
  runtime.kept_webhooks = {former};
  runtime.ca_bundle = "another";
  const auto all = webhooks(runtime).as_array();
  BOOST_TEST_REQUIRE(all.size() == 2U);
  BOOST_TEST(at(all[1], "/clientConfig/service/path") == "/validate/warden");
  BOOST_TEST(at(all[1], "/clientConfig/caBundle") == at(all[0], "/clientConfig/caBundle"));
  BOOST_TEST(at(all[1], "/clientConfig/caBundle") != at(former, "/clientConfig/caBundle"));
}

BOOST_AUTO_TEST_CASE(without_restart_trigger_the_label_is_the_manifests) {
  auto runtime = sample();
  runtime.restart_trigger.clear();
  BOOST_TEST(at(deployment(runtime), "/spec/template/metadata/labels")
                 .at("operator.kyma-project.io/pod-restart-trigger") == "0");
}

BOOST_AUTO_TEST_CASE(without_watchers_there_are_no_webhooks) {
  auto runtime = sample();
  runtime.watchers.clear();
  BOOST_TEST(webhooks(runtime) == json::array());
}

BOOST_AUTO_TEST_CASE(secret_holds_bundle_certificate_and_key) {
  const auto secret = object_of(sample(), "Secret", "skr-webhook-tls");
  BOOST_TEST(*k8s::secret_data(secret, "ca.crt") == "the bundle");
  BOOST_TEST(*k8s::secret_data(secret, "tls.crt") == "the certificate");
  BOOST_TEST(*k8s::secret_data(secret, "tls.key") == "the key");
  BOOST_TEST(k8s::annotation(secret, "operator.kyma-project.io/certificate-since") ==
             "2026-11-21T08:00:00Z");
  BOOST_TEST(!k8s::has_annotation(secret, applied_annotation));
}

BOOST_AUTO_TEST_CASE(configuration_says_since_when_it_has_its_bundle) {
  const auto object = object_of(sample(), "ValidatingWebhookConfiguration", "skr-webhook");
  BOOST_TEST(k8s::annotation(object, "operator.kyma-project.io/ca-bundle-since") ==
             "2026-11-21T09:00:00Z");
}

BOOST_AUTO_TEST_CASE(services_lead_to_the_webhook_and_its_metrics) {
  const auto service = object_of(sample(), "Service", "skr-webhook");
  BOOST_TEST(at(service, "/spec/ports") == json::parse(R"([{"name": "webhook", "protocol": "TCP",
    "port": 443, "targetPort": 8443}])"));
  BOOST_TEST(at(service, "/spec/selector") == json::parse(R"({"app": "skr-webhook"})"));
  const auto metrics = object_of(sample(), "Service", "skr-webhook-metrics");
  BOOST_TEST(at(metrics, "/spec/ports/0/port") == 2112);
}

BOOST_AUTO_TEST_CASE(priority_is_high) {
  const auto priority = object_of(sample(), "PriorityClass", "skr-webhook-priority");
  BOOST_TEST(at(priority, "/value") == 1000000000);
  BOOST_TEST(at(deployment(), (std::string(pod) + "/priorityClassName").c_str()).as_string() ==
             "skr-webhook-priority");
}

BOOST_AUTO_TEST_CASE(pods_are_labelled_and_restart_with_another_certificate) {
  BOOST_TEST(at(deployment(), "/spec/template/metadata/labels") == json::parse(R"({
    "app": "skr-webhook",
    "sidecar.istio.io/inject": "false",
    "operator.kyma-project.io/pod-restart-trigger": "4711"})"));
  BOOST_TEST(k8s::label(deployment(), "app") == "skr-webhook");
  BOOST_TEST(at(deployment(), "/spec/selector/matchLabels") ==
             json::parse(R"({"app": "skr-webhook"})"));
}

BOOST_AUTO_TEST_CASE(pods_may_do_as_little_as_possible) {
  BOOST_TEST(at(deployment(), "/spec/template/spec/securityContext") == json::parse(R"({
    "runAsNonRoot": true, "runAsUser": 10001, "runAsGroup": 30001,
    "seccompProfile": {"type": "RuntimeDefault"}})"));
  BOOST_TEST(at(deployment(), "/spec/template/spec/containers/0/securityContext") ==
             json::parse(R"({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                             "capabilities": {"drop": ["ALL"]}})"));
  // A token of its own account, which may read what the Watchers name.
  BOOST_TEST(at(deployment(), "/spec/template/spec/automountServiceAccountToken") == true);
  BOOST_TEST(at(deployment(), "/spec/template/spec/serviceAccountName") == "skr-webhook");
}

BOOST_AUTO_TEST_CASE(resources_image_and_pull_secrets_are_configurable) {
  BOOST_TEST(at(deployment(), "/spec/template/spec/containers/0/resources") == json::parse(R"({
    "requests": {"memory": "20Mi", "cpu": "0.01"}, "limits": {"memory": "200Mi", "cpu": "0.1"}})"));
  BOOST_TEST(!at(deployment(), pod).as_object().contains("imagePullSecrets"));
  const manifest_settings with{.image = "registry.example.com/watcher:1.2",
                               .pull_secrets = {"one", "two"},
                               .memory_limit = "300Mi"};
  const auto object = deployment(sample(), with);
  BOOST_TEST(at(object, "/spec/template/spec/containers/0/image").as_string() ==
             "registry.example.com/watcher:1.2");
  BOOST_TEST(at(object, "/spec/template/spec/containers/0/resources/limits/memory").as_string() ==
             "300Mi");
  BOOST_TEST(at(object, "/spec/template/spec/imagePullSecrets") ==
             json::parse(R"([{"name": "one"}, {"name": "two"}])"));
}

BOOST_AUTO_TEST_CASE(environment_is_what_the_webhook_reads) {
  const auto object = deployment();
  BOOST_TEST(variable(object, "KCP_ADDR") == "events.kcp.example.com:8443");
  BOOST_TEST(variable(object, "KCP_CONTRACT") == "v2");
  BOOST_TEST(variable(object, "WEBHOOK_PORT") == "8443");
  BOOST_TEST(variable(object, "METRICS_PORT") == "2112");
  const auto mount = std::string(
      at(object, "/spec/template/spec/containers/0/volumeMounts/0/mountPath").as_string());
  BOOST_TEST(variable(object, "CA_CERT") == mount + "/ca.crt");
  BOOST_TEST(variable(object, "TLS_CERT") == mount + "/tls.crt");
  BOOST_TEST(variable(object, "TLS_KEY") == mount + "/tls.key");
  BOOST_TEST(at(object, "/spec/template/spec/volumes/0/secret/secretName").as_string() ==
             "skr-webhook-tls");
  auto runtime = sample();
  runtime.address = {"2001:db8::1", 443};
  BOOST_TEST(variable(deployment(runtime), "KCP_ADDR") == "[2001:db8::1]:443");
}

BOOST_AUTO_TEST_CASE(policies_let_through_what_is_needed) {
  for (const auto* name :
       {"seed-to-watcher", "watcher-to-apiserver", "metrics-to-watcher", "watcher-to-dns"}) {
    BOOST_TEST(at(policy(name), "/podSelector/matchLabels/app").as_string() == "skr-webhook");
  }
  BOOST_TEST(at(policy("seed-to-watcher"), "/ingress/0/ports/0/port") == 8443);
  BOOST_TEST(at(policy("metrics-to-watcher"), "/ingress/0/ports/0/port") == 2112);
  BOOST_TEST(at(policy("watcher-to-apiserver"), "/egress") ==
             json::parse(R"([{"ports": [{"protocol": "TCP", "port": 8443}]}])"));
  BOOST_TEST(at(policy("watcher-to-apiserver"), "/policyTypes") == json::array{"Egress"});
  BOOST_TEST(at(policy("watcher-to-dns"), "/egress/0/ports/0") ==
             json::parse(R"({"protocol": "UDP", "port": 53})"));
}

BOOST_AUTO_TEST_CASE(applied_objects_differ_from_those_to_be_applied) {
  const auto digest = [](const inputs& runtime) {
    return std::string(k8s::annotation(deployment(runtime), applied_annotation));
  };
  auto other = sample();
  other.restart_trigger = "4712";
  BOOST_TEST(digest(sample()) == digest(sample()));
  BOOST_TEST(digest(sample()) != digest(other));
}

BOOST_AUTO_TEST_CASE(content_is_what_all_runtimes_have_alike) {
  const auto content = [](const inputs& runtime, const manifest_settings& with = {}) {
    return std::string(k8s::annotation(deployment(runtime, with), content_annotation));
  };
  auto other = sample();
  other.address.port = 9443;
  other.restart_trigger = "4712";
  other.watchers.push_back(sample_watcher("second"));
  BOOST_TEST(content(other) == content(sample()));
  const auto shared = shared_deployment(templates::built_in(), {});
  BOOST_TEST(content(sample()) == k8s::annotation(shared, content_annotation));
  BOOST_TEST(content(sample(), {.image = "another"}) != content(sample()));
  BOOST_TEST(content(sample(), {.memory_limit = "1Gi"}) != content(sample()));
  BOOST_TEST(content(sample(), {.scope = "canary=yes"}) != content(sample()));
}

BOOST_AUTO_TEST_CASE(facts_change_nothing_else_of_a_deployment) {
  auto before = deployment(sample(), {.image = "former"});
  auto after = before;
  auto runtime = sample();
  fill_facts(after, runtime);
  BOOST_TEST(after == before);
  runtime.address.host = "new.example.com";
  fill_facts(after, runtime);
  BOOST_TEST(variable(after, "KCP_ADDR") == "new.example.com:8443");
  fill_facts(after, sample());
  BOOST_TEST(after == before);
  // Nobody knows what a runtime answers.
  json::value odd{{"spec", {{"template", {{"spec", {{"containers", json::array{1}}}}}}}}};
  fill_facts(odd, runtime);
  BOOST_TEST(at(odd, "/spec/template/spec/containers/0") == 1);
}

BOOST_AUTO_TEST_CASE(manifests_of_ones_own_must_be_complete) {
  const auto wrong = [](const std::string& text) {
    const auto read = templates::parse(text, "mine");
    return read ? "nothing" : read.error().message;
  };
  BOOST_TEST(wrong("a: [") ==
             "mine: document 1, line 1: is not YAML: end of sequence flow not found");
  BOOST_TEST(wrong("") == "mine: there is no Secret skr-webhook-tls");
  const auto head = [](const char* api, const char* kind, const char* name) {
    return std::string("---\napiVersion: ") + api + "\nkind: " + kind +
           "\nmetadata: {name: " + name + ", namespace: kyma-system}\n";
  };
  auto text = head("v1", "Secret", "skr-webhook-tls");
  BOOST_TEST(wrong(text) == "mine: there is no Deployment skr-webhook with a container");
  text += head("apps/v1", "Deployment", "skr-webhook") +
          "spec: {template: {spec: {containers: [{name: a}]}}}\n";
  BOOST_TEST(wrong(text) ==
             "mine: there is no ValidatingWebhookConfiguration skr-webhook with a webhook as the "
             "pattern");
  text += head("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "skr-webhook") +
          "webhooks: [{name: a.b.c}]\n";
  BOOST_TEST(wrong(text) == "nothing");
  BOOST_TEST(wrong(text + head("example.com/v1", "Thing", "x")) ==
             "mine: Thing of example.com/v1 is no kind that every cluster has");
  BOOST_TEST(wrong(text + head("v1", "ConfigMap", "x") + head("v1", "ConfigMap", "x")) ==
             "mine: ConfigMap x is there twice");
  BOOST_TEST(wrong(text + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n") ==
             "mine: ConfigMap x is not in the namespace kyma-system");
}

BOOST_AUTO_TEST_CASE(directory_may_take_the_place_of_the_built_in_manifests) {
  const auto loaded = templates::load(rw::test::source_file("deploy/skr"));
  BOOST_TEST_REQUIRE(loaded.has_value(), loaded.error().message);
  BOOST_TEST((loaded->objects() == templates::built_in().objects()));
  BOOST_TEST(templates::load("/nowhere/at/all").has_error());
}

BOOST_AUTO_TEST_CASE(rights_are_those_of_the_watchers) {
  auto runtime = sample();
  runtime.observed = known_managers({{"a", {"op", "v1", "kymas"}, "spec", {}},
                                     {"a", {"op", "v1", "kymas"}, "status", {}},
                                     {"b", {"op", "*", "modules"}, "spec", {}},
                                     {"b", {"", "v1", "configmaps"}, "spec", {}},
                                     {"b", {"", "v1", "secrets"}, "spec", {}},
                                     {"b", {"apps", "v1", "deployments"}, "scale", {}},
                                     {"b", {"*", "v1", "jobs"}, "spec", {}},
                                     {"b", {"batch", "v1", "*"}, "spec", {}}});
  const auto role = object_of(runtime, "ClusterRole", "skr-webhook");
  BOOST_TEST(json::serialize(role.at("rules")) ==
             R"([{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list","watch"]},)"
             R"({"apiGroups":["op"],"resources":["kymas","modules"],)"
             R"("verbs":["get","list","watch"]}])");
  BOOST_TEST(object_of(sample(), "ClusterRole", "skr-webhook").at("rules").as_array().empty());
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::watcher_installer_test
