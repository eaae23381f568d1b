#pragma once

#include "rw/core/log.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/dev/source_watch.hpp"

#include <boost/asio/awaitable.hpp>

#include <functional>
#include <optional>
#include <string>

namespace rw::dev {

/// Simulates a runtime's machines for the Runtime Bootstrapper, as far as KCP can observe them: its
/// Deployment gets the status of one whose pods serve (there are none). Like the real one, a pod
/// reads its configuration at its start, and ends if that is missing or invalid, or names what this
/// version does not know; one that runs stays ready whatever the configuration becomes. Also
/// reports the runtime's configuration. On one executor.
class bootstrapped {
 public:
  /// Called with a digest of the runtime's copy of a source (rw::digest_of): first with the present
  /// state and then after each change. Empty: there is none.
  using observer = std::function<void(source source, const std::string& digest)>;

  /// `api`, of the runtime, and `log` must outlive it. `trust_bundle`: the runtime's API server has
  /// ClusterTrustBundles.
  bootstrapped(cli::services& with, core::logger& log, k8s::client& api, bool trust_bundle,
               observer tell);

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  boost::asio::awaitable<void> follow(k8s::informer* from, source source, k8s::object_key key);
  boost::asio::awaitable<void> watch_deployment();
  boost::asio::awaitable<void> keep_status();
  std::string start_error(const boost::json::value& deployment);

  cli::services& services_;
  core::logger& log_;
  k8s::client& api_;
  const observer tell_;
  k8s::informer deployments_;
  k8s::informer config_maps_;
  k8s::informer secrets_;
  std::optional<k8s::informer> trust_bundles_;
  core::wake changed_;    ///< the Deployment or its configuration
  std::string template_;  ///< of the pods that have started; empty: none have
};

}  // namespace rw::dev
