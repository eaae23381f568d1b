#pragma once

#include "k8s/client.hpp"
#include "k8s/client_pool.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "reactors/bootstrapper/direct_sync.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/cli/runtime_config_settings.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <optional>

namespace rw::cli {

/// What writes to runtimes directly, while this replica leads: the informers that only it needs,
/// and a direct_sync on them.
///
/// The kind of ClusterTrustBundles is found first. When the server begins to serve them, or serves
/// another version, the reactor begins anew with that; it keeps all it knows on objects.
///
/// All that it is made with must outlive it.
class direct_runtimes {
 public:
  struct environment {
    k8s::client& writing;        ///< to KCP, with the leader's fence
    k8s::client& watching;       ///< to KCP
    k8s::informer& runtimes;     ///< run by somebody else
    k8s::informer& kubeconfigs;  ///< run by somebody else
    k8s::client_pool& pool;      ///< of clients of runtimes, fenced as well
    k8s::event_recorder& events;
  };

  direct_runtimes(services& with, const runtime_config_settings& settings, environment in);
  ~direct_runtimes();

  /// Until cancelled.
  boost::asio::awaitable<void> lead();

 private:
  class term;
  using bundles_type = std::optional<k8s::resource_type>;

  boost::asio::awaitable<bundles_type> find_bundles();
  boost::asio::awaitable<void> end_with_another(core::task_group* all, const bundles_type* present);
  boost::asio::awaitable<void> pause(core::duration by);
  bootstrapper::options options() const;

  services& services_;
  const runtime_config_settings settings_;
  const environment in_;
  core::log_limit log_limit_{1, std::chrono::minutes(5)};
};

}  // namespace rw::cli
