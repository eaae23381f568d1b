#pragma once

#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/dev/bootstrapped.hpp"
#include "rw/reactors/dev/clusters.hpp"
#include "rw/reactors/dev/kim.hpp"
#include "rw/reactors/dev/node.hpp"
#include "rw/reactors/dev/rollout_view.hpp"
#include "rw/reactors/dev/settings.hpp"
#include "rw/reactors/dev/source_watch.hpp"

#include <boost/asio/awaitable.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rw::dev {

/// The parts of a trial system, besides the manager, for the Runtime Bootstrapper's configuration:
///
///     source_watch  the sources in KCP
///     kim           Kyma Infrastructure Manager, which config_sync signals, as its Deployment says
///     bootstrapped  one for each runtime: its copies of the sources
///     rollout_view  the progress from the sources to the copies
///
/// On one executor.
class configuration_trial {
 public:
  /// Returns the client of a Runtime's API server; null: there is none.
  using runtime_client = std::function<k8s::client*(const std::string& runtime)>;

  /// All but `settings` must outlive it. Calls `tell` at each arrival, `tell_rollout` at each
  /// change of a RuntimeRollout.
  configuration_trial(
      cli::services& with, const dev_settings& settings, const clusters& all, k8s::client& kcp,
      runtime_client find, std::function<void(const arrival&)> tell,
      std::function<void(const boost::json::value& before, const boost::json::value& now)>
          tell_rollout);

  /// Returns the initial sources and the Deployment of Kyma Infrastructure Manager, as manifests
  /// for KCP. Includes the ClusterTrustBundle, with a CA of its own, only if all API servers are
  /// embedded: older API servers do not serve it.
  std::string sources() const;

  /// Watches a runtime from now on, while `run` runs.
  void add(node& runtime);

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  void look_at_sources();
  boost::asio::awaitable<void> follow_rollouts();
  boost::asio::awaitable<void> follow_kim();
  boost::asio::awaitable<k8s::result<void>> configure(boost::json::value runtime);

  cli::services& services_;
  const bootstrapper_mode mode_;  ///< of Runtimes without a mode of their own
  const bool trust_bundles_;
  rollout_view view_;
  const runtime_client find_;
  source_watch sources_;
  const std::shared_ptr<void> subscription_;
  kim kim_;
  const std::function<void(const boost::json::value&, const boost::json::value&)> tell_rollout_;
  k8s::informer rollouts_;
  k8s::informer kim_deployment_;
  std::vector<std::unique_ptr<bootstrapped>> runtimes_;
  core::wake stop_;
  std::exception_ptr failure_;
  core::task_group tasks_;
};

/// Returns text for people: how to change a source, and where to watch the effect. `kcp`: a kubectl
/// command line for KCP; `dir`, a word of a shell, has the sources as they are at first.
std::string what_to_try(const std::string& kcp, const std::string& dir, bootstrapper_mode mode,
                        const std::string& first_runtime);

}  // namespace rw::dev
