#include "rw/reactors/cli/webhook_app.hpp"

#include "rw/reactors/cli/startup_memory.hpp"
#include "rw/reactors/cli/version.hpp"
#include "rw/tls/fips.hpp"

#include <chrono>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

/// With what the pipeline needs of them.
webhook_settings complete(webhook_settings from) {
  from.address = listening_address({from.bind_address, from.webhook_port}, "BIND_ADDRESS");
  from.version = version_text();
  return from;
}

std::unique_ptr<k8s::client> connect(services& with, const webhook_settings& settings) {
  auto made = webhook::make_api_client(with.executor, settings, with.for_client());
  if (!made) throw setting_error("--kubeconfig: " + made.error().message);
  return std::move(*made);
}

http::server_limits admin_limits() {
  http::server_limits limits;
  limits.connections = 64;
  limits.buffered_bytes = 4u << 20;  // of metrics, for slow readers
  return limits;
}

}  // namespace

webhook_app::webhook_app(services& with, webhook_settings settings)
    : app(with),
      settings_(complete(std::move(settings))),
      plain_(core::make_plain_transport()),
      service_(with.executor, settings_,
               need(tls::credentials::load(settings_.files), "TLS_CERT, TLS_KEY, CA_CERT"),
               connect(with, settings_), {with.clock, with.watchdog, with.log, with.metrics}),
      pages_(with.metrics, {.not_ready = [this] { return service_.not_ready(); }}),
      admin_(with.executor,
             {"admin",
              listening_address({settings_.bind_address, settings_.metrics_port}, "BIND_ADDRESS"),
              admin_limits()},
             pages_, {*plain_, with.watchdog, with.log, with.metrics}) {
  core::make_gauge(with.metrics, "watcher_fips_mode",
                   "FIPS mode: off (0), on beside other providers (1), or only FIPS (2)")
      .Set(static_cast<double>(tls::current_fips_mode()));
  for (const auto& remark : settings_.remarks) {
    with.log.error("setting ignored", {{"reason", remark}});
  }
  for (const auto& remark : settings_.outdated) {
    with.log.warning("outdated setting", {{"reason", remark}});
  }
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
  background.spawn(admin_.run());
  service_.start(background, serving);
  log_listening(services_.log, "webhook", address());
  log_listening(services_.log, "admin", admin_.address());
  if (services_.owns_process) background.spawn(give_back_code());

  co_await stop_.wait();

  service_.stop();
  co_await serving.join();
  co_await service_.close();
  background.cancel();
  co_await background.join();
  rethrow_failure();
  const auto lost = service_.undelivered();
  services_.log.info("stopped", {{"undelivered", lost}});
  co_return lost == 0 ? 0 : 1;
}

}  // namespace rw::cli
