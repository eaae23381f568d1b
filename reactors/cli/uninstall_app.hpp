#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/client/fence.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/leader_settings.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/watcher_installer/installation.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// `runtime-watcher uninstall`: removes the watcher from all runtimes, and everything of the
/// manager from KCP: its finalizers, certificates, VirtualServices, the gateway's Secret, its
/// EndpointSlice and Lease. With `keep_runtimes` it removes only the finalizers on Kymas and
/// objects that lifecycle-manager does not use, and makes lifecycle-manager the owner of the
/// webhooks (watcher_installer/handover.hpp).
///
/// It acquires the manager's Lease first, and waits until that is free, for a limited time: no
/// manager restores what it removes. Every step is idempotent, so an interrupted run is resumed by
/// starting it again. A Kyma loses its finalizer after its runtime is clean; a Kyma whose runtime
/// can't be cleaned keeps it, unless `force` is set. Objects that all runtimes share are removed
/// when no Kyma is left.
///
/// Exit code 0: done; 3: some Kymas are left, which the output names; 1: failure.
class uninstall_app final : public app {
 public:
  uninstall_app(services& with, uninstall_settings settings);
  ~uninstall_app() override;

  boost::asio::awaitable<int> run() override;

 private:
  template <class T>
  using work = boost::asio::awaitable<T>;
  using list = std::vector<boost::json::value>;

  work<void> lead();
  work<void> read_settings();
  work<void> uninstall();
  work<k8s::result<list>> read_all(k8s::resource_type type, std::string ns, std::string finalizer);
  work<void> clean_some(list* kymas, std::size_t* next);
  work<std::string> clean(boost::json::value kyma, std::string* note);
  work<k8s::result<bool>> clean_runtime(std::string name);
  work<std::string> release(k8s::resource_type type, boost::json::value object,
                            std::string finalizer);
  work<std::string> unroute(boost::json::value* watcher);
  work<std::string> remove(k8s::resource_type type, std::string ns, std::string name);
  work<std::string> clean_control_plane();
  work<k8s::result<std::size_t>> count_others();
  std::shared_ptr<const k8s::fence> leader_fence() const;
  work<std::string> release_all(k8s::resource_type type, std::string finalizer, bool with_routes);
  k8s::object_key lease_key() const;
  work<std::string> lease_refusal();
  work<std::string> holder_of_lease(std::string identity);
  work<void> report_waiting(std::string identity);
  work<void> remove_lease();
  work<void> say(std::string line);

  const uninstall_settings settings_;
  leader_settings leader_;  ///< read from the Lease
  watcher_installer::install_options options_;
  k8s::fence fence_;
  k8s::client lease_;  ///< not fenced
  k8s::client kcp_;
  std::unique_ptr<k8s::client_pool> pool_;
  output output_;
  std::size_t done_ = 0;
  std::size_t left_ = 0;
  std::string error_;  ///< why the run failed
  std::vector<std::string> lines_;
  bool writing_ = false;
  bool leads_ = false;
  bool finished_ = false;  ///< all steps were tried
};

}  // namespace rw::cli
