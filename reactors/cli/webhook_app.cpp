#include "reactors/cli/webhook_app.hpp"

#include "reactors/cli/startup_memory.hpp"

#include <boost/asio/ip/address.hpp>
#include <openssl/evp.h>

#include <sstream>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

tls::material_files files_of(const webhook_settings& s) {
  return {s.tls_cert, s.tls_key, s.ca_cert};
}

dispatch::dispatch_options dispatch_options(const webhook_settings& s) {
  dispatch::dispatch_options options;
  options.contract = s.contract;
  options.upstream.name = "kcp";
  options.upstream.host = s.kcp.host;
  options.upstream.port = s.kcp.port;
  options.schedule.capacity = s.set_capacity;
  options.schedule.max_age = s.event_max_age;
  return options;
}

tls::client_options client_tls(const webhook_settings& s) {
  tls::client_options options;
  options.server_name = s.kcp.host;
  return options;
}

http::server_limits admin_limits() {
  http::server_limits limits;
  limits.connections = 64;
  limits.buffered_bytes = 0;
  return limits;
}

}  // namespace

webhook_app::webhook_app(services& with, webhook_settings settings)
    : app(with),
      settings_(std::move(settings)),
      credentials_(need(tls::credentials::load(files_of(settings_)), "TLS_CERT, TLS_KEY, CA_CERT")),
      server_tls_(need(tls::make_server_transport(credentials_), "TLS_CERT")),
      client_tls_(need(tls::make_client_transport(credentials_, client_tls(settings_)), "CA_CERT")),
      plain_(core::make_plain_transport()),
      reloads_(core::make_counter(with.metrics, "rw_tls_reloads_total",
                                  "Times that changed certificate files were read",
                                  {{"outcome", "used"}})),
      failed_reloads_(core::make_counter(with.metrics, "rw_tls_reloads_total",
                                         "Times that changed certificate files were read",
                                         {{"outcome", "refused"}})),
      not_after_(core::make_gauge(with.metrics, "rw_tls_certificate_not_after_seconds",
                                  "When the certificate in use expires, in seconds since 1970")),
      events_(settings_.channel_capacity),
      reloader_(with.executor, credentials_, files_of(settings_), with.log),
      dispatcher_(with.executor, dispatch_options(settings_), events_,
                  {with.clock, with.watchdog, *client_tls_, with.log, with.metrics,
                   core::make_random_source()}),
      webhook_({.contract = settings_.contract,
                .body_limit = settings_.max_review_bytes,
                .wait = settings_.admission_wait},
               events_, with.clock, with.log, with.metrics),
      intake_(with.executor,
              {"webhook",
               listening_address({settings_.bind_address, settings_.webhook_port}, "BIND_ADDRESS"),
               {}},
              webhook_, {*server_tls_, with.watchdog, with.log, with.metrics}),
      pages_(with.metrics, [this] { return not_ready(); }),
      admin_(with.executor,
             {"admin",
              listening_address({settings_.bind_address, settings_.metrics_port}, "BIND_ADDRESS"),
              admin_limits()},
             pages_, {*plain_, with.watchdog, with.log, with.metrics}) {
  core::make_gauge(with.metrics, "watcher_fips_mode", "Whether FIPS mode is off (0) or on (1)")
      .Set(EVP_default_properties_is_fips_enabled(nullptr));
  reloader_.on_attempt([this](const tls::result<void>& outcome) { on_reload(outcome); });
  publish_certificate();
  for (const auto& remark : settings_.remarks) {
    with.log.error("setting ignored", {{"reason", remark}});
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
  dispatcher_.renew_connections();
}

/// One reason a line; empty if all is well.
std::string webhook_app::not_ready() const {
  std::string reasons;
  const auto leaf = credentials_->current()->leaf();
  if (!leaf->valid_at(services_.clock.wall())) reasons += "the certificate is not valid now\n";
  if (events_.size() >= events_.capacity()) reasons += "the queue is full\n";
  if (stopping_) reasons += "stopping\n";
  return reasons;
}

asio::awaitable<int> webhook_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group intake(services_.executor, fail_on_exception());
  core::task_group delivery(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  background.spawn(reloader_.run());
  background.spawn(admin_.run());
  delivery.spawn(dispatcher_.run());
  intake.spawn(intake_.run());
  log_listening(services_.log, "webhook", intake_.address());
  log_listening(services_.log, "admin", admin_.address());
  give_back_startup_code();

  co_await stop_.wait();

  stopping_ = true;
  const auto end = services_.clock.now() + settings_.drain_timeout;
  services_.log.info("stopping: no new reviews, delivering what was accepted",
                     {{"events", dispatcher_.pending() + events_.size()}});
  intake_.drain();
  // A client that dawdles may use half of the time, the rest belongs to what was accepted.
  co_await join_by(intake, end - settings_.drain_timeout / 2);
  events_.close();
  co_await join_by(delivery, end);
  background.cancel();
  co_await background.join();
  rethrow_failure();
  const auto lost = dispatcher_.pending() + events_.size();
  services_.log.info("stopped", {{"undelivered", lost}});
  co_return lost == 0 ? 0 : 1;
}

}  // namespace rw::cli
