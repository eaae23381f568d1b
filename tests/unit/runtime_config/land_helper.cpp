#include "k8s/client_pool.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "k8s/kubeconfig.hpp"
#include "k8s/manifests.hpp"
#include "k8s/object_api.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/resource.hpp"
#include "reactors/cli/runtime_config.hpp"
#include "reactors/config_sync/target.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/this_coro.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include "tests/unit/run.hpp"
#include "tests/unit/runtime_config/land.hpp"
#include <fstream>
#include <iterator>
#include <utility>

namespace rw::runtime_config_test {

using namespace std::chrono_literals;
using bootstrapper_test::bundle_name;

const k8s::resource_type deployments{{"apps", "v1", "Deployment"}, "deployments", true};
const k8s::resource_type bundles{
    {"certificates.k8s.io", "v1beta1", "ClusterTrustBundle"}, "clustertrustbundles", false};

namespace {

const k8s::resource_type definitions{
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"}, "customresourcedefinitions", false};
const std::string kcp(kcp_namespace);
const std::string skr(skr_namespace);

json::value object_of(const k8s::resource_type& type, const std::string& ns,
                      const std::string& name) {
  json::object metadata{{"name", name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return {{"apiVersion", type.gvk.api_version()},
          {"kind", type.gvk.kind},
          {"metadata", std::move(metadata)}};
}

json::value definition(const std::string& file) {
  std::ifstream in(RW_SOURCE_DIR "/deploy/" + file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto all = k8s::parse_manifests(text);
  BOOST_REQUIRE_MESSAGE(all.has_value() && !all->empty(), file);
  return std::move(all->front());
}

std::string pem_at(int version) {
  static std::map<int, std::string> made;
  auto& pem = made[version];
  if (pem.empty()) pem = bootstrapper_test::ca_pem("btp-" + std::to_string(version));
  return pem;
}

}  // namespace

json::value config_at(const versions& at) {
  const auto registry = "registry-" + std::to_string(at.config) + ".example.com";
  return bootstrapper_test::config_map(bootstrapper_test::good_configuration(registry));
}

json::value pull_secret_at(const versions& at) {
  return bootstrapper_test::pull_secret("secret-" + std::to_string(at.pull_secret));
}

json::value trust_bundle_at(const versions& at) {
  return bootstrapper_test::trust_bundle(pem_at(at.trust_bundle));
}

json::value manifests_at(const versions& at) {
  auto out = object_of(config_maps_type(), kcp, "runtime-bootstrapper-manifests");
  const auto text = bootstrapper_test::manifests("1.0." + std::to_string(at.manifests));
  out.as_object()["data"] = {{"manifests.yaml", text}};
  return out;
}

// --- the manager -----------------------------------------------------------------------

struct land::manager {
  manager(land& in, bootstrapper_mode by_default)
      : writing(in.connect("kcp", "manager")),
        watching(in.connect("kcp", "informers")),
        pool(in.context.get_executor(), {},
             {in.all.clock, in.all.watchdog, in.all.log, in.all.metrics}),
        events(in.context.get_executor(), k8s::objects_of(*watching), {.component = "manager"},
               {in.all.clock, in.all.log, in.all.metrics, in.chance.source()}),
        kubeconfigs(*watching, secrets_type(),
                    {.what = {.ns = kcp, .labels = std::string(kyma_name_label)}},
                    {in.all.clock, in.all.log, in.all.metrics, in.chance.source()}),
        config(in.all, settings(by_default), {*writing, *watching, pool}, kubeconfigs, events),
        tasks(in.context.get_executor()) {
    tasks.spawn(pool.run());
    tasks.spawn(events.run());
    tasks.spawn(kubeconfigs.run());
    tasks.spawn(config.watch());
    tasks.spawn(config.lead());
  }

  static cli::runtime_config_settings settings(bootstrapper_mode by_default) {
    cli::runtime_config_settings out;
    out.mode = by_default;
    out.sources.trust_bundle = bundle_name;
    out.settle = 50ms;
    out.quiet = 200ms;
    out.retry = 500ms;
    out.rollout.soak = 100ms;
    out.create_bootstrappers = true;
    return out;
  }

  std::unique_ptr<k8s::client> writing;
  std::unique_ptr<k8s::client> watching;
  k8s::client_pool pool;
  k8s::event_recorder events;
  k8s::informer kubeconfigs;
  cli::runtime_config config;
  core::task_group tasks;
};

void land::begin(bootstrapper_mode with) {
  by_default = with;
  manager_ = std::make_unique<manager>(*this, with);
}

asio::awaitable<void> land::end() {
  if (!manager_) co_return;
  manager_->tasks.cancel();
  co_await manager_->tasks.join();
  co_await manager_->pool.close();
  co_await manager_->writing->close();
  co_await manager_->watching->close();
  manager_.reset();
  // Who leads next does so when the lease is over, longer than any request lasts.
  co_await pause(2 * longest_write);
}

asio::awaitable<bool> land::until_recorded() {
  const auto end = std::chrono::steady_clock::now() + test::patience / 2;
  const k8s::object_key key{kcp, std::string(config_sync::record_name)};
  while (std::chrono::steady_clock::now() < end) {
    const auto got = co_await api("kcp").get(config_maps_type(), key);
    if (got) co_return true;
    co_await test::turn();
  }
  co_return false;
}

// --- the land --------------------------------------------------------------------------

land::land(std::uint64_t seed)
    : chance(seed),
      server(context.get_executor(), {.history = 100000},
             {all.clock, all.watchdog, all.log, all.metrics}) {
  server.add_cluster("kcp");
  tasks_.spawn(all.watchdog.run());
  tasks_.spawn(server.run());
}

land::~land() {
  test::run(context, [](land* self) -> asio::awaitable<void> {
    co_await self->end();
    self->tasks_.cancel();
    co_await self->tasks_.join();
    if (self->kim_) co_await self->kim_->api->close();
    for (auto& [name, api] : self->clients_) co_await api->close();
  }(this));
}

std::unique_ptr<k8s::client> land::connect(const std::string& cluster, const std::string& name) {
  auto how = k8s::parse_kubeconfig(server.kubeconfig(cluster, name), cluster, "");
  BOOST_REQUIRE_MESSAGE(how.has_value(), how.error().message);
  return std::make_unique<k8s::client>(
      context.get_executor(), std::move(*how), k8s::client_options{.name = name},
      k8s::client_environment{all.clock, all.watchdog, all.log, all.metrics});
}

k8s::client& land::api(const std::string& cluster) {
  auto& api = clients_[cluster];
  if (!api) api = connect(cluster, "author");
  return *api;
}

asio::awaitable<json::value> land::must(asio::awaitable<k8s::result<json::value>> call) {
  auto got = co_await std::move(call);
  BOOST_REQUIRE_MESSAGE(got.has_value(), got.error().message);
  co_return std::move(*got);
}

asio::awaitable<void> land::pause(core::duration by) {
  const auto alarm = all.clock.make_timer(context.get_executor());
  alarm->expires_at(all.clock.now() + by);
  co_await alarm->wait();
}

asio::awaitable<void> land::make(std::vector<std::string> names) {
  for (const auto* file : {"crds/operator.kyma-project.io_runtimebootstrappers.yaml",
                           "crds/operator.kyma-project.io_runtimerollouts.yaml",
                           "dev/infrastructuremanager.kyma-project.io_runtimes.yaml"}) {
    co_await must(api("kcp").create(definitions, definition(file)));
  }
  for (const auto& ns : {kcp, std::string("runtime-watcher-system")}) {
    co_await must(api("kcp").create(namespaces_type(), object_of(namespaces_type(), {}, ns)));
  }
  for (const auto which :
       {&versions::config, &versions::pull_secret, &versions::trust_bundle, &versions::manifests}) {
    co_await put_source(which);
  }
  for (auto& name : names) co_await add_runtime(std::move(name));
  kim_ = std::make_unique<running_kim>(*this);
  tasks_.spawn(kim_->sources.run());
  tasks_.spawn(kim_->kim.run());
}

land::running_kim::running_kim(land& in)
    : api(in.connect("kcp", "kim")),
      sources(*api, {.names = {.trust_bundle = bundle_name}},
              {in.all.clock, in.all.log, in.all.metrics, in.chance.source()}),
      kim(*api, sources, [&in](json::value runtime) { return in.configure(std::move(runtime)); },
          {.workers = 3, .patch = 30ms, .wait = 100ms, .work = 80ms},
          {in.context.get_executor(), in.all.clock, in.all.watchdog, in.all.log, in.all.metrics,
           in.chance.source()}) {
  kim.options().vary = [&in](core::duration most) { return in.chance.up_to(most); };
}

asio::awaitable<k8s::result<void>> land::configure(json::value runtime) {
  while (!kim_->sources.ready()) co_await pause(5ms);
  auto done = co_await cli::dev::configure_as_kim(&api(k8s::key_of(runtime).name), &kim_->sources);
  co_return done;
}

asio::awaitable<void> land::add_runtime(std::string name) {
  server.add_cluster(name);
  server.faults(name).decide = [this](const std::string& verb, const std::string&) {
    k8s::devserver::fault out;
    if (verb != "patch" && verb != "delete") return out;  // the others are the author's, and reads
    out.latency = std::chrono::duration_cast<std::chrono::milliseconds>(
        chance.likely(0.5) ? core::duration::zero() : chance.up_to(longest_write));
    return out;
  };
  co_await must(api(name).create(namespaces_type(), object_of(namespaces_type(), {}, skr)));
  auto secret = object_of(secrets_type(), kcp, "kubeconfig-" + name);
  k8s::set_label(secret, kyma_name_label, "kyma-of-" + name);
  k8s::set_secret_data(secret, "config", server.kubeconfig(name, "manager"));
  co_await must(api("kcp").create(secrets_type(), std::move(secret)));
  auto runtime = object_of(runtimes_type(), kcp, name);
  k8s::set_label(runtime, kyma_name_label, "kyma-of-" + name);
  co_await must(api("kcp").create(runtimes_type(), std::move(runtime)));
  modes[name];
  runtimes.push_back(std::move(name));
}

asio::awaitable<void> land::put_source(int versions::* which) {
  const bool bundle = which == &versions::trust_bundle;
  auto object = which == &versions::config        ? config_at(now)
                : which == &versions::pull_secret ? pull_secret_at(now)
                : bundle                          ? trust_bundle_at(now)
                                                  : manifests_at(now);
  const auto& type = bundle                            ? bundles
                     : which == &versions::pull_secret ? secrets_type()
                                                       : config_maps_type();
  k8s::apply_options by{.field_manager = "author", .force = true};
  co_await must(api("kcp").apply(type, std::move(object), std::move(by)));
}

asio::awaitable<void> land::change(int versions::* which) {
  ++(now.*which);
  co_await put_source(which);
}

bootstrapper_mode land::mode_of(const std::string& runtime) const {
  return modes.at(runtime).value_or(by_default);
}

asio::awaitable<void> land::annotate(std::string runtime, json::object annotations) {
  json::value change{{"metadata", {{"annotations", std::move(annotations)}}}};
  co_await must(
      api("kcp").patch(runtimes_type(), {kcp, runtime}, k8s::patch_type::merge, std::move(change)));
}

asio::awaitable<void> land::set_mode(std::string runtime, std::optional<bootstrapper_mode> to) {
  modes.at(runtime) = to;
  json::object annotations;
  annotations[bootstrapper_mode_annotation] =
      to ? json::value(to_string(*to)) : json::value(nullptr);
  co_await annotate(runtime, std::move(annotations));
}

double land::metric(const std::string& series) const {
  const auto text = '\n' + core::expose(all.metrics);
  const auto line = '\n' + series + ' ';
  const auto at = text.find(line);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + line.size()));
}

// --- what the runtimes have ------------------------------------------------------------

asio::awaitable<std::string> land::lacks(std::string runtime) {
  struct part {
    k8s::resource_type type;
    k8s::object_key key;
    json::value wanted;
    const char* field;
  };
  const std::vector<part> parts{
      {config_maps_type(), {skr, "rt-bootstrapper-config"}, config_at(now), "data"},
      {secrets_type(), {skr, "registry-credentials"}, pull_secret_at(now), "data"},
      {bundles, {{}, bundle_name}, trust_bundle_at(now), "spec"}};
  for (const auto& one : parts) {
    const auto got = co_await api(runtime).get(one.type, one.key);
    const auto* const field = got ? k8s::find(*got, {one.field}) : nullptr;
    if (field == nullptr || *field != one.wanted.at(one.field)) {
      co_return runtime + " lacks the newest " + one.key.name;
    }
  }
  const auto got =
      co_await api(runtime).get(deployments, {skr, "rt-bootstrapper-controller-manager"});
  const auto version = "1.0." + std::to_string(now.manifests);
  if (!got || k8s::label(*got, "app.kubernetes.io/version") != version) {
    co_return runtime + " lacks the newest Deployment";
  }
  const auto object = co_await must(api("kcp").get(runtimes_type(), {kcp, runtime}));
  if (carries_mark(object)) co_return runtime + " carries a mark";
  // Where we write ourselves, KIM is not asked to try again.
  const bool at_rest = mode_of(runtime) == bootstrapper_mode::direct ||
                       k8s::find_string(object, {"status", "state"}) == "Ready";
  co_return at_rest ? "" : runtime + " is not Ready";
}

asio::awaitable<void> land::set_ready(std::string runtime) {
  const k8s::object_key key{skr, "rt-bootstrapper-controller-manager"};
  const auto got = co_await api(runtime).get(deployments, key);
  if (!got) co_return;
  const auto generation = k8s::generation_of(*got);
  const auto* const seen = k8s::find(*got, {"status", "observedGeneration"});
  if (seen != nullptr && *seen == json::value(generation)) co_return;
  json::value status{{"status",
                      {{"observedGeneration", generation},
                       {"replicas", 1},
                       {"updatedReplicas", 1},
                       {"readyReplicas", 1}}}};
  k8s::write_options by{.field_manager = "kubelet", .subresource = "status"};
  co_await must(api(runtime).patch(deployments, key, k8s::patch_type::merge, std::move(status),
                                   std::move(by)));
}

asio::awaitable<bool> land::until_told(std::string runtime, std::string condition, std::string is) {
  const auto end = std::chrono::steady_clock::now() + test::patience / 2;
  while (std::chrono::steady_clock::now() < end) {
    const auto got =
        co_await api("kcp").get(bootstrapper::runtime_bootstrappers_type(), {kcp, runtime});
    const auto told = got ? k8s::find_condition(*got, condition) : std::nullopt;
    if (told && told->status == is) co_return true;
    co_await test::turn();
  }
  co_return false;
}

asio::awaitable<std::string> land::settled() {
  const auto end = std::chrono::steady_clock::now() + test::patience / 2;
  std::string last;
  do {
    last.clear();
    for (const auto& each : runtimes) {
      co_await set_ready(each);
      last = co_await lacks(each);
      if (!last.empty()) break;
    }
    if (last.empty()) co_return last;
    co_await pause(5ms);
  } while (std::chrono::steady_clock::now() < end);
  co_return last;
}

}  // namespace rw::runtime_config_test
