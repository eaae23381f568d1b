#include "k8s/kubeconfig.hpp"
#include "k8s/manifests.hpp"
#include "k8s/object_api.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/test_env.hpp"
#include "tests/unit/run.hpp"
#include <fstream>
#include <iterator>
#include <utility>

namespace rw::bootstrapper_test {

namespace {

const k8s::resource_type definitions{
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"}, "customresourcedefinitions", false};

json::value object_of(const k8s::resource_type& type, const std::string& ns,
                      const std::string& name) {
  json::object metadata{{"name", name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return {{"apiVersion", type.gvk.api_version()},
          {"kind", type.gvk.kind},
          {"metadata", std::move(metadata)}};
}

k8s::resource_type type_of(const json::value& object) {
  const auto known = k8s::well_known_type(k8s::find_string(object, {"apiVersion"}),
                                          k8s::find_string(object, {"kind"}));
  return known.value_or(bundles);
}

asio::awaitable<void> end(core::task_group* tasks) {
  tasks->cancel();
  co_await tasks->join();
}

}  // namespace

test_env::test_env(bootstrapper::options with) : with_(std::move(with)) {
  static const auto pem = ca_pem();
  now = good_sources(pem);
  with_.defaults.trust_bundle = bundle_name;
  server.add_cluster("kcp");
  tasks_.spawn(watchdog.run());
  tasks_.spawn(server.run());
}

test_env::~test_env() {
  test::run(context, [](test_env* self) -> asio::awaitable<void> {
    if (self->reacting_) co_await end(self->reacting_.get());
    co_await end(&self->tasks_);
    if (self->pool_) co_await self->pool_->close();
    for (auto& [name, api] : self->clients_) co_await api->close();
  }(this));
  reactor.reset();  // before the informers that it has indexes on
}

k8s::client& test_env::api(const std::string& cluster) {
  auto& api = clients_[cluster];
  if (!api) {
    auto how = k8s::parse_kubeconfig(server.kubeconfig(cluster, "test"), cluster, "");
    api = std::make_unique<k8s::client>(context.get_executor(), std::move(*how),
                                        k8s::client_options{.name = "test"},
                                        k8s::client_environment{clock, watchdog, log, numbers});
  }
  return *api;
}

asio::awaitable<void> test_env::create(std::string cluster, k8s::resource_type type,
                                       json::value object) {
  const auto name = k8s::key_of(object).name;
  const auto made = co_await api(cluster).create(std::move(type), std::move(object));
  BOOST_REQUIRE_MESSAGE(made.has_value(), name << ": " << made.error().message);
}

asio::awaitable<void> test_env::define(std::string file) {
  std::ifstream in(RW_SOURCE_DIR "/deploy/" + file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto all = k8s::parse_manifests(text);
  BOOST_REQUIRE_MESSAGE(all.has_value(), file << ": " << all.error().message());
  for (const auto& one : *all) co_await create("kcp", definitions, one);
}

std::unique_ptr<k8s::informer> test_env::inform(const k8s::resource_type& type,
                                                k8s::selection what) {
  auto made = std::make_unique<k8s::informer>(
      api("kcp"), type, k8s::informer_options{.what = std::move(what)},
      k8s::informer_environment{clock, log, numbers, core::make_random_source()});
  tasks_.spawn(made->run());
  return made;
}

void test_env::start() {
  bootstrappers_ = inform(bootstrapper::runtime_bootstrappers_type(), {.ns = "kcp-system"});
  runtimes_ = inform(runtimes_type(), {.ns = "kcp-system", .metadata_only = true});
  kubeconfigs_ =
      inform(secrets_type(), {.ns = "kcp-system", .labels = std::string(kyma_name_label)});
  config_maps_ = inform(config_maps_type(), {.ns = "kcp-system"});
  secrets_ = inform(secrets_type(), {.ns = "kcp-system"});
  bundles_ = inform(bundles, {});
  react();
}

void test_env::react() {
  reactor = std::make_unique<bootstrapper::direct_sync>(
      context.get_executor(), with_,
      bootstrapper::sources{*bootstrappers_, *runtimes_, *kubeconfigs_, *config_maps_, *secrets_,
                            bundles_.get()},
      bootstrapper::environment{.kcp = api("kcp"),
                                .runtimes = *pool_,
                                .events = *events_,
                                .clock = clock,
                                .watchdog = watchdog,
                                .log = log,
                                .metrics = numbers,
                                .random = core::make_random_source(),
                                .gate = gate});
  reacting_ = std::make_unique<core::task_group>(context.get_executor());
  reacting_->spawn(reactor->run());
}

asio::awaitable<void> test_env::begin() {
  for (const auto* file : {"crds/operator.kyma-project.io_runtimebootstrappers.yaml",
                           "crds/operator.kyma-project.io_runtimerollouts.yaml",
                           "dev/infrastructuremanager.kyma-project.io_runtimes.yaml"}) {
    co_await define(file);
  }
  for (const auto* name : {"kcp-system", "runtime-watcher-system"}) {
    co_await create("kcp", namespaces_type(), object_of(namespaces_type(), {}, name));
  }
  co_await set_source(now.at(source_kind::trust_bundle).object);
  co_await set_source(now.at(source_kind::pull_secret).object);
  co_await set_source(now.at(source_kind::configuration).object);
  co_await set_source(now.at(source_kind::manifests).object);
  k8s::client_options impatient{.name = "runtimes"};
  impatient.request = std::chrono::seconds(2);
  impatient.retries = 1;
  pool_ = std::make_unique<k8s::client_pool>(
      context.get_executor(), k8s::client_pool_options{.client = impatient},
      k8s::client_environment{clock, watchdog, log, numbers});
  events_ = std::make_unique<k8s::event_recorder>(
      context.get_executor(), k8s::objects_of(api("kcp")),
      k8s::event_recorder_options{.component = "runtime-bootstrapper"},
      k8s::event_recorder_environment{clock, log, numbers, core::make_random_source()});
  tasks_.spawn(events_->run());
  start();
}

asio::awaitable<void> test_env::add_runtime(std::string name, std::string mode) {
  server.add_cluster(name);
  server.faults(name).decide = [this, name](const std::string& verb, const std::string&) {
    const bool writing = !reads(verb);
    if (writing) ++writes[name];
    if (writing && wrote) wrote(name);
    k8s::devserver::fault out;
    if (hanging[name] || (writing && hanging_writes[name])) out.latency = std::chrono::hours(1);
    return out;
  };
  co_await create(name, namespaces_type(), object_of(namespaces_type(), {}, "kyma-system"));
  writes[name] = 0;
  auto secret = object_of(secrets_type(), "kcp-system", "kubeconfig-" + name);
  k8s::set_label(secret, kyma_name_label, "kyma-of-" + name);
  k8s::set_secret_data(secret, "config", server.kubeconfig(name, "manager"));
  co_await create("kcp", secrets_type(), std::move(secret));
  auto runtime = object_of(runtimes_type(), "kcp-system", name);
  k8s::set_label(runtime, kyma_name_label, "kyma-of-" + name);
  k8s::set_annotation(runtime, signalled_annotation, signalled_nothing);
  if (!mode.empty()) k8s::set_annotation(runtime, bootstrapper_mode_annotation, mode);
  co_await create("kcp", runtimes_type(), std::move(runtime));
}

asio::awaitable<void> test_env::add_bootstrapper(std::string name) {
  auto object = object_of(bootstrapper::runtime_bootstrappers_type(), "kcp-system", name);
  object.as_object()["spec"] = {{"runtimeRef", {{"name", name}}},
                                {"pullSecretRef", {{"name", "registry-credentials"}}},
                                {"trustBundleRef", {{"name", bundle_name}}}};
  co_await create("kcp", bootstrapper::runtime_bootstrappers_type(), std::move(object));
}

asio::awaitable<void> test_env::annotate_runtime(std::string name, std::string annotation,
                                                 json::value value) {
  json::object annotations;
  annotations[annotation] = std::move(value);
  const json::value change{{"metadata", {{"annotations", std::move(annotations)}}}};
  const auto done = co_await api("kcp").patch(runtimes_type(), {"kcp-system", name},
                                              k8s::patch_type::merge, change);
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<void> test_env::set_source(json::value object) {
  const auto done = co_await api("kcp").apply(type_of(object), object, {.force = true});
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<void> test_env::remove_source(k8s::resource_type type, std::string name) {
  co_await remove("kcp", type, {type.namespaced ? "kcp-system" : "", name});
}

asio::awaitable<void> test_env::remove(std::string cluster, k8s::resource_type type,
                                       k8s::object_key key) {
  const auto done = co_await api(cluster).remove(type, key);
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<void> test_env::change(std::string name, json::value spec) {
  const json::value change{{"spec", std::move(spec)}};
  const auto done = co_await api("kcp").patch(bootstrapper::runtime_bootstrappers_type(),
                                              {"kcp-system", name}, k8s::patch_type::merge, change);
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<void> test_env::set_ready(std::string runtime) {
  const k8s::object_key key{"kyma-system", "rt-bootstrapper-controller-manager"};
  std::int64_t generation = 0;
  const bool there =
      co_await until(runtime, deployments, key, [&generation](const json::value& one) {
        generation = k8s::generation_of(one);
        return one.is_object();
      });
  BOOST_REQUIRE(there);
  const json::value status = {{"status",
                               {{"observedGeneration", generation},
                                {"replicas", 1},
                                {"updatedReplicas", 1},
                                {"readyReplicas", 1}}}};
  const auto done = co_await api(runtime).patch(deployments, key, k8s::patch_type::merge, status,
                                                {.subresource = "status"});
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().message);
}

asio::awaitable<bool> test_env::until(std::string cluster, k8s::resource_type type,
                                      k8s::object_key key,
                                      std::function<bool(const json::value&)> good) {
  const auto end = std::chrono::steady_clock::now() + test::patience / 2;
  while (std::chrono::steady_clock::now() < end) {
    auto got = co_await api(cluster).get(type, key);
    if (got ? good(*got) : got.error().is(k8s::errc::not_found) && good(nullptr)) co_return true;
    co_await test::turn();
  }
  co_return false;
}

asio::awaitable<json::value> test_env::status(std::string name) {
  auto got =
      co_await api("kcp").get(bootstrapper::runtime_bootstrappers_type(), {"kcp-system", name});
  BOOST_REQUIRE_MESSAGE(got.has_value(), got.error().message);
  co_return *got;
}

asio::awaitable<bool> test_env::until_condition(std::string name, std::string condition,
                                                std::string is, std::string reason) {
  std::string last;
  const bool told =
      co_await until("kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", name},
                     [&](const json::value& one) {
                       const auto found = k8s::find_condition(one, condition);
                       if (found)
                         last = found->status + " " + found->reason + ": " + found->message;
                       return found && found->status == is && found->reason == reason;
                     });
  BOOST_TEST(told, condition << " is " << last << " and not " << is << " " << reason);
  co_return told;
}

asio::awaitable<bool> test_env::until_state(std::string name, std::string state) {
  const bool told = co_await until(
      "kcp", bootstrapper::runtime_bootstrappers_type(), {"kcp-system", name},
      [&](const json::value& one) { return k8s::find_string(one, {"status", "state"}) == state; });
  co_return told;
}

asio::awaitable<void> test_env::stop() {
  if (reacting_) co_await end(reacting_.get());
  reacting_.reset();
  reactor.reset();
}

asio::awaitable<void> test_env::restart() {
  co_await stop();
  react();
}

double test_env::metric(const std::string& series) const {
  const auto text = '\n' + core::expose(numbers);
  const auto line = '\n' + series + ' ';
  const auto at = text.find(line);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + line.size()));
}

}  // namespace rw::bootstrapper_test
