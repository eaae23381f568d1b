#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/watcher_controller/virtual_service.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace rw::watcher_controller {

/// A component of the manager itself: its VirtualService needs no Watcher.
struct own_component {
  k8s::object_key key = {};      ///< of the VirtualService
  std::string name = {};         ///< in the path, as a Watcher's manager
  k8s::object_key service = {};  ///< that receives its requests
  std::uint16_t port = 0;        ///< likewise
  std::string gateway = {};      ///< a Gateway in the namespace of the Gateways
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
class watcher_controller {
 public:
  watcher_controller(boost::asio::any_io_executor executor, watcher_controller_sources sources,
                     watcher_controller_options options,
                     watcher_controller_environment environment);
  ~watcher_controller();
  watcher_controller(const watcher_controller&) = delete;
  watcher_controller& operator=(const watcher_controller&) = delete;

  /// Runs until cancelled. Running reconciles get time to end.
  boost::asio::awaitable<void> run();

  /// The Watchers in Error, by key. Valid until the next reconcile.
  const watcher_faults& faults() const noexcept;

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::watcher_controller
