#pragma once

#include "rw/core/channel.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/wake.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/reactors/admission/admission.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/dispatch/dispatch.hpp"
#include "rw/reactors/heartbeat/sender.hpp"
#include "rw/reactors/observation/observation.hpp"
#include "rw/reactors/shared/gap_account.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace rw::cli {

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
/// Without observation (source webhook, settle 0) dispatch takes from the channel. Unless
/// the setting is 0, a sender of heartbeats reports on these parts over the connections of
/// dispatch.
///
/// Metric: `rw_event_gaps_total`.
///
/// It ignores the settings of files and of the metrics' port: its owner handles those. On one
/// executor.
class webhook_pipeline {
 public:
  /// Binds. Connections on both sides use the current credentials when they begin. Throws an
  /// exception that names the invalid setting.
  webhook_pipeline(boost::asio::any_io_executor executor, const webhook_settings& settings,
                   std::shared_ptr<tls::credentials> own, pipeline_environment environment,
                   admission::event_observer on_event = {});
  webhook_pipeline(const webhook_pipeline&) = delete;
  webhook_pipeline& operator=(const webhook_pipeline&) = delete;

  boost::asio::ip::tcp::endpoint address() const { return intake_.address(); }

  /// Serves until `stop`, and for `shutdown_delay` more; then rejects new reviews, and delivers the
  /// accepted events, within `drain_timeout`. Ends at once if cancelled. Rethrows the failure of a
  /// part.
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
  heartbeats::watcher_report report() const;
  std::string answer_probe(std::string_view nonce);
  std::vector<std::string> heartbeat_managers() const;
  void raise_gap(const std::string& manager);
  dispatch::dispatcher make_dispatcher(boost::asio::any_io_executor executor,
                                       const webhook_settings& settings);
  admission::webhook_options webhook_options(const webhook_settings& settings,
                                             admission::event_observer on_event);

  const std::chrono::milliseconds shutdown_delay_;
  const std::chrono::milliseconds drain_timeout_;
  const pipeline_environment environment_;
  const std::shared_ptr<const tls::credentials> credentials_;
  const std::string source_;
  const std::string pod_name_;
  const std::unique_ptr<core::transport> server_tls_;
  const std::unique_ptr<core::transport> client_tls_;
  core::counter& gap_count_;
  core::log_limit gap_log_;
  core::channel<watch_event> events_;  ///< of admitted writes
  gap_account gaps_;
  dispatch::observed_objects objects_;
  dispatch::dispatcher dispatcher_;
  const std::unique_ptr<observation::observation> observation_;  ///< null: there is none
  admission::webhook webhook_;
  const std::unique_ptr<heartbeats::sender> heartbeat_;  ///< null: none are sent
  http::server intake_;
  core::wake stop_;
};

}  // namespace rw::cli
