// A set on a real API server, with its defaults and schemas, as on the embedded one. Trust bundles
// are left out: not every version serves them.

#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/bootstrapper/status.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include "tests/unit/run.hpp"
#include <string>

namespace rw::bootstrapper_test {
BOOST_AUTO_TEST_SUITE(any_server)

using bootstrapper::render_input;
using bootstrapper::unit;

namespace {

/// These tests run against a real API server as well.
const boost::unit_test::label kube("kube");

render_input generation(const std::string& version, const std::string& extra,
                        const std::string& data = "{a: b}") {
  auto out = good_sources({}, version);
  out.at(source_kind::trust_bundle) = {};
  out.at(source_kind::pull_secret).object = pull_secret("password of " + version);
  out.at(source_kind::config).object =
      config_map(R"({"overrides": {"a.example.com": "b-)" + version + R"(.example.com"}})");
  out.at(source_kind::config).object.as_object()["data"].as_object()["of-" + version] = "x";
  auto text = manifests(version, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + extra +
                                     ", namespace: kyma-system}\ndata: " + data + "\n" +
                                     R"(---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: rt-bootstrapper, namespace: kyma-system}
spec:
  podSelector: {matchLabels: {app: rt-bootstrapper}}
  policyTypes: [Ingress]
  ingress: [{ports: [{port: 9443, protocol: TCP}]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: rt-bootstrapper}
rules: [{apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list, watch]}]
)");
  out.at(source_kind::manifests).object = manifests_source(text);
  return out;
}

/// What tests may have left on a real server.
std::vector<render_input> leftovers() {
  return {generation("1.0.0", "old"), generation("2.0.0", "new")};
}

}  // namespace

asio::awaitable<void> settles(sync_env* env) {
  co_await env->add_any(leftovers());
  auto first = generation("1.0.0", "old");
  // The server writes quantities in a form of its own.
  auto& manifests = first.at(source_kind::manifests).object.at("data").at("manifests.yaml");
  std::string text(manifests.as_string());
  text.insert(text.find("      containers:"),
              "      volumes: [{name: tmp, emptyDir: {sizeLimit: 1024Mi}}]\n");
  manifests = text;
  auto report = co_await env->must_sync("skr", {first});
  for (const auto& each : report.units)
    BOOST_TEST((each.rejected ? each.rejected->message : "") == "");
  report = co_await env->must_sync("skr", {first});
  BOOST_TEST(report.writes == 0U);
  for (const auto& each : report.units) BOOST_TEST(each.differences.empty());
  for (const std::string document :
       {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: broken, namespace: kyma-system}\n"
        "spec: {}\n",
        "apiVersion: v1\nkind: Service\nmetadata: {name: broken, namespace: kyma-system}\n"
        "spec: {port: 1}\n"}) {
    auto broken = first;
    auto& data = broken.at(source_kind::manifests).object.at("data");
    data.as_object()["manifests.yaml"] = text + "---\n" + document;
    report = co_await env->must_sync("skr", {broken, first});
    const auto& rejected = report.at(unit::bootstrapper).rejected;
    BOOST_TEST_REQUIRE(rejected.has_value());
    BOOST_TEST(rejected->message.find("kyma-system/broken") != std::string::npos);
    BOOST_TEST(report.writes == 0U);
  }
}

BOOST_AUTO_TEST_CASE(sync_in_place_costs_reads_only_and_a_broken_revision_is_rejected, *kube) {
  sync_env env;
  test::run(env.context, settles(&env));
}

asio::awaitable<void> stops_anywhere(sync_env* env) {
  const auto first = generation("1.0.0", "old");
  const auto second = generation("2.0.0", "new");
  bool complete = false;
  int k = 0;
  for (; !complete && k < 40; ++k) {
    co_await env->add_any(leftovers());
    co_await env->must_sync("skr", {first});
    env->like.may_write = [left = k]() mutable { return left-- > 0; };
    const auto stopped = co_await env->sync("skr", {second});
    env->like.may_write = {};
    complete = stopped.has_value();
    BOOST_TEST((complete || stopped.error().is(k8s::errc::fenced)));
    co_await env->must_sync("skr", {first});
    bool good = co_await env->has_all("skr", first, second);
    BOOST_TEST(good, "not the old revision after " << k << " writes");
    co_await env->must_sync("skr", {second});
    good = co_await env->has_all("skr", second, first);
    BOOST_TEST(good, "not the new revision after " << k << " writes");
  }
  BOOST_TEST(complete);
  BOOST_TEST(k > 5);
}

BOOST_AUTO_TEST_CASE(sync_that_stops_before_any_write_is_undone_or_completed, *kube) {
  sync_env env;
  test::run(env.context, stops_anywhere(&env));
}

asio::awaitable<void> takes_over(sync_env* env) {
  co_await env->add_any(leftovers());
  const auto set = generation("1.0.0", "old");
  json::value ns{
      {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "kyma-system"}}}};
  co_await env->must(env->api("skr")->apply({{"", "v1", "Namespace"}, "namespaces", false}, ns,
                                            {.field_manager = "manager", .force = true}));
  co_await env->install_as_kim("skr", set);
  const auto before = co_await env->get("skr", "Deployment", deployment_key.name);
  const auto report = co_await env->must_sync("skr", {set});
  for (const auto& each : report.units) {
    BOOST_TEST((each.rejected ? each.rejected->message : "") == "");
    BOOST_TEST(each.differences.empty());
  }
  const auto after = co_await env->get("skr", "Deployment", deployment_key.name);
  BOOST_TEST(k8s::generation_of(after) == k8s::generation_of(before));
  // A field that KIM's create has set goes with the first revision that lacks it.
  const auto next = generation("1.0.0", "old", "{c: d}");
  co_await env->must_sync("skr", {next});
  const auto config = co_await env->get("skr", "ConfigMap", "old");
  BOOST_TEST((config.at("data") == json::value{{"c", "d"}}));
}

BOOST_AUTO_TEST_CASE(objects_of_kim_are_taken_over_without_a_new_generation, *kube) {
  sync_env env;
  test::run(env.context, takes_over(&env));
}

/// The definition as deploy/ has it, waited for until it is served.
asio::awaitable<void> define(sync_env* env) {
  const auto all = test::documents_of("crds/operator.kyma-project.io_runtimebootstrappers.yaml");
  co_await env->must(env->api("skr")->apply(test::definitions, all.front(), {.force = true}));
  const auto end = std::chrono::steady_clock::now() + test::patience / 2;
  bool served = false;
  while (!served && std::chrono::steady_clock::now() < end) {
    const auto list =
        co_await env->api("skr")->list(bootstrapper::runtime_bootstrappers_type(), {});
    served = list.has_value();
    if (!served) co_await test::turn();
  }
  BOOST_REQUIRE(served);
}

asio::awaitable<void> fits_its_schema(sync_env* env) {
  co_await env->add_any(leftovers());
  co_await define(env);
  json::value runtime{{"apiVersion", "infrastructuremanager.kyma-project.io/v1"},
                      {"kind", "Runtime"},
                      {"metadata", {{"name", "schema"}, {"namespace", "default"}, {"uid", "1"}}}};
  auto object = bootstrapper::resource_for(runtime, {});
  object.at("spec").as_object()["adopt"] = true;
  const auto& type = bootstrapper::runtime_bootstrappers_type();
  const auto made = co_await env->api("skr")->apply(type, object, {.force = true});
  BOOST_REQUIRE_MESSAGE(made.has_value(), made.error().message);
  BOOST_TEST(made->at("spec") == object.at("spec"));
  bootstrapper::status_input input{.mode = bootstrapper_mode::direct, .observed = true};
  input.state.units[0] = {.desired = "a", .applied = "a", .warnings = {"w"}};
  input.state.units[1] = {.invalid = "x", .applied = "b", .version = "1"};
  input.state.objects = {{unit::credentials, {"", "v1", "Secret"}, {"kyma-system", "s"}}};
  auto status = bootstrapper::next_status(*made, input, std::chrono::system_clock::now());
  BOOST_REQUIRE(status.has_value());
  const json::value change{{"status", *status}};
  const auto told = co_await env->api("skr")->patch(
      type, k8s::key_of(*made), k8s::patch_type::merge, change, {.subresource = "status"});
  BOOST_REQUIRE_MESSAGE(told.has_value(), told.error().message);
  BOOST_TEST(told->at("status") == *status);
  json::value wrong = object;
  wrong.at("spec").as_object()["adopt"] = "maybe";
  const auto refused = co_await env->api("skr")->apply(type, wrong, {.force = true});
  BOOST_TEST(refused.has_error());
  const auto gone = co_await env->api("skr")->remove(type, k8s::key_of(*made));
  BOOST_TEST(gone.has_value());
}

BOOST_AUTO_TEST_CASE(resource_and_its_status_fit_the_schema, *kube) {
  sync_env env;
  test::run(env.context, fits_its_schema(&env));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::bootstrapper_test
