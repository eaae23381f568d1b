#pragma once

#include "rw/core/channel.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/http/client.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/wake.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/reactors/events/admission.hpp"
#include "rw/reactors/events/dispatch.hpp"
#include "rw/reactors/events/heartbeat_sender.hpp"
#include "rw/reactors/events/observation.hpp"
#include "rw/reactors/events/serve.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace rw::webhook {

/// Dependencies of a pipeline; all of it must outlive the pipeline.
struct pipeline_environment {
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  const managers_in_use* managers = nullptr;  ///< null: every manager is known
  k8s::client* api = nullptr;                 ///< null: events come from reviews alone
};

/// The way of an event on a watched cluster, as the webhook process runs it:
///
///     server -> admission -> channel -> observation -> dispatch -> KCP's gateway
///
/// Unless the setting is 0, a sender of heartbeats reports on these parts over the connections of
/// dispatch; the last heartbeat has one of its own, as it is sent after those are closed.
///
/// Metric: `rw_event_losses_total{reason}`.
///
/// It ignores the options of files: its owner handles those. On one executor.
class webhook_pipeline {
 public:
  /// Binds. Connections on both sides use the current credentials when they begin. Throws
  /// std::invalid_argument if those lack a part, and boost::system::system_error if the address
  /// can't be bound.
  webhook_pipeline(boost::asio::any_io_executor executor, const serve_options& options,
                   std::shared_ptr<tls::credentials> own, pipeline_environment environment,
                   admission::event_observer on_event = {});
  webhook_pipeline(const webhook_pipeline&) = delete;
  webhook_pipeline& operator=(const webhook_pipeline&) = delete;

  boost::asio::ip::tcp::endpoint address() const { return intake_.address(); }

  /// Serves until `stop`, and for `shutdown_delay` more; then rejects new reviews, and delivers the
  /// accepted events, within `drain_timeout`, and reports to KCP how many are left. Ends at once if
  /// cancelled. Rethrows the failure of a part.
  boost::asio::awaitable<void> run();
  void stop() { stop_.set(); }

  /// Uses new connections to KCP from now on, because the certificates have changed.
  void renew_connections() { dispatcher_.renew_connections(); }

  /// Reports to KCP what is loaded, if that has changed.
  void reloaded() {
    if (heartbeat_) heartbeat_->reloaded();
  }

  /// Number of accepted events that are not delivered.
  std::size_t undelivered() const;

 private:
  boost::asio::awaitable<bool> outlast_callers();
  boost::asio::awaitable<void> report_end();
  heartbeats::watcher_report report() const;
  std::string answer_probe(std::string_view nonce);
  void note_raised(const std::string& manager, dispatch::resync_cause cause);
  admission::webhook_options webhook_options(const serve_options& options,
                                             admission::event_observer on_event);

  const std::chrono::milliseconds shutdown_delay_;
  const std::chrono::milliseconds drain_timeout_;
  const pipeline_environment environment_;
  const std::shared_ptr<const tls::credentials> credentials_;
  const std::string version_;
  const std::string pod_name_;
  const http::client_options upstream_;
  const std::unique_ptr<core::transport> server_tls_;
  const std::unique_ptr<core::transport> client_tls_;
  const std::array<core::counter*, dispatch::resync_losses> losses_;
  core::log_limit loss_log_;
  core::channel<watch_event> events_;  ///< of admitted writes
  dispatch::delivery objects_;
  dispatch::dispatcher dispatcher_;
  observation::observation observation_;
  admission::webhook webhook_;
  const std::unique_ptr<heartbeats::sender> heartbeat_;  ///< null: none are sent
  http::server intake_;
  core::wake stop_;
  bool delivery_ended_ = false;
};

}  // namespace rw::webhook
