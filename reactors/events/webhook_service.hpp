#pragma once

#include "rw/core/task_group.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/events/managers_reload.hpp"
#include "rw/reactors/events/webhook_pipeline.hpp"
#include "rw/tls/reload.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>

namespace rw::webhook {

/// Makes the client that watches the runtime's resources. Null, and logged, if they are not to be
/// watched, or their API server is not known. Fails if the kubeconfig can't be used.
k8s::result<std::unique_ptr<k8s::client>> make_api_client(
    boost::asio::any_io_executor executor, const serve_options& options,
    const k8s::client_environment& environment);

/// The pipeline, and the files that it reads: certificates and managers, which it follows.
///
/// Metrics: `rw_tls_reloads_total{outcome}`, `rw_tls_certificate_not_after_timestamp_seconds`. On
/// one executor.
class webhook_service {
 public:
  /// Reads the managers' file, and throws as the pipeline does. `api` may be null.
  webhook_service(boost::asio::any_io_executor executor, const serve_options& options,
                  std::shared_ptr<tls::credentials> credentials, std::unique_ptr<k8s::client> api,
                  pipeline_environment environment);

  boost::asio::ip::tcp::endpoint address() const { return pipeline_.address(); }

  /// Spawns what reads files, until it is cancelled, and the pipeline, until `stop`.
  void start(core::task_group& reading, core::task_group& serving);
  /// Begins the graceful end.
  void stop();
  /// Ends the client, after the pipeline.
  boost::asio::awaitable<void> close();

  /// Returns one reason a line; empty if it is ready.
  std::string not_ready() const;
  std::size_t undelivered() const { return pipeline_.undelivered(); }

 private:
  void on_reload(const tls::result<void>& outcome);
  void publish_certificate();

  core::clock& clock_;
  const std::shared_ptr<tls::credentials> credentials_;
  core::counter& reloads_;
  core::counter& failed_reloads_;
  core::gauge& not_after_;
  tls::reloader reloader_;
  managers_in_use managers_;
  std::unique_ptr<managers_reloader> managers_reloader_;  ///< null: no file is configured
  const std::unique_ptr<k8s::client> api_;                ///< null: events come from reviews alone
  webhook_pipeline pipeline_;
  bool stopping_ = false;
};

}  // namespace rw::webhook
