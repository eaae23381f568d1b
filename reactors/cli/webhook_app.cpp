#include "rw/reactors/cli/webhook_app.hpp"

#include "rw/k8s/config/config.hpp"
#include "rw/reactors/cli/startup_memory.hpp"
#include "rw/tls/fips.hpp"

#include <boost/asio/ip/address.hpp>

#include <chrono>
#include <sstream>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

tls::material_files files_of(const webhook_settings& s) {
  return {s.tls_cert, s.tls_key, s.ca_cert};
}

http::server_limits admin_limits() {
  http::server_limits limits;
  limits.connections = 64;
  limits.buffered_bytes = 4u << 20;  // of metrics, for slow readers
  return limits;
}

/// Null, and logged, if the runtime's API server is not to be watched, or not known.
std::unique_ptr<k8s::client> connect(services& with, const webhook_settings& s) {
  std::string reason;
  if (s.source == "webhook") reason = "--source is webhook";
  if (s.managers_file.empty()) reason = "--managers-file is not set";
  auto found = k8s::result<k8s::config>();
  if (reason.empty()) {
    found = s.kubeconfig.empty() ? k8s::in_cluster_config() : k8s::load_config(s.kubeconfig);
    if (!found && !s.kubeconfig.empty()) {
      throw setting_error("--kubeconfig: " + found.error().message);
    }
    if (!found) reason = found.error().message;
  }
  if (!reason.empty()) {
    with.log.info("nothing observed, events come from reviews alone", {{"reason", reason}});
    return nullptr;
  }
  k8s::client_options options;
  options.name = "skr";
  options.user_agent = "runtime-watcher-webhook";
  options.field_manager = default_field_manager;
  options.connections = 2;
  options.response_bytes =
      4u << 20;  // of a page of a list, which is smaller where objects are large
  return std::make_unique<k8s::client>(with.executor, std::move(*found), options,
                                       with.for_client());
}

}  // namespace

webhook_app::webhook_app(services& with, webhook_settings settings)
    : app(with),
      settings_(std::move(settings)),
      credentials_(need(tls::credentials::load(files_of(settings_)), "TLS_CERT, TLS_KEY, CA_CERT")),
      plain_(core::make_plain_transport()),
      reloads_(core::make_counter(with.metrics, "rw_tls_reloads_total",
                                  "Number of reads of changed certificate files",
                                  {{"outcome", "used"}})),
      failed_reloads_(core::make_counter(with.metrics, "rw_tls_reloads_total",
                                         "Number of reads of changed certificate files",
                                         {{"outcome", "refused"}})),
      not_after_(core::make_gauge(with.metrics, "rw_tls_certificate_not_after_timestamp_seconds",
                                  "Expiry of the certificate in use, Unix time in seconds")),
      reloader_(with.executor, credentials_, files_of(settings_), with.log),
      managers_reloader_(
          settings_.managers_file.empty()
              ? nullptr
              : std::make_unique<managers_reloader>(with.executor, settings_.managers_file,
                                                    managers_, with.log, with.metrics)),
      api_(connect(with, settings_)),
      pipeline_(with.executor, settings_, credentials_,
                {with.clock, with.watchdog, with.log, with.metrics, &managers_, api_.get()}),
      pages_(with.metrics, {.not_ready = [this] { return not_ready(); }}),
      admin_(with.executor,
             {"admin",
              listening_address({settings_.bind_address, settings_.metrics_port}, "BIND_ADDRESS"),
              admin_limits()},
             pages_, {*plain_, with.watchdog, with.log, with.metrics}) {
  core::make_gauge(with.metrics, "watcher_fips_mode",
                   "FIPS mode: off (0), on beside other providers (1), or only FIPS (2)")
      .Set(static_cast<double>(tls::current_fips_mode()));
  reloader_.on_attempt([this](const tls::result<void>& outcome) { on_reload(outcome); });
  if (managers_reloader_) managers_reloader_->on_used([this] { pipeline_.reloaded(); });
  publish_certificate();
  for (const auto& remark : settings_.remarks) {
    with.log.error("setting ignored", {{"reason", remark}});
  }
  for (const auto& remark : settings_.outdated) {
    with.log.warning("outdated setting", {{"reason", remark}});
  }
}

void webhook_app::publish_certificate() {
  const auto expiry = credentials_->current()->leaf()->not_after().time_since_epoch();
  not_after_.Set(std::chrono::duration<double>(expiry).count());
}

void webhook_app::on_reload(const tls::result<void>& outcome) {
  if (outcome.has_error()) {
    failed_reloads_.Increment();
    return;
  }
  reloads_.Increment();
  publish_certificate();
  pipeline_.renew_connections();
  pipeline_.reloaded();
}

/// Returns one reason a line; empty if the process is ready.
std::string webhook_app::not_ready() const {
  std::string reasons;
  const auto leaf = credentials_->current()->leaf();
  if (!leaf->valid_at(services_.clock.wall())) reasons += "the certificate is not valid now\n";
  if (stopping_) reasons += "stopping\n";
  return reasons;
}

/// That of the start, and that of the first heartbeat's connection, which follows within a second.
asio::awaitable<void> webhook_app::give_back_code() {
  give_back_startup_code();
  const auto timer = services_.clock.make_timer(services_.executor);
  timer->expires_at(services_.clock.now() + std::chrono::seconds(2));
  const bool due = co_await timer->wait();
  if (due) give_back_startup_code();
}

asio::awaitable<int> webhook_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group serving(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  background.spawn(reloader_.run());
  if (managers_reloader_) background.spawn(managers_reloader_->run());
  background.spawn(admin_.run());
  serving.spawn(pipeline_.run());
  log_listening(services_.log, "webhook", pipeline_.address());
  log_listening(services_.log, "admin", admin_.address());
  if (services_.owns_process) background.spawn(give_back_code());

  co_await stop_.wait();

  stopping_ = true;
  pipeline_.stop();
  co_await serving.join();
  if (api_) co_await api_->close();
  background.cancel();
  co_await background.join();
  rethrow_failure();
  const auto lost = pipeline_.undelivered();
  services_.log.info("stopped", {{"undelivered", lost}});
  co_return lost == 0 ? 0 : 1;
}

}  // namespace rw::cli
