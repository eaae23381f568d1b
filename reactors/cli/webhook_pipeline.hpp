#pragma once

#include "core/channel.hpp"
#include "core/clock.hpp"
#include "core/http/server.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/wake.hpp"
#include "core/watchdog.hpp"
#include "reactors/admission/admission.hpp"
#include "reactors/cli/settings.hpp"
#include "reactors/dispatch/dispatch.hpp"
#include "tls/transport.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>

namespace rw::cli {

/// What a pipeline needs from its surroundings; all of it must outlive the pipeline.
struct pipeline_environment {
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  const managers_in_use* managers = nullptr;  ///< null: every manager is known
};

/// The way of an event on a watched cluster, as the processes have it that run there:
///
///     server -> admission -> channel -> dispatch -> KCP's gateway
///
/// Of the settings, the files and the metrics' port are somebody else's. On one executor.
class webhook_pipeline {
 public:
  /// Binds. Connections on both sides use the credentials as they are when they begin. Throws what
  /// names the setting that can't be used.
  webhook_pipeline(boost::asio::any_io_executor executor, const webhook_settings& settings,
                   std::shared_ptr<tls::credentials> own, pipeline_environment environment,
                   admission::event_observer on_event = {});
  webhook_pipeline(const webhook_pipeline&) = delete;
  webhook_pipeline& operator=(const webhook_pipeline&) = delete;

  boost::asio::ip::tcp::endpoint address() const { return intake_.address(); }

  /// Serves until it is told to stop, and for `shutdown_delay` on; then no new reviews are taken,
  /// and what was accepted is delivered, within `drain_timeout`. Cancelled, it ends at once. Throws
  /// what a part of it threw.
  boost::asio::awaitable<void> run();
  void stop() { stop_.set(); }

  /// Uses new connections to KCP from now on, because the certificates changed.
  void renew_connections() { dispatcher_.renew_connections(); }

  /// Events that were accepted and are not delivered.
  std::size_t undelivered() const { return dispatcher_.pending() + events_.size(); }

 private:
  boost::asio::awaitable<bool> outlast_callers();

  const std::chrono::milliseconds shutdown_delay_;
  const std::chrono::milliseconds drain_timeout_;
  const pipeline_environment environment_;
  const std::unique_ptr<core::transport> server_tls_;
  const std::unique_ptr<core::transport> client_tls_;
  core::channel<watch_event> events_;
  dispatch::dispatcher dispatcher_;
  admission::webhook webhook_;
  http::server intake_;
  core::wake stop_;
};

}  // namespace rw::cli
