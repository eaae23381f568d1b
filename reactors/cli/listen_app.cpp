#include "reactors/cli/listen_app.hpp"

#include "reactors/cli/startup_memory.hpp"

#include <cstdio>

namespace rw::cli {

namespace asio = boost::asio;

listen_app::listen_app(services& with, listen_settings settings)
    : app(with),
      settings_(std::move(settings)),
      listener_(listener::register_component(with.executor, options(),
                                             {with.clock, with.watchdog, with.log, with.metrics})),
      plain_(core::make_plain_transport()),
      pages_(with.metrics, [this] { return std::string(stopping_ ? "stopping\n" : ""); }) {
  if (settings_.metrics_address) {
    admin_ = std::make_unique<http::server>(
        with.executor,
        http::server_options{
            "admin", listening_address(*settings_.metrics_address, "--metrics-address"), {}},
        pages_, http::server_environment{*plain_, with.watchdog, with.log, with.metrics});
  }
}

listener::listener_options listen_app::options() {
  listener::listener_options result;
  result.address = listening_address(settings_.address, "--address");
  result.component = settings_.component;
  result.trusted_proxies = settings_.trusted_proxies;
  const tls::material_files files{settings_.tls_cert, settings_.tls_key, settings_.client_ca};
  if (!files.ca.empty()) {
    credentials_ = need(tls::credentials::load(files), "--tls-cert, --tls-key, --client-ca");
    reloader_ =
        std::make_unique<tls::reloader>(services_.executor, credentials_, files, services_.log);
    (settings_.tls_cert.empty() ? result.client_ca : result.tls) = credentials_;
  }
  return result;
}

/// Prints what comes; what one wake-up brought is written at once.
asio::awaitable<void> listen_app::print_events() {
  std::vector<listener::received_event> received;
  std::string lines;
  for (;;) {
    received.clear();
    lines.clear();
    const auto got = co_await listener_.events->receive_some(received, 1024);
    if (got.has_error()) co_return;
    for (const auto& one : received) {
      append_event_line(lines, one.contract, settings_.component, one.runtime_id, one.event);
    }
    const bool written = std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size();
    if (!written || std::fflush(stdout) != 0) {
      throw std::runtime_error("cannot write events to standard output");
    }
  }
}

asio::awaitable<int> listen_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group intake(services_.executor, fail_on_exception());
  core::task_group printing(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  if (reloader_) background.spawn(reloader_->run());
  if (admin_) background.spawn(admin_->run());
  printing.spawn(print_events());
  intake.spawn(listener_.runnable->run());
  log_listening(services_.log, "listener", address());
  if (admin_) log_listening(services_.log, "admin", admin_->address());
  give_back_startup_code();

  co_await stop_.wait();

  stopping_ = true;
  const auto end = services_.clock.now() + settings_.drain_timeout;
  services_.log.info("stopping: no new events");
  listener_.runnable->drain();
  co_await join_by(intake, end);
  co_await join_by(printing, end);
  background.cancel();
  co_await background.join();
  rethrow_failure();
  services_.log.info("stopped");
  co_return 0;
}

}  // namespace rw::cli
