#include "reactors/cli/runtime_config.hpp"

#include "core/task_group.hpp"
#include "reactors/kyma_resources.hpp"

#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

config_sync::sync_options sync_options_of(const runtime_config_settings& settings) {
  auto out = settings.signal;
  out.mode = settings.mode;
  return out;
}

}  // namespace

runtime_config::runtime_config(services& with, runtime_config_settings settings, clients to,
                               k8s::informer& kubeconfigs, k8s::event_recorder& events)
    : settings_(std::move(settings)),
      executor_(with.executor),
      sources_(to.watching, {.names = settings_.sources},
               {with.clock, with.log, with.metrics, core::make_random_source()}),
      runtimes_(to.watching, runtimes_type(), config_sync::runtimes_informer(),
                {with.clock, with.log, with.metrics, core::make_random_source()}),
      config_sync_(executor_, sources_, runtimes_, sync_options_of(settings_),
                   {to.writing, events, with.clock, with.watchdog, with.log, with.metrics,
                    core::make_random_source()}),
      direct_(with, settings_,
              {to.writing, to.watching, runtimes_, kubeconfigs, to.runtimes, events}) {}

asio::awaitable<void> runtime_config::watch() {
  core::task_group tasks(executor_);
  tasks.spawn(sources_.run());
  tasks.spawn(runtimes_.run());
  co_await tasks.join();
}

asio::awaitable<void> runtime_config::lead() {
  core::task_group reactors(executor_);
  reactors.spawn(config_sync_.run());
  reactors.spawn(direct_.lead());
  co_await reactors.join();
}

std::string runtime_config::not_ready() const {
  auto text = sources_.not_ready();
  if (!runtimes_.synced()) text += "not in step with KCP: runtimes\n";
  return text;
}

}  // namespace rw::cli
