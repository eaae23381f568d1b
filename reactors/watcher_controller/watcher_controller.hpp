#pragma once

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/watchdog.hpp"
#include "k8s/cache/informer.hpp"
#include "k8s/client/client.hpp"
#include "k8s/controller/event_recorder.hpp"
#include "reactors/shared/kyma_resources.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace rw::watcher_controller {

struct controller_options {
  /// Where Gateways are selected from.
  std::string gateway_namespace{kcp_namespace};
  /// How long a Watcher that is Ready is left alone if nothing is heard of it. To look again costs
  /// no request, so this only bounds how long a lost change could go unnoticed.
  core::duration revisit = std::chrono::seconds(60);
  /// How often in a row a VirtualService is repaired at once, and how long it is left alone between
  /// two repairs after that: something else may want it to be otherwise.
  unsigned repairs = 10;
  core::duration repair_pause = std::chrono::seconds(10);
  std::size_t concurrent = 4;                     ///< Watchers at once
  std::string field_manager = "runtime-watcher";  ///< of the VirtualServices' fields
};

/// What the controller reads. Somebody else runs the informers, which may serve other reactors too
/// and may run before this process leads; all must outlive the controller, on its executor. They
/// keep the whole objects, managedFields apart.
struct controller_sources {
  k8s::informer& watchers;          ///< of all namespaces, or of those that are cared for
  k8s::informer& gateways;          ///< of the gateway namespace; of others they are passed over
  k8s::informer& virtual_services;  ///< of the Watchers' namespaces
};

/// All of it must outlive the controller.
struct controller_environment {
  k8s::client& api;  ///< with the leader's fence, where there is one
  k8s::event_recorder& events;
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// Keeps one VirtualService for each Watcher, so that its events find the way from the gateway to
/// the service that wants them (virtual_service.hpp says what stands in it), and tells in the
/// Watcher's status how it is.
///
/// Watchers, Gateways and VirtualServices are watched: a change of any of them, drift by somebody
/// else's hand included, is acted on at once. The VirtualService is written by server-side apply,
/// by force, and only where it is not as it should be. A settled Watcher costs no request.
///
/// Status: state "" -> Processing -> Ready or Error, with the reason in the condition
/// `VirtualService`; Error comes with a Warning event:
///   - `WatcherInvalid`: fields have values that can't be used; all are told at once. It is not
///     tried again before the Watcher changes.
///   - `WatcherGatewayNotFound`, `WatcherGatewayWithoutHosts`: it becomes Ready when a Gateway
///     comes or changes.
///   - `WatcherVirtualServiceNotApplied`: the API server would not have it. Tried again with
///     backoff.
///   - `WatcherStatusUpdate`: the status could not be written.
///   - `WatcherVirtualServiceContested`: something else undoes each repair. Only told.
/// A Watcher that was Ready and is in Error keeps its VirtualService as it last was: events that
/// found their way go on finding it until the Watcher is corrected. An annotation of the
/// VirtualService remembers the last valid Watcher (watcher.hpp), for the runtimes' webhooks.
///
/// Deletion: the finalizer `operator.kyma-project.io/watcher` keeps a Watcher, in state Deleting,
/// until its VirtualService is gone (`WatcherVirtualServiceNotDeleted` where that fails). Only a
/// VirtualService that names the Watcher as its owner is deleted.
///
/// Metrics: `rw_watcher_virtual_service_writes_total`, which does not stand still where somebody
/// else fights for the same fields; and those of k8s::controller, with
/// `controller="watcher"`.
class controller {
 public:
  controller(boost::asio::any_io_executor executor, controller_sources sources,
             controller_options options, controller_environment environment);
  ~controller();
  controller(const controller&) = delete;
  controller& operator=(const controller&) = delete;

  /// Runs until cancelled. Reconciles that are under way are given time to end.
  boost::asio::awaitable<void> run();

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::watcher_controller
