#pragma once

#include "core/task_group.hpp"
#include "core/wake.hpp"
#include "k8s/client/client.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/dev/bootstrapped.hpp"
#include "reactors/dev/clusters.hpp"
#include "reactors/dev/kim.hpp"
#include "reactors/dev/node.hpp"
#include "reactors/dev/rollout_view.hpp"
#include "reactors/dev/settings.hpp"
#include "reactors/dev/source_watch.hpp"

#include <boost/asio/awaitable.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rw::dev {

/// What a trial system has for the Runtime Bootstrapper's configuration beside the manager:
///
///     source_watch  what KCP holds
///     kim           Kyma Infrastructure Manager, which is signalled to
///     bootstrapped  one for each runtime: what it holds
///     rollout_view  what comes of the one to the other
///
/// On one executor.
class configuration {
 public:
  /// The client of the runtime that a Runtime stands for; null: there is none.
  using runtime_client = std::function<k8s::client*(const std::string& runtime)>;

  /// All but `settings` must outlive it. `tell` hears of each arrival, `tell_rollout` of each
  /// change of a RuntimeRollout.
  configuration(cli::services& with, const dev_settings& settings, const clusters& all,
                k8s::client& kcp, runtime_client find, std::function<void(const arrival&)> tell,
                std::function<void(const boost::json::value& before, const boost::json::value& now)>
                    tell_rollout);

  /// What the sources are at first, as manifests for KCP. The ClusterTrustBundle, with a CA of its
  /// own, is only there where all API servers are embedded, as older ones have none.
  std::string sources() const;

  /// Follows a runtime from now on, as long as `run` does.
  void add(node& runtime);

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  void look_at_sources();
  boost::asio::awaitable<void> follow_rollouts();
  boost::asio::awaitable<k8s::result<void>> configure(boost::json::value runtime);

  cli::services& services_;
  const bootstrapper_mode mode_;  ///< of Runtimes that do not say otherwise
  const bool trust_bundles_;
  rollout_view view_;
  const runtime_client find_;
  source_watch sources_;
  const std::shared_ptr<void> subscription_;
  kim kim_;
  const std::function<void(const boost::json::value&, const boost::json::value&)> tell_rollout_;
  k8s::informer rollouts_;
  std::vector<std::unique_ptr<bootstrapped>> runtimes_;
  core::wake stop_;
  std::exception_ptr failure_;
  core::task_group tasks_;
};

/// For people: how to change a source, and where to see what comes of it. `kcp`: a kubectl command
/// line that leads to KCP.
std::string what_to_try(const std::string& kcp, bootstrapper_mode mode,
                        const std::string& first_runtime);

}  // namespace rw::dev
