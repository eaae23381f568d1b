#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/config_sync/config_sync.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include "tests/unit/bootstrapper/test_env.hpp"
#include "tests/unit/run.hpp"
#include <utility>

namespace rw::bootstrapper_test {

using namespace std::chrono_literals;

namespace {

void require(bool holds, place where, const std::string& otherwise) {
  const auto line = std::to_string(where.line());
  test::require(holds, std::string(where.file_name()) + ":" + line + ": " + otherwise);
}

asio::awaitable<void> end(core::task_group* tasks) {
  tasks->cancel();
  co_await tasks->join();
}

}  // namespace

bootstrapper::direct_sync_options quick_options() {
  bootstrapper::direct_sync_options out;
  out.mode = bootstrapper_mode::direct;
  out.ready_interval = 50ms;
  out.ready_interval_limit = 200ms;
  out.backoff_base = 50ms;
  out.backoff_limit = 500ms;
  out.drift_delay = 20ms;
  out.unused_content_after = 100ms;
  return out;
}

k8s::client_pool_options impatient() {
  return {.client = {.name = "runtimes", .request = 2s, .retries = 1}};
}

test::object_check has_data(const json::value& of) {
  return [data = of.at("data")](const json::value& object) {
    return object.is_object() && object.at("data") == data;
  };
}

test_env::test_env(bootstrapper::direct_sync_options with, k8s::client_pool_options runtimes)
    : with_(std::move(with)), pool_(open_pool(std::move(runtimes))) {
  static const auto pem = ca_pem();
  now = good_sources(pem);
  with_.defaults.trust_bundle = bundle_name;
}

test_env::~test_env() {
  end_faults();
  if (reacting_) test::run(context, end(reacting_.get()));
  test::run(context, end(&observing_runtimes_));
  reactor.reset();  // before the informers that it has indexes on
  shut_down();
}

void test_env::start() {
  const auto inform_of = [this](const k8s::resource_type& type, k8s::selection what) {
    return &inform(type, {.objects = std::move(what)});
  };
  const std::string label(kyma_name_label);
  auto* const bootstrappers =
      inform_of(bootstrapper::runtime_bootstrappers_type(), {.ns = "kcp-system"});
  runtimes_ = std::make_unique<k8s::informer>(
      api("kcp"), runtimes_type(), config_sync::runtimes_informer(with_.runtime_condition),
      informer_environment());
  observing_runtimes_.spawn(runtimes_->run());
  auto* const kubeconfigs = inform_of(secrets_type(), {.ns = "kcp-system", .labels = label});
  auto* const config_maps = inform_of(config_maps_type(), {.ns = "kcp-system"});
  auto* const secrets = inform_of(secrets_type(), {.ns = "kcp-system", .labels = "!" + label});
  from_ = std::make_unique<bootstrapper::sources>(
      *bootstrappers, *runtimes_, *kubeconfigs,
      source_informers{*config_maps, *secrets, *inform_of(bundles, {})});
  events_ = &record_events("runtime-bootstrapper");
  react();
}

void test_env::react() {
  reactor = std::make_unique<bootstrapper::direct_sync>(
      context.get_executor(), with_, *from_,
      runtime_environment{.kcp = api("kcp"),
                          .runtimes = pool_,
                          .events = *events_,
                          .clock = clock,
                          .watchdog = watchdog,
                          .log = log,
                          .metrics = numbers,
                          .random = core::make_random_source()},
      gate);
  reacting_ = std::make_unique<core::task_group>(context.get_executor());
  reacting_->spawn(reactor->run());
}

asio::awaitable<void> test_env::begin() {
  const auto records =
      with_.state_namespace;  // gcc 14 can't compile a list with members in co_await
  co_await define({"crds/operator.kyma-project.io_runtimebootstrappers.yaml",
                   "crds/operator.kyma-project.io_runtimerollouts.yaml",
                   "dev/infrastructuremanager.kyma-project.io_runtimes.yaml"},
                  {"kcp-system", records});
  for (const auto which : {source_kind::trust_bundle, source_kind::pull_secret, source_kind::config,
                           source_kind::manifests}) {
    co_await set_source(now.at(which).object);
  }
  start();
}

asio::awaitable<void> test_env::add_runtime(std::string name, std::string mode) {
  json::object annotations;
  annotations[signalled_annotation] = signalled_nothing;
  if (!mode.empty()) annotations[bootstrapper_mode_annotation] = mode;
  co_await environment::add_runtime(std::move(name), std::move(annotations));
}

asio::awaitable<void> test_env::add_bootstrapper(std::string name, json::value spec) {
  const auto& type = bootstrapper::runtime_bootstrappers_type();
  auto object = test::object_of(type, "kcp-system", name);
  object.as_object()["spec"] = {{"runtimeRef", {{"name", name}}},
                                {"pullSecretRef", {{"name", "registry-credentials"}}},
                                {"trustBundleRef", {{"name", bundle_name}}}};
  for (const auto& [field, value] : spec.as_object()) object.at("spec").as_object()[field] = value;
  co_await create("kcp", std::move(object), type);
}

asio::awaitable<void> test_env::begin_with(std::vector<std::string> runtimes) {
  co_await begin();
  for (const auto& name : runtimes) {
    co_await add_runtime(name);
    co_await add_bootstrapper(name);
  }
  for (const auto& name : runtimes) {
    co_await until_condition(name, "ConfigurationSynced", "True", "Synced");
  }
}

asio::awaitable<void> test_env::annotate_runtime(std::string name, std::string annotation,
                                                 json::value value) {
  json::object annotations;
  annotations[annotation] = std::move(value);
  json::value change{{"metadata", {{"annotations", std::move(annotations)}}}};
  co_await merge(runtimes_type(), {"kcp-system", name}, std::move(change));
}

asio::awaitable<void> test_env::set_source(json::value object) {
  auto type = test::type_of(object);
  co_await apply(std::move(object), std::move(type));
}

asio::awaitable<void> test_env::remove_source(k8s::resource_type type, std::string name) {
  k8s::object_key key{type.namespaced ? "kcp-system" : "", name};
  co_await remove("kcp", std::move(type), std::move(key));
}

asio::awaitable<void> test_env::change(std::string name, json::value spec) {
  json::value change{{"spec", std::move(spec)}};
  co_await merge(bootstrapper::runtime_bootstrappers_type(), {"kcp-system", name},
                 std::move(change));
}

asio::awaitable<void> test_env::set_ready(std::string runtime) {
  co_await environment::set_ready(std::move(runtime), deployment_key);
}

asio::awaitable<json::value> test_env::status(std::string name) {
  const auto& type = bootstrapper::runtime_bootstrappers_type();
  auto object = co_await must(api("kcp").get(type, {"kcp-system", name}));
  co_return object;
}

asio::awaitable<void> soon(std::function<bool()> holds, place where) {
  const bool came = co_await test::eventually(std::move(holds));
  require(came, where, "it does not hold in time");
}

asio::awaitable<void> test_env::until(std::string cluster, k8s::resource_type type,
                                      k8s::object_key key, test::object_check good, place where) {
  const auto what = type.gvk.kind + " " + to_string(key) + " is not so in time";
  const bool came = co_await environment::until(std::move(cluster), std::move(type), std::move(key),
                                                std::move(good));
  require(came, where, what);
}

asio::awaitable<void> test_env::until_event(std::string about, std::string reason, std::string text,
                                            place where) {
  const bool came = co_await environment::until_event(std::move(about), reason, std::move(text));
  require(came, where, "no event " + reason);
}

asio::awaitable<void> test_env::until_resource(std::string name, test::object_check good,
                                               place where) {
  co_await until("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", name},
                 std::move(good), where);
}

asio::awaitable<void> test_env::until_condition(std::string name, std::string condition,
                                                std::string is, std::string reason, place where) {
  std::string last;
  const bool came = co_await environment::until(
      "kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", name},
      [&](const json::value& one) {
        const auto found = k8s::find_condition(one, condition);
        if (found) last = found->status + " " + found->reason + ": " + found->message;
        return found && found->status == is && found->reason == reason;
      });
  require(came, where, condition + " is " + last + " and not " + is + " " + reason);
}

asio::awaitable<void> test_env::until_state(std::string name, std::string state, place where) {
  co_await until_resource(
      std::move(name),
      [&](const json::value& one) { return k8s::find_string(one, {"status", "state"}) == state; },
      where);
}

asio::awaitable<void> test_env::until_metric(std::string series, double least, place where) {
  const bool came = co_await test::eventually([&] { return metric(series) >= least; });
  require(came, where, series + " is " + std::to_string(metric(series)));
}

asio::awaitable<void> test_env::stop_observing_runtimes() {
  co_await end(&observing_runtimes_);
}

asio::awaitable<void> test_env::pause() {
  if (reacting_) co_await end(reacting_.get());
  reacting_.reset();
}

asio::awaitable<void> test_env::stop() {
  co_await pause();
  reactor.reset();
}

asio::awaitable<void> test_env::restart() {
  co_await stop();
  react();
}

asio::awaitable<void> one_ready_runtime(test_env* env) {
  co_await env->begin();
  co_await env->add_runtime("skr");
  co_await env->add_bootstrapper("skr");
  co_await env->set_ready("skr");
  co_await env->until_state("skr", "Ready");
}

}  // namespace rw::bootstrapper_test
