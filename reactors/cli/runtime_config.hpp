#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/reactors/bootstrapper/direct_sync.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/runtime_config_settings.hpp"
#include "rw/reactors/config_sync/config_sync.hpp"
#include "rw/reactors/runtime_rollout/runtime_rollout.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// The part of the manager that keeps the Runtime Bootstrapper's configuration of all runtimes in
/// step with KCP. Every replica watches Runtimes; the leader runs the reactors:
///
///     ConfigMaps, pull Secret, trust bundle  -> config_sync -> marks on Runtimes
///     the same, and RuntimeBootstrappers     -> direct_sync -> objects on runtimes
///     RuntimeRollout                         -> runtime_rollout, which direct_sync queries
///
/// A Runtime's mode decides which of the two acts on it; the other one leaves it alone.
///
/// All constructor arguments must outlive it.
class runtime_config {
 public:
  struct clients {
    k8s::client& writing;           ///< with the leader's fence
    k8s::client& watching;          ///< of all replicas
    k8s::client_pool& runtimes;     ///< fenced as well
    k8s::informer& rollouts;        ///< RuntimeRollouts; the leader runs it
    boost::json::value lease = {};  ///< what Events are about while nothing is rolled out
    runtime_rollout::prometheus_client* prometheus =
        nullptr;  ///< verifies steps; null: none can be
  };

  runtime_config(services& with, runtime_config_settings settings, clients to,
                 k8s::informer& kubeconfigs, k8s::event_sink& events);

  /// Runs on every replica, until cancelled.
  boost::asio::awaitable<void> watch();
  /// Runs on the leader, until cancelled, once.
  boost::asio::awaitable<void> lead();

  const runtime_rollout::runtime_rollout& rollout() const noexcept { return rollout_; }
  const bootstrapper::invalid_sources& invalid() const noexcept { return direct_.invalid(); }
  /// What the next pass would write to a runtime.
  boost::asio::awaitable<pass_preview> preview(k8s::object_key runtime, core::duration time_limit) {
    return direct_.preview(std::move(runtime), time_limit);
  }
  /// The Runtimes of a Kyma, and their RuntimeBootstrappers, which have the same names.
  std::vector<k8s::object_key> runtimes_of(std::string_view kyma) const {
    return direct_.runtimes_of(kyma);
  }

  /// Returns the reasons why it is not ready, one a line. Nothing is signalled before the leader
  /// knows all sources; the informers' log lines say why one can't be read.
  std::string not_ready() const;
  /// The informers that this replica runs, but that of trust bundles, which not every KCP serves.
  std::vector<const k8s::informer*> informers() const;

 private:
  const runtime_config_settings settings_;
  const boost::asio::any_io_executor executor_;
  k8s::informer runtimes_;
  // Only the leader runs it. A RuntimeBootstrapper may name any source.
  k8s::informer bootstrappers_;
  k8s::informer config_maps_;
  k8s::informer secrets_;
  std::unique_ptr<k8s::informer> trust_bundles_;
  config_sync::config_sync config_sync_;
  runtime_rollout::runtime_rollout rollout_;
  bootstrapper::direct_sync direct_;
  bool leads_ = false;
};

}  // namespace rw::cli
