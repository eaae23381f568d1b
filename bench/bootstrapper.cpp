// How fast a rotated pull Secret comes to many runtimes while some of them hang: the reactor, and
// an embedded API server that is the control plane and all runtimes, in one process with a thread
// each. Ends with 1 if 99 % of the runtimes do not have it within the limit.
//
//   bench_bootstrapper [runtimes [hanging [limit in seconds [0: runtimes are not watched]]]]
//
// The resident set of this process, with and without watches, has what they cost both sides.

#include "core/task_group.hpp"
#include "k8s/client_pool.hpp"
#include "k8s/devserver/server.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/kubeconfig.hpp"
#include "k8s/manifests.hpp"
#include "k8s/types.hpp"
#include "reactors/bootstrapper/direct_sync.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

namespace asio = boost::asio;
namespace json = boost::json;
namespace k8s = rw::k8s;
namespace bootstrapper = rw::bootstrapper;
using namespace std::chrono_literals;

constexpr const char* manifests = R"(apiVersion: v1
kind: ServiceAccount
metadata: {name: rt-bootstrapper, namespace: kyma-system}
---
apiVersion: v1
kind: Service
metadata: {name: rt-bootstrapper-webhook-service, namespace: kyma-system}
spec: {selector: {app: rt-bootstrapper}, ports: [{port: 443, targetPort: 9443, protocol: TCP}]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: rt-bootstrapper-controller-manager
  namespace: kyma-system
  labels: {app.kubernetes.io/version: "1.0.0"}
spec:
  selector: {matchLabels: {app: rt-bootstrapper}}
  template:
    metadata: {labels: {app: rt-bootstrapper}}
    spec: {containers: [{name: manager, image: "example.com/rt-bootstrapper:1.0.0"}]}
)";

json::value object_of(const k8s::resource_type& type, const std::string& ns,
                      const std::string& name) {
  json::object metadata{{"name", name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  return {{"apiVersion", type.gvk.api_version()},
          {"kind", type.gvk.kind},
          {"metadata", std::move(metadata)}};
}

json::value pull_secret(const std::string& password) {
  auto out = object_of(rw::secrets_type(), "kcp-system", "registry-credentials");
  out.as_object()["type"] = "kubernetes.io/dockerconfigjson";
  k8s::set_secret_data(
      out, ".dockerconfigjson",
      R"({"auths": {"r.example.com": {"username": "u", "password": ")" + password + "\"}}}");
  return out;
}

json::value config_map(const std::string& name, const std::string& key, const std::string& text) {
  auto out = object_of(rw::config_maps_type(), "kcp-system", name);
  json::object data;
  data[key] = text;
  out.as_object()["data"] = std::move(data);
  return out;
}

template <class T>
void check(const k8s::result<T>& done) {
  if (!done) throw std::runtime_error(done.error().message);
}

/// The API server, on a thread of its own.
struct host {
  explicit host(std::size_t runtimes) {
    server.add_cluster("kcp");
    for (std::size_t i = 0; i < runtimes; ++i) {
      const auto name = "r" + std::to_string(i);
      server.add_cluster(name);
      server.faults(name).decide = [this, i](const std::string&, const std::string&) {
        k8s::devserver::fault out;
        if (i < hanging.load(std::memory_order_relaxed)) out.latency = 1h;
        return out;
      };
    }
    kubeconfigs.push_back(server.kubeconfig("kcp"));
    for (std::size_t i = 0; i < runtimes; ++i) {
      kubeconfigs.push_back(server.kubeconfig("r" + std::to_string(i)));
    }
    tasks.spawn(watchdog.run());
    tasks.spawn(server.run());
    thread = std::thread([this] { context.run(); });
  }
  ~host() {
    context.stop();
    thread.join();
  }

  asio::io_context context{1};
  rw::core::real_clock clock;
  rw::core::metrics numbers;
  rw::core::logger log{rw::core::log_level::error};
  rw::core::watchdog watchdog{clock, context.get_executor()};
  k8s::devserver::server server{context.get_executor(), {}, {clock, watchdog, log, numbers}};
  rw::core::task_group tasks{context.get_executor()};
  std::vector<std::string> kubeconfigs;  ///< of kcp, then of the runtimes
  std::atomic<std::size_t> hanging = 0;
  std::thread thread;
};

/// The reactor with all that it needs.
struct manager {
  explicit manager(std::vector<std::string> configurations)
      : kubeconfigs_of(std::move(configurations)) {
    auto options = k8s::client_options{.name = "runtimes", .request = 5s, .retries = 1};
    pool = std::make_unique<k8s::client_pool>(
        context.get_executor(),
        k8s::client_pool_options{.capacity = 2 * kubeconfigs_of.size(), .client = options},
        environment());
    api = std::make_unique<k8s::client>(
        context.get_executor(), k8s::parse_kubeconfig(kubeconfigs_of.front(), "kcp", "").value(),
        k8s::client_options{.name = "kcp"}, environment());
  }

  k8s::client_environment environment() { return {clock, watchdog, log, numbers}; }
  std::unique_ptr<k8s::informer> inform(const k8s::resource_type& type, k8s::selection what) {
    auto made = std::make_unique<k8s::informer>(
        *api, type, k8s::informer_options{.what = std::move(what)},
        k8s::informer_environment{clock, log, numbers, rw::core::make_random_source()});
    tasks.spawn(made->run());
    return made;
  }

  asio::awaitable<void> set(k8s::resource_type type, json::value object) {
    const auto done = co_await api->apply(std::move(type), std::move(object), {.force = true});
    check(done);
  }
  asio::awaitable<void> fill();
  void react();
  asio::awaitable<double> until_current(std::size_t count, std::chrono::seconds limit);

  std::vector<std::string> kubeconfigs_of;  ///< of kcp, then of the runtimes
  asio::io_context context{1};
  rw::core::real_clock clock;
  rw::core::metrics numbers;
  rw::core::logger log{rw::core::log_level::error};
  rw::core::watchdog watchdog{clock, context.get_executor()};
  rw::core::task_group tasks{context.get_executor()};
  std::unique_ptr<k8s::client> api;
  std::unique_ptr<k8s::client_pool> pool;
  std::unique_ptr<k8s::event_recorder> events;
  std::unique_ptr<k8s::informer> bootstrappers, runtimes, kubeconfigs, config_maps, secrets;
  std::unique_ptr<bootstrapper::direct_sync> reactor;
  bool watch = true;
};

asio::awaitable<void> manager::fill() {
  for (const auto* file : {"crds/operator.kyma-project.io_runtimebootstrappers.yaml",
                           "dev/infrastructuremanager.kyma-project.io_runtimes.yaml"}) {
    std::ifstream in(std::string(RW_SOURCE_DIR "/deploy/") + file);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto all = k8s::parse_manifests(text).value();
    const auto type = k8s::well_known_type("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    co_await set(*type, all.front());
  }
  co_await set(rw::namespaces_type(), object_of(rw::namespaces_type(), {}, "kcp-system"));
  co_await set(rw::secrets_type(), pull_secret("first"));
  co_await set(rw::config_maps_type(),
               config_map("rt-bootstrapper-config", "rt-bootstrapper-config.json",
                          R"({"overrides": {"a.example.com": "b.example.com"}})"));
  co_await set(rw::config_maps_type(),
               config_map("runtime-bootstrapper-manifests", "manifests.yaml", manifests));
  for (std::size_t i = 1; i < kubeconfigs_of.size(); ++i) {
    const auto name = "r" + std::to_string(i - 1);
    auto secret = object_of(rw::secrets_type(), "kcp-system", "kubeconfig-" + name);
    k8s::set_label(secret, rw::kyma_name_label, name);
    k8s::set_secret_data(secret, "config", kubeconfigs_of[i]);
    co_await set(rw::secrets_type(), std::move(secret));
    auto runtime = object_of(rw::runtimes_type(), "kcp-system", name);
    k8s::set_annotation(runtime, rw::signalled_annotation, rw::signalled_nothing);
    co_await set(rw::runtimes_type(), std::move(runtime));
  }
}

void manager::react() {
  bootstrappers = inform(bootstrapper::runtime_bootstrappers_type(), {.ns = "kcp-system"});
  runtimes = inform(rw::runtimes_type(), {.ns = "kcp-system"});
  const std::string label(rw::kyma_name_label);
  kubeconfigs = inform(rw::secrets_type(), {.ns = "kcp-system", .labels = label});
  secrets = inform(rw::secrets_type(), {.ns = "kcp-system", .labels = "!" + label});
  config_maps = inform(rw::config_maps_type(), {.ns = "kcp-system"});
  events = std::make_unique<k8s::event_recorder>(
      context.get_executor(), k8s::objects_of(*api),
      k8s::event_recorder_options{.component = "bench"},
      k8s::event_recorder_environment{clock, log, numbers, rw::core::make_random_source()});
  bootstrapper::options with;
  with.watch_runtimes = watch;
  with.mode = rw::bootstrapper_mode::direct;
  with.create_for_runtimes = true;
  with.defaults.trust_bundle.clear();
  with.ready_interval = with.ready_interval_limit = 1h;  // there are no pods
  reactor = std::make_unique<bootstrapper::direct_sync>(
      context.get_executor(), with,
      bootstrapper::sources{*bootstrappers, *runtimes, *kubeconfigs, *config_maps, *secrets},
      bootstrapper::environment{*api, *pool, *events, clock, watchdog, log, numbers,
                                rw::core::make_random_source()});
  tasks.spawn(watchdog.run());
  tasks.spawn(events->run());
  tasks.spawn(reactor->run());
}

/// Seconds until so many runtimes have what is wanted; negative: not within the limit.
asio::awaitable<double> manager::until_current(std::size_t count, std::chrono::seconds limit) {
  const auto begin = clock.now();
  const auto pause = clock.make_timer(context.get_executor());
  for (;;) {
    const std::chrono::duration<double> passed = clock.now() - begin;
    if (reactor->rollout_progress().currents() >= count) co_return passed.count();
    if (passed > limit) co_return -1;
    pause->expires_at(clock.now() + 5ms);
    co_await pause->wait();
  }
}

double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

asio::awaitable<void> measure(manager* of, host* with, std::size_t count, std::size_t hanging,
                              std::chrono::seconds limit, int* result) {
  co_await of->fill();
  of->react();
  const auto installed = co_await of->until_current(count, 300s);
  if (installed < 0) throw std::runtime_error("the runtimes were not installed in time");
  std::printf("%zu runtimes installed in %.1f s\n", count, installed);
  with->hanging = hanging;
  const auto cpu = cpu_seconds();
  co_await of->set(rw::secrets_type(), pull_secret("second"));
  // It is noticed by the watch, which marks all at once.
  const auto pause = of->clock.make_timer(of->context.get_executor());
  const auto begin = of->clock.now();
  while (of->reactor->rollout_progress().currents() == count && of->clock.now() - begin < limit) {
    pause->expires_at(of->clock.now() + 1ms);
    co_await pause->wait();
  }
  const auto enough = (count * 99 + 99) / 100;
  const auto taken = co_await of->until_current(enough, limit);
  const std::chrono::duration<double> passed = of->clock.now() - begin;
  std::printf("rotated pull Secret on %zu of them (99 %%) in %.2f s while %zu hang: %s\n", enough,
              passed.count(), hanging, taken < 0 ? "too late" : "within the limit");
  std::printf("CPU of both sides for each runtime: %.2f ms\n",
              1000 * (cpu_seconds() - cpu) / static_cast<double>(count));
  *result = taken < 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int at, std::size_t usual) {
    return argc > at ? static_cast<std::size_t>(std::strtoul(argv[at], nullptr, 10)) : usual;
  };
  const auto count = number(1, 1000);
  const auto hanging = number(2, count / 100);
  const std::chrono::seconds limit(number(3, 10));
  host with(count);
  manager of(with.kubeconfigs);
  of.watch = number(4, 1) != 0;
  int result = 1;
  asio::co_spawn(of.context, measure(&of, &with, count, hanging, limit, &result),
                 [&](const std::exception_ptr& failed) {
                   if (failed) {
                     try {
                       std::rethrow_exception(failed);
                     } catch (const std::exception& e) {
                       std::fprintf(stderr, "%s\n", e.what());
                     }
                   }
                   std::fflush(stdout);
                   std::_Exit(result);  // thousands of connections need not be closed one by one
                 });
  of.context.run();
}
