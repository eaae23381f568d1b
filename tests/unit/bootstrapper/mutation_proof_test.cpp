// A Pod must come back as the configuration demands, before a runtime counts as ready.

#include "rw/reactors/bootstrapper/mutation_proof.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include "tests/unit/run.hpp"
#include <string>
#include <vector>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(mutation_proof)

using bootstrapper::demanded_mutation;
using bootstrapper::render_input;

namespace {

/// All features in istio-system, one in kyma-system.
json::value all_features() {
  return json::parse(R"({"overrides": {"same.io": "same.io", "a.io": "b.io"},
    "clusterTrustBundle": {"name": "n", "volumeName": "certs"},
    "availableFeatures": ["rt-cfg.kyma-project.io/alter-img-registry",
      "rt-cfg.kyma-project.io/add-img-pull-secret",
      "rt-cfg.kyma-project.io/add-cluster-trust-bundle", "rt-cfg.kyma-project.io/set-fips-mode"],
    "namespaceFeatures": {"istio-system": ["rt-cfg.kyma-project.io/all"],
      "kyma-system": ["rt-cfg.kyma-project.io/add-img-pull-secret"]}})");
}

const demanded_mutation everything{.ns = "istio-system",
                                   .from = "a.io",
                                   .to = "b.io",
                                   .pull_secret = "registry-credentials",
                                   .volume = "certs",
                                   .environment = true};

/// The good sources with a webhook for the creation of pods.
render_input serving(const std::string& pem, const std::string& policy = "Ignore",
                     const std::string& more = {}) {
  auto out = good_sources(pem);
  auto text = manifests();
  const auto replace = [&text](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("pods/eviction", "pods");
  replace("failurePolicy: Ignore", "failurePolicy: " + policy + more);
  out.at(source_kind::manifests).object = manifests_source(text);
  return out;
}

/// Synced, the Deployment ready, and synced again.
asio::awaitable<bootstrapper::sync_state> synced(sync_env* env, render_input from) {
  co_await env->add_synced("skr", from);
  co_await env->set_ready("skr", deployment_key);
  auto state = co_await env->must_sync("skr", {from});
  co_return state;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(demands_are_those_of_available_features_by_namespace) {
  const auto all = bootstrapper::demanded_of(all_features(), {});
  BOOST_TEST_REQUIRE(all.size() == 2U);
  BOOST_TEST(
      (all[0] == demanded_mutation{.ns = "kyma-system", .pull_secret = "registry-credentials"}));
  BOOST_TEST((all[1] == everything));
  auto none = all_features();
  none.as_object()["availableFeatures"] = json::array();
  BOOST_TEST(bootstrapper::demanded_of(none, {}).empty());
  BOOST_TEST(bootstrapper::demanded_of(json::object(), {}).empty());
}

BOOST_AUTO_TEST_CASE(pod_without_what_is_demanded_is_told_what_it_lacks) {
  auto pod = bootstrapper::pod_to_mutate(everything);
  BOOST_TEST(bootstrapper::missing_in(pod, everything) ==
             "the registry b.io in place of a.io, the pull Secret registry-credentials, the trust "
             "bundle's volume certs, the variables of its features");
  auto& spec = pod.at("spec").as_object();
  // Another webhook may put its own container first.
  spec["containers"].as_array().insert(spec["containers"].as_array().begin(),
                                       json::value{{"name", "proxy"}});
  auto& container = spec["containers"].as_array().back().as_object();
  container["image"] = "b.io/runtime-watcher/proof:1";
  container["env"] = json::array{{{"name", "KYMA_FIPS_MODE_ENABLED"}, {"value", "true"}}};
  spec["volumes"] = json::array{{{"name", "certs"}}};
  spec["imagePullSecrets"] = json::array{{{"name", "another"}}};
  BOOST_TEST(bootstrapper::missing_in(pod, everything) == "the pull Secret registry-credentials");
  spec["imagePullSecrets"].as_array().push_back(json::object{{"name", "registry-credentials"}});
  BOOST_TEST(bootstrapper::missing_in(pod, everything).empty());
  BOOST_TEST(!bootstrapper::missing_in({}, everything).empty());
}

BOOST_AUTO_TEST_CASE(webhook_is_called_where_its_selectors_match) {
  json::value webhook = json::object();
  const json::value ns{{"metadata", {{"labels", {{"kubernetes.io/metadata.name", "a"}}}}}};
  const auto called = [&](std::string_view field, const char* text) {
    webhook.as_object()[field] = json::parse(text);
    return bootstrapper::is_called_in(webhook, ns);
  };
  BOOST_TEST(bootstrapper::is_called_in(webhook, ns));
  BOOST_TEST(called("objectSelector", R"({"matchExpressions": [{"key": "app.kubernetes.io/name",
    "operator": "NotIn", "values": ["rt-bootstrapper"]}]})"));
  BOOST_TEST(called("namespaceSelector", R"({"matchExpressions": [
    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}]})"));
  BOOST_TEST(!called("namespaceSelector", R"({"matchLabels": {"b": "c"}})"));
  BOOST_TEST(called("namespaceSelector", "{}"));
  BOOST_TEST(!called("matchConditions", R"([{"name": "n", "expression": "true"}])"));
}

BOOST_AUTO_TEST_CASE(failure_is_the_bootstrappers_where_the_server_names_its_webhook) {
  const std::vector<json::value> webhooks{{{"name", "mpod-v1.kb.io"}}};
  const auto judge = [&](const std::string& message) {
    return bootstrapper::judge_failure({.code = k8s::errc::forbidden, .message = message}, "a",
                                       webhooks);
  };
  for (const auto* text :
       {"admission webhook \"mpod-v1.kb.io\" denied the request: unknown feature",
        "Internal error occurred: failed calling webhook \"mpod-v1.kb.io\": no endpoints"}) {
    BOOST_TEST(has(judge(text).error, text));
    BOOST_TEST(judge(text).skipped.empty());
  }
  for (const auto* text : {"admission webhook \"mpod-v1.kb.io\" does not support dry run",
                           "admission webhook \"other\" denied the request: no",
                           "pods is forbidden: User \"a\" cannot create resource \"pods\""}) {
    BOOST_TEST(judge(text).error.empty());
    BOOST_TEST(has(judge(text).skipped, text));
  }
  const k8s::failure late{.code = k8s::errc::timed_out, .message = "late"};
  BOOST_TEST(!bootstrapper::judge_failure(late, "a", webhooks).error.empty());
}

RW_COROUTINE_TEST(pod_that_comes_back_as_it_was_is_an_error, sync_env) {
  const auto state = co_await synced(env, serving(ca_pem()));
  BOOST_TEST(has(state.proof.error,
                 "a Pod in the namespace kyma-system does not get the registry "
                 "registry.example.com in place of europe-docker.pkg.dev"),
             state.proof.error);
  BOOST_TEST(state.writes == 0U);
}

RW_COROUTINE_TEST(webhook_that_does_not_answer_is_an_error, sync_env) {
  const auto state = co_await synced(env, serving(ca_pem(), "Fail"));
  BOOST_TEST(has(state.proof.error, "failed calling webhook"), state.proof.error);
}

RW_COROUTINE_TEST(webhook_that_is_called_nowhere_is_not_proven, sync_env) {
  const auto state = co_await synced(
      env, serving(ca_pem(), "Ignore", "\n    namespaceSelector: {matchLabels: {a: b}}"));
  BOOST_TEST(state.proof.error == "");
  BOOST_TEST(has(state.proof.skipped, "is called in no namespace"), state.proof.skipped);
}

RW_COROUTINE_TEST(pod_that_must_not_be_created_proves_nothing, sync_env) {
  const auto from = serving(ca_pem());
  co_await env->add_synced("skr", from);
  co_await env->set_ready("skr", deployment_key);
  env->faults["skr"] = {.refuse = 1, .only_path = "/pods"};
  const auto state = co_await env->must_sync("skr", {from});
  BOOST_TEST(state.proof.error == "");
  BOOST_TEST(has(state.proof.skipped, "could not be tried"), state.proof.skipped);
}

RW_COROUTINE_TEST(deployment_that_is_not_ready_is_not_tried, sync_env) {
  const auto from = serving(ca_pem());
  co_await env->add_synced("skr", from);
  env->faults["skr"] = {};
  const auto state = co_await env->must_sync("skr", {from});
  BOOST_TEST(state.proof.error == "");
  BOOST_TEST(env->faults["skr"].seen == 0);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
