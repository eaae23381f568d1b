#include "rw/reactors/cli/listen_app.hpp"

#include "rw/reactors/cli/listening.hpp"
#include "rw/reactors/cli/startup_memory.hpp"

#include <unistd.h>

namespace rw::cli {

namespace asio = boost::asio;

listen_app::listen_app(services& with, listen_settings settings)
    : app(with),
      settings_(std::move(settings)),
      listener_(listener::register_component(with.executor, listener_options(),
                                             {with.clock, with.watchdog, with.log, with.metrics})),
      output_(with.executor, STDOUT_FILENO),
      plain_(core::make_plain_transport()),
      pages_(with.metrics,
             {.not_ready = [this] { return std::string(stopping_ ? "stopping\n" : ""); }}) {
  if (!settings_.metrics_address.host.empty()) {
    admin_ = std::make_unique<http::server>(
        with.executor,
        http::server_options{
            "admin", listening_address(settings_.metrics_address, "--metrics-address"), {}},
        pages_, http::server_environment{*plain_, with.watchdog, with.log, with.metrics});
  }
}

listener::listener_options listen_app::listener_options() {
  auto out = listening_options(services_, settings_.listening, "--address", reloader_);
  // Slow senders may use half of the time; the rest is for accepted events.
  out.drain_requests = settings_.drain_timeout / 2;
  out.resyncs = settings_.resyncs;
  return out;
}

/// Prints events; writes all events of one wake-up at once. Meanwhile the listener's queue fills,
/// and senders then get 503.
asio::awaitable<void> listen_app::print_events() {
  std::vector<listener::received_event> received;
  for (;;) {
    received.clear();
    const auto got = co_await listener_.events->receive_some(received, 1024);
    if (got.has_error()) co_return;
    std::string lines;
    const auto& component = settings_.listening.component;
    for (const auto& each : received) {
      if (each.resync) {
        append_resync_line(lines, component, each.runtime_id, *each.resync);
      } else {
        append_event_line(lines, component, each.runtime_id, each.event);
      }
    }
    const auto error = co_await output_.write(std::move(lines));
    if (error == asio::error::operation_aborted) co_return;
    if (!error) continue;
    listener_.events->close();
    throw std::runtime_error("cannot write events to standard output: " + error.message());
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
  const auto lost = output_.unwritten() + listener_.events->size() + listener_.runnable->pending();
  if (lost > 0) {
    services_.log.error("events not written to standard output", {{"events", lost}});
  }
  rethrow_failure();
  services_.log.info("stopped");
  co_return lost == 0 ? 0 : 1;
}

}  // namespace rw::cli
