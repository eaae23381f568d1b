#include "reactors/cli/webhook_pipeline.hpp"

#include "core/backoff.hpp"
#include "core/task_group.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/cli/join_by.hpp"

#include <boost/asio/this_coro.hpp>

#include <exception>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

dispatch::dispatch_options dispatch_options(const webhook_settings& s) {
  dispatch::dispatch_options options;
  options.contract = s.contract;
  options.upstream.name = "kcp";
  options.upstream.host = s.kcp.host;
  options.upstream.port = s.kcp.port;
  options.schedule.capacity = s.set_capacity;
  options.schedule.max_age = s.event_max_age;
  options.requests = s.requests_at_once;
  return options;
}

tls::client_options client_tls(const webhook_settings& s) {
  tls::client_options options;
  options.server_name = s.kcp.host;
  return options;
}

}  // namespace

webhook_pipeline::webhook_pipeline(asio::any_io_executor executor, const webhook_settings& settings,
                                   std::shared_ptr<tls::credentials> own,
                                   pipeline_environment environment,
                                   admission::event_observer on_event)
    : shutdown_delay_(settings.shutdown_delay),
      drain_timeout_(settings.drain_timeout),
      environment_(environment),
      server_tls_(need(tls::make_server_transport(own), "TLS_CERT")),
      client_tls_(need(tls::make_client_transport(own, client_tls(settings)), "CA_CERT")),
      events_(settings.channel_capacity),
      dispatcher_(executor, dispatch_options(settings), events_,
                  {environment_.clock, environment_.watchdog, *client_tls_, environment_.log,
                   environment_.metrics, core::make_random_source()}),
      webhook_({.contract = settings.contract,
                .body_limit = settings.max_review_bytes,
                .wait = settings.admission_wait,
                .on_event = std::move(on_event),
                .managers = environment_.managers},
               events_, environment_.clock, environment_.log, environment_.metrics),
      intake_(executor,
              {"webhook",
               listening_address({settings.bind_address, settings.webhook_port}, "BIND_ADDRESS"),
               {}},
              webhook_,
              {*server_tls_, environment_.watchdog, environment_.log, environment_.metrics}),
      stop_(executor) {}

/// Waits for `shutdown_delay`: callers that do not know of the end yet are still served. Returns
/// false if cancelled meanwhile.
asio::awaitable<bool> webhook_pipeline::outlast_callers() {
  if (shutdown_delay_ <= std::chrono::milliseconds(0)) co_return true;
  environment_.log.info("stopping soon: reviews are still accepted during the shutdown delay",
                        {{"milliseconds", shutdown_delay_.count()}});
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = environment_.clock.make_timer(executor);
  timer->expires_at(environment_.clock.now() + shutdown_delay_);
  const bool due = co_await timer->wait();
  co_return due;
}

asio::awaitable<void> webhook_pipeline::run() {
  const auto executor = co_await asio::this_coro::executor;
  co_await asio::this_coro::throw_if_cancelled(false);
  std::exception_ptr failure;
  const auto fail = [this, &failure](std::exception_ptr thrown) {
    if (!failure) failure = thrown;
    stop();
  };
  core::task_group intake(executor, fail);
  core::task_group delivery(executor, fail);
  delivery.spawn(dispatcher_.run());
  intake.spawn(intake_.run());

  const auto aborted = co_await stop_.wait();
  bool cancelled = bool(aborted);
  if (!cancelled && !failure) {
    const bool outlasted = co_await outlast_callers();
    cancelled = !outlasted;
  }

  if (cancelled) {
    intake.cancel();
    delivery.cancel();
  } else {
    environment_.log.info("stopping: no new reviews, delivering what was accepted",
                          {{"events", undelivered()}});
  }
  const auto end = environment_.clock.now() + drain_timeout_;
  intake_.drain();
  // Slow clients may use half of the time; the rest is for accepted events.
  co_await join_by(environment_.clock, intake, end - drain_timeout_ / 2);
  events_.close();
  co_await join_by(environment_.clock, delivery, end);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rw::cli
