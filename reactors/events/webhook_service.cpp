#include "rw/reactors/events/webhook_service.hpp"

#include "rw/k8s/config/config.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <chrono>
#include <utility>

namespace rw::webhook {
namespace {

namespace asio = boost::asio;

core::counter& reload_counter(core::metrics& registry, const char* outcome) {
  return core::make_counter(registry, "rw_tls_reloads_total",
                            "Number of reads of changed certificate files", {{"outcome", outcome}});
}

/// The managers are in the service that it is made for.
pipeline_environment with(pipeline_environment from, const managers_in_use& managers,
                          k8s::client* api) {
  from.managers = &managers;
  from.api = api;
  return from;
}

}  // namespace

k8s::result<std::unique_ptr<k8s::client>> make_api_client(
    asio::any_io_executor executor, const serve_options& options,
    const k8s::client_environment& environment) {
  std::string reason;
  if (!options.watches) reason = "the source is webhook";
  if (options.managers_file.empty()) reason = "there is no managers' file";
  auto found = k8s::result<k8s::config>();
  if (reason.empty()) {
    found = options.kubeconfig.empty() ? k8s::in_cluster_config()
                                       : k8s::load_config(options.kubeconfig);
    if (!found && !options.kubeconfig.empty()) return found.error();
    if (!found) reason = found.error().message;
  }
  if (!reason.empty()) {
    environment.log.info("nothing observed, events come from reviews alone", {{"reason", reason}});
    return std::unique_ptr<k8s::client>();
  }
  k8s::client_options made;
  made.name = "skr";
  made.user_agent = "runtime-watcher-webhook";
  made.field_manager = default_field_manager;
  made.connections = 2;
  made.response_bytes = 4u << 20;  // of a page of a list, which is smaller where objects are large
  return std::make_unique<k8s::client>(std::move(executor), std::move(*found), made, environment);
}

webhook_service::webhook_service(asio::any_io_executor executor, const serve_options& options,
                                 std::shared_ptr<tls::credentials> credentials,
                                 std::unique_ptr<k8s::client> api, pipeline_environment environment)
    : clock_(environment.clock),
      credentials_(std::move(credentials)),
      reloads_(reload_counter(environment.metrics, "used")),
      failed_reloads_(reload_counter(environment.metrics, "refused")),
      not_after_(core::make_gauge(environment.metrics,
                                  "rw_tls_certificate_not_after_timestamp_seconds",
                                  "Expiry of the certificate in use, Unix time in seconds")),
      reloader_(executor, credentials_, options.files, environment.log),
      managers_reloader_(options.managers_file.empty()
                             ? nullptr
                             : std::make_unique<managers_reloader>(executor, options.managers_file,
                                                                   managers_, environment.log,
                                                                   environment.metrics)),
      api_(std::move(api)),
      pipeline_(executor, options, credentials_, with(environment, managers_, api_.get())) {
  reloader_.on_attempt([this](const tls::result<void>& outcome) { on_reload(outcome); });
  if (managers_reloader_) managers_reloader_->on_used([this] { pipeline_.reloaded(); });
  publish_certificate();
}

void webhook_service::start(core::task_group& reading, core::task_group& serving) {
  reading.spawn(reloader_.run());
  if (managers_reloader_) reading.spawn(managers_reloader_->run());
  serving.spawn(pipeline_.run());
}

void webhook_service::stop() {
  stopping_ = true;
  pipeline_.stop();
}

asio::awaitable<void> webhook_service::close() {
  if (api_) co_await api_->close();
}

void webhook_service::publish_certificate() {
  const auto expiry = credentials_->current()->leaf()->not_after().time_since_epoch();
  not_after_.Set(std::chrono::duration<double>(expiry).count());
}

void webhook_service::on_reload(const tls::result<void>& outcome) {
  if (outcome.has_error()) {
    failed_reloads_.Increment();
    return;
  }
  reloads_.Increment();
  publish_certificate();
  pipeline_.renew_connections();
  pipeline_.reloaded();
}

std::string webhook_service::not_ready() const {
  std::string reasons;
  const auto leaf = credentials_->current()->leaf();
  if (!leaf->valid_at(clock_.wall())) reasons += "the certificate is not valid now\n";
  if (stopping_) reasons += "stopping\n";
  return reasons;
}

}  // namespace rw::webhook
