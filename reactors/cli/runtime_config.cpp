#include "reactors/cli/runtime_config.hpp"

#include "core/task_group.hpp"
#include "reactors/shared/kyma_resources.hpp"
#include "reactors/shared/trust_bundles_type.hpp"

#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

template <class Options>
Options in_mode(Options out, bootstrapper_mode mode) {
  out.mode = mode;
  return out;
}

k8s::informer_options of_kcp(std::string labels = {}) {
  return {.what = {.ns = std::string(kcp_namespace), .labels = std::move(labels)}};
}

k8s::informer_environment environment_of(services& with) {
  return {with.clock, with.log, with.metrics, core::make_random_source()};
}

}  // namespace

runtime_config::runtime_config(services& with, runtime_config_settings settings, clients to,
                               k8s::informer& kubeconfigs, k8s::event_recorder& events)
    : settings_(std::move(settings)),
      executor_(with.executor),
      sources_(to.watching, settings_.direct.defaults,
               {with.clock, with.log, with.metrics, core::make_random_source()}),
      runtimes_(to.watching, runtimes_type(),
                config_sync::runtimes_informer(settings_.direct.runtime_condition),
                environment_of(with)),
      config_sync_(
          executor_, sources_, runtimes_, in_mode(settings_.signal, settings_.mode),
          {to.writing,
           events,
           {with.clock, with.watchdog, with.log, with.metrics, core::make_random_source()}}),
      bootstrappers_(to.watching, bootstrapper::runtime_bootstrappers_type(), of_kcp(),
                     environment_of(with)),
      rollouts_(to.watching, runtime_rollout::runtime_rollouts_type(), of_kcp(),
                environment_of(with)),
      config_maps_(to.watching, config_maps_type(), of_kcp(), environment_of(with)),
      // Kubeconfigs, of which there are thousands, have an informer of their own.
      secrets_(to.watching, secrets_type(), of_kcp("!" + std::string(kyma_name_label)),
               environment_of(with)),
      trust_bundles_(trust_bundle_informer(to.watching, {}, environment_of(with), false)),
      rollout_(executor_, {.usual = settings_.rollout},
               {to.writing,
                rollouts_,
                bootstrappers_,
                runtimes_,
                events,
                {with.clock, with.watchdog, with.log, with.metrics, core::make_random_source()}}),
      direct_(executor_, in_mode(settings_.direct, settings_.mode),
              {bootstrappers_, runtimes_, kubeconfigs, config_maps_, secrets_, *trust_bundles_},
              {to.writing, to.runtimes, events, with.clock, with.watchdog, with.log, with.metrics,
               core::make_random_source()},
              &rollout_) {}

asio::awaitable<void> runtime_config::watch() {
  core::task_group tasks(executor_);
  tasks.spawn(sources_.run());
  tasks.spawn(runtimes_.run());
  co_await tasks.join();
}

asio::awaitable<void> runtime_config::lead() {
  core::task_group tasks(executor_);
  for (auto* const each :
       {&bootstrappers_, &rollouts_, &config_maps_, &secrets_, trust_bundles_.get()}) {
    tasks.spawn(each->run());
  }
  tasks.spawn(config_sync_.run());
  tasks.spawn(rollout_.run());
  tasks.spawn(direct_.run());
  co_await tasks.join();
}

std::string runtime_config::not_ready() const {
  auto text = sources_.not_ready();
  if (!runtimes_.synced()) text += "not in step with KCP: runtimes\n";
  return text;
}

}  // namespace rw::cli
