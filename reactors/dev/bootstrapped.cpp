#include "rw/reactors/dev/bootstrapped.hpp"

#include "rw/core/backoff.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/desired_set.hpp"
#include "rw/reactors/config_sync/target.hpp"
#include "rw/reactors/dev/deployment_status.hpp"
#include "rw/reactors/dev/manifests.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundles_type.hpp"

#include <boost/json/serialize.hpp>

#include <utility>

namespace rw::dev {

using namespace cli;
namespace {

namespace asio = boost::asio;
namespace json = boost::json;

constexpr auto retry_base = std::chrono::milliseconds(200);
constexpr auto retry_limit = std::chrono::seconds(10);
const std::string deployment_name = bootstrapper::target_names().deployment;

k8s::informer_options only(std::string_view ns, std::string_view name) {
  return {.objects = {.ns = std::string(ns), .fields = "metadata.name=" + std::string(name)}};
}

}  // namespace

bootstrapped::bootstrapped(services& with, core::logger& log, k8s::client& api, bool trust_bundle,
                           observer tell)
    : services_(with),
      log_(log),
      api_(api),
      tell_(std::move(tell)),
      deployments_(api_, deployments_type(), only(skr_namespace, deployment_name),
                   {with.clock, log_, with.metrics, core::make_random_source()}),
      config_maps_(api_, config_maps_type(),
                   only(skr_namespace, bootstrapper::target_names().configuration),
                   {with.clock, log_, with.metrics, core::make_random_source()}),
      secrets_(api_, secrets_type(), only(skr_namespace, bootstrapper::target_names().pull_secret),
               {with.clock, log_, with.metrics, core::make_random_source()}),
      changed_(with.executor) {
  if (!trust_bundle) return;
  trust_bundles_.emplace(
      api_, trust_bundles_type(), only({}, bootstrapper_sources().trust_bundle),
      k8s::informer_environment{with.clock, log_, with.metrics, core::make_random_source()});
}

asio::awaitable<void> bootstrapped::run() {
  const bootstrapper::target_names names;
  core::task_group tasks(services_.executor);
  for (auto* const each : {&deployments_, &config_maps_, &secrets_}) tasks.spawn(each->run());
  tasks.spawn(follow(&config_maps_, source::config, {names.ns, names.configuration}));
  tasks.spawn(follow(&secrets_, source::pull_secret, {names.ns, names.pull_secret}));
  if (trust_bundles_) {
    tasks.spawn(trust_bundles_->run());
    const k8s::object_key bundle{{}, bootstrapper_sources().trust_bundle};
    tasks.spawn(follow(&*trust_bundles_, source::trust_bundle, bundle));
  }
  tasks.spawn(watch_deployment());
  tasks.spawn(keep_status());
  co_await tasks.join();
}

asio::awaitable<void> bootstrapped::follow(k8s::informer* from, source source,
                                           k8s::object_key key) {
  const auto changes = from->subscribe();
  for (;;) {
    const auto change = co_await changes->receive();
    if (change.has_error()) co_return;
    const auto now = from->objects().get(key);
    tell_(source, now ? config_sync::digest_of(source, now) : std::string());
    if (source == source::config) changed_.set();
  }
}

/// Why pods of this Deployment end at their start; empty: they run, or have started before.
std::string bootstrapped::start_error(const json::value& deployment) {
  if (crashes(deployment)) return "its pods crash";
  const auto* const of = k8s::find(deployment, {"spec", "template"});
  auto now = of == nullptr ? std::string() : json::serialize(*of);
  if (now == template_) return {};
  const bootstrapper::target_names names;
  const auto stored = config_maps_.objects().get(names.ns, names.configuration);
  if (!stored) return "its pods end: unable to read config: there is none";
  const auto config = stored.parse();
  bootstrapper::diagnostics found;
  bootstrapper::validate_configuration(
      k8s::find_string(config, {"data", bootstrapper::configuration_key}),
      bootstrapper::abilities_of(deployment), {found, "config"});
  if (!found.errors.empty()) return "its pods end: " + found.errors.front();
  template_ = std::move(now);
  return {};
}

asio::awaitable<void> bootstrapped::watch_deployment() {
  const auto changes = deployments_.subscribe();
  for (;;) {
    const auto change = co_await changes->receive();
    if (change.has_error()) co_return;
    changed_.set();
  }
}

asio::awaitable<void> bootstrapped::keep_status() {
  const auto pause = services_.clock.make_timer(services_.executor);
  core::backoff pauses(retry_base, retry_limit, core::make_random_source());
  for (;;) {
    const auto cancelled = co_await changed_.wait();
    if (cancelled) co_return;
    while (const auto stored = deployments_.objects().get(skr_namespace, deployment_name)) {
      const auto deployment = stored.parse();
      const auto error = start_error(deployment);
      auto told = co_await keep_crashing_pod(&api_, deployment, !error.empty());
      if (told) {
        told = co_await tell_deployment_status(&api_, &services_.clock, deployment, error.empty(),
                                               error);
      }
      if (told) break;
      log_.warning("the bootstrapper's state can't be written; trying again",
                   {{"reason", told.error().message}});
      pause->expires_at(services_.clock.now() + pauses.next());
      const bool due = co_await pause->wait();
      if (!due) co_return;
    }
    pauses.reset();
  }
}

}  // namespace rw::dev
