#include "rw/reactors/cli/runtime_config.hpp"

#include "rw/core/task_group.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundles_type.hpp"

#include <utility>
#include <vector>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

config_sync::sync_options signal_options(const runtime_config_settings& from) {
  auto out = from.signal;
  out.mode = from.mode;
  out.sources = from.direct.defaults;
  return out;
}

bootstrapper::direct_sync_options direct_options(const runtime_config_settings& from) {
  auto out = from.direct;
  out.mode = from.mode;
  return out;
}

k8s::informer_options of_kcp(std::string labels = {}) {
  return {.objects = {.ns = std::string(kcp_namespace), .labels = std::move(labels)}};
}

}  // namespace

runtime_config::runtime_config(services& with, runtime_config_settings settings, clients to,
                               k8s::informer& kubeconfigs, k8s::event_sink& events)
    : settings_(std::move(settings)),
      executor_(with.executor),
      runtimes_(to.watching, runtimes_type(),
                config_sync::runtimes_informer(settings_.direct.runtime_condition),
                with.for_informer()),
      bootstrappers_(to.watching, bootstrapper::runtime_bootstrappers_type(), of_kcp(),
                     with.for_informer()),
      config_maps_(to.watching, config_maps_type(), of_kcp(), with.for_informer()),
      // Kubeconfigs, of which there are thousands, have an informer of their own.
      secrets_(to.watching, secrets_type(), of_kcp("!" + std::string(kyma_name_label)),
               with.for_informer()),
      trust_bundles_(trust_bundle_informer(to.watching, {}, with.for_informer())),
      config_sync_(executor_, {config_maps_, secrets_, *trust_bundles_}, runtimes_,
                   signal_options(settings_), {to.writing, events, with.for_controller()}),
      rollout_(executor_, {.usual = settings_.rollout},
               {to.writing, to.rollouts, bootstrappers_, runtimes_, events, with.for_controller(),
                std::move(to.lease), to.prometheus}),
      direct_(executor_, direct_options(settings_),
              {bootstrappers_, runtimes_, kubeconfigs, {config_maps_, secrets_, *trust_bundles_}},
              {to.writing, to.runtimes, events, with.clock, with.watchdog, with.log, with.metrics,
               with.random()},
              settings_.rollout_none ? nullptr : &rollout_) {}

asio::awaitable<void> runtime_config::watch() {
  return runtimes_.run();
}

asio::awaitable<void> runtime_config::lead() {
  leads_ = true;
  core::task_group tasks(executor_);
  for (auto* const each : {&bootstrappers_, &config_maps_, &secrets_, trust_bundles_.get()}) {
    tasks.spawn(each->run());
  }
  tasks.spawn(config_sync_.run());
  if (!settings_.rollout_none) tasks.spawn(rollout_.run());
  tasks.spawn(direct_.run());
  co_await tasks.join();
}

std::vector<const k8s::informer*> runtime_config::informers() const {
  std::vector<const k8s::informer*> out{&runtimes_};
  if (leads_) out.insert(out.end(), {&bootstrappers_, &config_maps_, &secrets_});
  return out;
}

std::string runtime_config::not_ready() const {
  std::vector<const k8s::informer*> needed{&runtimes_};
  if (leads_) needed.insert(needed.end(), {&config_maps_, &secrets_, trust_bundles_.get()});
  std::string reasons;
  for (const auto* const each : needed) {
    if (!each->synced()) reasons += "not in step with KCP: " + each->type().plural + "\n";
  }
  return reasons;
}

}  // namespace rw::cli
