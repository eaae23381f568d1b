#include "rw/reactors/dev/configuration.hpp"

#include "rw/core/within.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/config_sync/target.hpp"
#include "rw/reactors/dev/deployment_status.hpp"
#include "rw/reactors/dev/manifests.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace rw::dev {

using namespace cli;
namespace {

namespace asio = boost::asio;

bool all_embedded(const clusters& all) {
  return all.kcp().embedded && std::ranges::all_of(all.runtimes(), [](const cluster& runtime) {
           return runtime.embedded;
         });
}

kim_options kim_options_of(const dev_settings& settings) {
  kim_options out;
  out.workers = settings.kim_workers;
  out.work = settings.kim_duration;
  out.wait = settings.kim_duration;
  out.config_watcher = settings.kim_config_watcher;
  if (settings.kim_fails == 0) return out;
  out.outcome = [every = settings.kim_fails, count = std::size_t{0}](const std::string&) mutable {
    return ++count % every == 0 ? kim_outcome::fails_after : kim_outcome::unchanged;
  };
  return out;
}

/// Time limit for one runtime's API server to respond.
constexpr auto configure_limit = std::chrono::seconds(5);

/// What the simulated Kyma Infrastructure Manager reads of its Deployment: whether it has replicas,
/// and its switch. No pods are made of it.
constexpr auto kim_name = "infrastructure-manager";
constexpr std::string_view kim_switch = "--runtime-bootstrapper-enabled";
constexpr auto kim_manifest = R"(---
apiVersion: apps/v1
kind: Deployment
metadata: {name: infrastructure-manager, namespace: kcp-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: infrastructure-manager}}
  template:
    metadata: {labels: {app: infrastructure-manager}}
    spec:
      containers:
        - name: manager
          image: example.com/infrastructure-manager:1
          args:
            - --runtime-bootstrapper-enabled=true
)";

/// Without the argument it is off, as of the original; the last one counts.
bool is_switched_on(const boost::json::value& deployment) {
  bool out = false;
  const auto* const all = k8s::find_array(deployment, {"spec", "template", "spec", "containers"});
  if (all == nullptr || all->empty()) return out;
  const auto* const arguments = k8s::find_array(all->front(), {"args"});
  if (arguments == nullptr) return out;
  for (const auto& each : *arguments) {
    const std::string_view text = each.is_string() ? std::string_view(each.get_string()) : "";
    if (!text.starts_with(kim_switch)) continue;
    const auto value = text.substr(kim_switch.size());
    out = value.empty() || value == "=true";
  }
  return out;
}

}  // namespace

configuration_trial::configuration_trial(
    services& with, const dev_settings& settings, const clusters& all, k8s::client& kcp,
    runtime_client find, std::function<void(const arrival&)> tell,
    std::function<void(const boost::json::value& before, const boost::json::value& now)>
        tell_rollout)
    : services_(with),
      mode_(settings.bootstrapper),
      trust_bundles_(all_embedded(all)),
      view_(with.clock, all.runtimes().size(), std::move(tell)),
      find_(std::move(find)),
      sources_(kcp, {}, with.for_informer()),
      subscription_(sources_.subscribe([this] { look_at_sources(); })),
      kim_(kcp, sources_,
           [this](boost::json::value runtime) { return configure(std::move(runtime)); },
           kim_options_of(settings),
           {with.executor, with.clock, with.watchdog, with.log, with.metrics,
            core::make_random_source()}),
      tell_rollout_(std::move(tell_rollout)),
      rollouts_(kcp, runtime_rollout::runtime_rollouts_type(),
                {.objects = {.ns = std::string(kcp_namespace)}}, with.for_informer()),
      kim_deployment_(kcp, deployments_type(),
                      {.objects = {.ns = std::string(kcp_namespace),
                                   .fields = "metadata.name=" + std::string(kim_name)}},
                      with.for_informer()),
      stop_(with.executor),
      tasks_(with.executor, [this](std::exception_ptr thrown) {
        if (!failure_) failure_ = thrown;
        stop_.set();
      }) {}

std::string configuration_trial::sources() const {
  auto out = sample_bootstrapper_sources() + kim_manifest;
  if (!trust_bundles_) return out;
  const auto ca = need(tls::issuer::create({.common_name = "rt-bootstrapper"}), "trust bundle");
  return out + "---\n" + trust_bundle_manifest(ca.certificate_pem());
}

void configuration_trial::look_at_sources() {
  if (!sources_.ready()) return;
  for (const auto kind : {source::config, source::pull_secret, source::trust_bundle}) {
    const auto now = sources_.get(kind);
    view_.wanted(kind, now ? config_sync::digest_of(kind, now) : std::string());
  }
}

asio::awaitable<void> configuration_trial::follow_rollouts() {
  const auto changes = rollouts_.subscribe();
  for (;;) {
    const auto change = co_await changes->receive();
    if (change.has_error()) co_return;
    const auto parsed = [](const k8s::object& of) {
      return of ? of.parse() : boost::json::value();
    };
    if (change->now) tell_rollout_(parsed(change->before), parsed(change->now));
  }
}

asio::awaitable<void> configuration_trial::follow_kim() {
  const auto changes = kim_deployment_.subscribe();
  for (;;) {
    const auto change = co_await changes->receive();
    if (change.has_error()) co_return;
    if (!change->now) continue;
    const auto deployment = change->now.parse();
    const auto* const replicas = k8s::find(deployment, {"spec", "replicas"});
    kim_.options().held = replicas != nullptr && *replicas == 0;
    kim_.options().bootstrapper = is_switched_on(deployment);
  }
}

void configuration_trial::add(node& runtime) {
  auto tell = [this, name = runtime.runtime()](source source, const std::string& digest) {
    view_.has(name, source, digest);
  };
  runtimes_.push_back(std::make_unique<bootstrapped>(services_, runtime.log(), runtime.api(),
                                                     trust_bundles_, std::move(tell)));
  tasks_.spawn(runtimes_.back()->run());
}

/// Unlike the original, which has a single switch for all, this KIM skips Runtimes that are not in
/// mode signal, so that each runtime of a trial system can have its own mode.
asio::awaitable<k8s::result<void>> configuration_trial::configure(boost::json::value runtime) {
  if (!signals(mode_of(runtime, mode_))) co_return k8s::result<void>();
  auto* const api = find_(k8s::key_of(runtime).name);
  const auto failure = [](std::string text) {
    return k8s::failure{.code = make_error_code(k8s::errc::not_configured),
                        .message = std::move(text)};
  };
  if (api == nullptr) co_return failure("there is no runtime of this name");
  if (!sources_.ready()) co_return failure("the sources are not known yet");
  const auto until = services_.clock.now() + configure_limit;
  auto work = configure_as_kim(api, &sources_);
  auto done = co_await core::within(services_.clock, until, std::move(work));
  if (!done) co_return failure("the runtime does not respond in time");
  co_return std::move(*done);
}

asio::awaitable<void> configuration_trial::run() {
  co_await asio::this_coro::throw_if_cancelled(false);
  tasks_.spawn(sources_.run());
  tasks_.spawn(kim_.run());
  tasks_.spawn(rollouts_.run());
  tasks_.spawn(follow_rollouts());
  tasks_.spawn(kim_deployment_.run());
  tasks_.spawn(follow_kim());
  co_await stop_.wait();
  tasks_.cancel();
  co_await tasks_.join();
  if (failure_) std::rethrow_exception(failure_);
}

std::string what_to_try(const std::string& kcp, const std::string& dir, bootstrapper_mode mode,
                        const std::string& first_runtime) {
  const auto first_sources =
      kcp + " apply --server-side --force-conflicts -f " + dir + "/bootstrapper-sources.yaml\n";
  std::string out = "Rotate what runtimes pull images with, and see it arrive here:\n" + kcp +
                    " -n kcp-system patch secret registry-credentials --type merge -p \\\n"
                    "    '{\"stringData\":{\".dockerconfigjson\":\"{\\\"auths\\\":"
                    "{\\\"registry.example.com\\\":{\\\"username\\\":\\\"kyma\\\","
                    "\\\"password\\\":\\\"second\\\"}}}\"}}'\n";
  if (mode == bootstrapper_mode::signal) {
    out += "The marks on Runtimes, for the simulated Kyma Infrastructure Manager:\n" + kcp +
           " -n kcp-system get runtimes -o yaml\n";
  } else {
    out +=
        "What is there, and what a broken configuration leads to, a condition, until it is "
        "replaced:\n" +
        kcp + " -n kcp-system get runtimebootstrappers\n" + kcp +
        " -n kcp-system patch configmap rt-bootstrapper-config --type merge -p \\\n"
        "    '{\"data\":{\"rt-bootstrapper-config.json\":\"{\"}}'\n" +
        first_sources +
        "How new manifests come to the runtimes; an image with the tag crash crashes, until it "
        "is replaced:\n" +
        kcp + " -n kcp-system get runtimerollouts -w\n" + kcp +
        " -n kcp-system get configmap runtime-bootstrapper-manifests -o yaml |\n"
        "    sed 's/rt-bootstrapper:1.0.0/rt-bootstrapper:crash/' |" +
        kcp.substr(1) + " replace -f -\n" + first_sources;
  }
  return out + "One runtime in a different mode (off, signal, shadow, direct):\n" + kcp +
         " -n kcp-system annotate --overwrite runtime " + first_runtime + " " +
         std::string(bootstrapper_mode_annotation) + "=" +
         (mode == bootstrapper_mode::direct ? "signal" : "direct") + "\n";
}

}  // namespace rw::dev
