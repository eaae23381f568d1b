#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/token_bucket.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/cache/own_writes.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/k8s/controller/reconciler.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/watcher.hpp"
#include "rw/reactors/shared/watcher_set.hpp"
#include "rw/reactors/watcher_controller/virtual_service.hpp"
#include "rw/reactors/watcher_controller/watcher_status.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::watcher_controller {

/// A component of the manager itself: its VirtualService needs no Watcher.
struct own_component {
  k8s::object_key key = {};       ///< of the VirtualService
  std::string name = {};          ///< in the path, as a Watcher's manager
  watcher::service service = {};  ///< that receives its requests
  std::string gateway = {};       ///< a Gateway in the namespace of the Gateways
};

struct watcher_controller_options {
  std::string gateway_namespace{kcp_namespace};
  /// Resync period of a Ready Watcher. A reconcile without changes costs no request, so this only
  /// bounds the time until a lost change is noticed.
  core::duration revisit = std::chrono::seconds(60);
  /// Number of immediate repairs of a VirtualService in a row, and the pause between two repairs
  /// after that: another client may demand a different state.
  unsigned repairs = 10;
  core::duration repair_pause = std::chrono::seconds(10);
  std::size_t concurrent = 4;                        ///< concurrent Watchers
  std::string field_manager{default_field_manager};  ///< of the VirtualServices' fields
  std::optional<own_component> own = {};
};

/// The sources of the controller. The caller runs the informers, which may serve other reactors too
/// and may run before this process leads; all must outlive the controller, on its executor. They
/// keep the whole objects, except for managedFields.
struct watcher_controller_sources {
  k8s::informer& watchers;          ///< of all namespaces, or of those to handle
  k8s::informer& gateways;          ///< of the gateway namespace; others are ignored
  k8s::informer& virtual_services;  ///< of the Watchers' namespaces
};

/// All of it must outlive the controller.
struct watcher_controller_environment {
  k8s::client& api;  ///< with the leader's fence, if there is one
  k8s::event_sink& events;
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// Why a Watcher is in Error, and since when, as far as this process knows.
struct watcher_fault {
  watcher_error error = {};
  std::chrono::system_clock::time_point since = {};
};
using watcher_faults = std::unordered_map<k8s::object_key, watcher_fault, k8s::object_key_hash>;

/// Keeps one VirtualService for each Watcher, which routes its events from the gateway to the
/// receiving service (virtual_service.hpp has its content), and reports its state in the Watcher's
/// status.
///
/// It watches Watchers, Gateways and VirtualServices, and reacts to a change of any of them at
/// once, drift by other clients included. It writes the VirtualService by server-side apply, by
/// force, and only if it differs from the desired state. A Watcher without changes costs no
/// request.
///
/// Status: state "" -> Processing -> Ready or Error, with the reason in the condition
/// `VirtualService`; Error comes with a Warning event:
/// - `WatcherInvalid`: fields have invalid values; one event reports all. No retry before the
///   Watcher changes.
/// - `WatcherGatewayNotFound`, `WatcherGatewayWithoutHosts`: it becomes Ready when a Gateway is
///   created or changed.
/// - `WatcherLimitExceeded`: with it there are more Watchers than fit on a runtime
///   (shared/watcher_set.hpp). It becomes Ready when there is room.
/// - `WatcherVirtualServiceNotApplied`: the API server rejected it. Retried with backoff.
/// - `WatcherStatusUpdate`: the status could not be written.
/// - `WatcherVirtualServiceContested`: another client undoes each repair. An event only. A Watcher
///   in Error that was Ready keeps its last VirtualService: its events are still routed until the
///   Watcher is corrected. An annotation of the VirtualService stores the last valid Watcher
///   (watcher.hpp), for the runtimes' webhooks.
///
/// The VirtualService of the manager's own component is kept likewise, as long as its Gateway
/// exists and no Watcher has its name.
///
/// Deletion: the finalizer `operator.kyma-project.io/watcher` keeps a Watcher, in state Deleting,
/// until its VirtualService is deleted (`WatcherVirtualServiceNotDeleted` if that fails). Only a
/// VirtualService that names the Watcher as its owner is deleted.
///
/// Metrics: `rw_watcher_virtual_service_writes_total`, which keeps growing while another client
/// writes the same fields; and those of k8s::controller, with `controller="watcher"`.
class watcher_controller final : private k8s::reconciler {
 public:
  watcher_controller(boost::asio::any_io_executor executor, watcher_controller_sources sources,
                     watcher_controller_options options,
                     watcher_controller_environment environment);

  /// Runs until cancelled. Running reconciles get time to end.
  boost::asio::awaitable<void> run() { return core_.run(); }

  /// The Watchers in Error, by key. Valid until the next reconcile.
  const watcher_faults& faults() const noexcept { return faults_; }

 private:
  using step = boost::asio::awaitable<std::optional<k8s::reconcile_result>>;  ///< nothing: continue

  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override;
  boost::asio::awaitable<k8s::reconcile_result> configure_own();
  bool is_own(const k8s::object_key& key) const { return own_ && own_->key == key; }
  // A step that changes the Watcher replaces `*watcher` by the new state.
  step begin(boost::json::value* watcher);
  boost::asio::awaitable<k8s::reconcile_result> configure(boost::json::value* watcher);
  step apply(boost::json::value* watcher, boost::json::value desired);
  boost::asio::awaitable<std::optional<k8s::result<boost::json::value>>> write_virtual_service(
      k8s::object_key key, boost::json::value desired);
  void log_write(std::string_view text, const k8s::object_key& key) const;
  k8s::reconcile_result contested(const boost::json::value& watcher) const;
  boost::asio::awaitable<k8s::reconcile_result> release(boost::json::value* watcher);
  step remove_virtual_service(boost::json::value* watcher);

  step write(boost::json::value* watcher, boost::json::value change, std::string subresource);
  step tell(boost::json::value* watcher, desired_status to);
  boost::asio::awaitable<k8s::reconcile_result> give_up(boost::json::value* watcher,
                                                        watcher_error error, desired_status to,
                                                        k8s::reconcile_result then);

  std::vector<boost::json::value> gateways() const;
  void map_gateway(const k8s::delta& change, k8s::controller::keys& keys) const;

  const watcher_controller_sources sources_;
  const watcher_controller_options options_;
  const watcher_controller_environment environment_;
  core::counter& writes_;
  const std::optional<watcher> own_;  ///< the own component, as a Watcher
  watcher_set set_;
  k8s::own_writes own_writes_;
  core::lru_map<k8s::object_key, core::token_bucket, k8s::object_key_hash> repairs_{4096};
  watcher_faults faults_;
  k8s::controller core_;
};

}  // namespace rw::watcher_controller
