#include "rw/reactors/events/webhook_pipeline.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/join_by.hpp"
#include "rw/core/task_group.hpp"
#include "rw/reactors/events/watcher_report.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

namespace rw::webhook {
namespace {

namespace asio = boost::asio;

constexpr auto last_report = std::chrono::seconds(1);  // of the last heartbeat

http::client_options upstream_options(const serve_options& with) {
  http::client_options options;
  options.name = "kcp";
  options.host = with.kcp.host;
  options.port = with.kcp.port;
  return options;
}

dispatch::dispatch_options dispatch_options(const serve_options& with) {
  dispatch::dispatch_options options;
  options.upstream = upstream_options(with);
  options.schedule.capacity = with.set_capacity;
  options.requests = with.requests_at_once;
  return options;
}

std::size_t loss_index(dispatch::resync_cause cause) {
  return static_cast<std::size_t>(cause) -
         static_cast<std::size_t>(dispatch::resync_cause::removed);
}

std::array<core::counter*, dispatch::resync_losses> loss_counters(core::metrics& registry) {
  std::array<core::counter*, dispatch::resync_losses> out{};
  for (const auto cause : {dispatch::resync_cause::removed, dispatch::resync_cause::undecided,
                           dispatch::resync_cause::overflow}) {
    out.at(loss_index(cause)) = &core::make_counter(
        registry, "rw_event_losses_total",
        "Number of times that changes were dropped, each of which raises a resync",
        {{"reason", std::string(to_string(cause))}});
  }
  return out;
}

observation::observation_options observation_options(const serve_options& with) {
  observation::observation_options options;
  options.watches = with.watches;
  options.observer.settle = with.settle;
  options.observer.confirm_wait = with.confirm_wait;
  options.observer.settling = with.channel_capacity;
  options.secrets = with.observe_secrets;
  return options;
}

heartbeats::sender_options heartbeat_options(const serve_options& with) {
  heartbeats::sender_options options;
  options.interval = with.heartbeat_interval;
  return options;
}

template <class T>
T need(tls::result<T> made, const char* part) {
  if (!made) throw std::invalid_argument(part + (": " + made.error().message()));
  return std::move(*made);
}

tls::client_options client_tls(const serve_options& with) {
  tls::client_options options;
  options.server_name = with.kcp.host;
  return options;
}

}  // namespace

webhook_pipeline::webhook_pipeline(asio::any_io_executor executor, const serve_options& with,
                                   std::shared_ptr<tls::credentials> own,
                                   pipeline_environment environment,
                                   admission::event_observer on_event)
    : shutdown_delay_(with.shutdown_delay),
      drain_timeout_(with.drain_timeout),
      environment_(environment),
      credentials_(own),
      version_(with.version),
      pod_name_(with.pod_name),
      upstream_(upstream_options(with)),
      server_tls_(need(tls::make_server_transport(own), "the certificate")),
      client_tls_(need(tls::make_client_transport(own, client_tls(with)), "the CA bundle")),
      losses_(loss_counters(environment_.metrics)),
      events_(with.channel_capacity),
      objects_({.objects = with.observe_objects, .settle = with.settle},
               [this](const std::string& manager, dispatch::resync_cause cause) {
                 note_raised(manager, cause);
               }),
      dispatcher_(executor, dispatch_options(with),
                  {environment_.clock, environment_.watchdog, *client_tls_, environment_.log,
                   environment_.metrics, core::make_random_source(), objects_}),
      observation_(
          executor, observation_options(with), events_,
          {environment_.clock, environment_.log, environment_.metrics, core::make_random_source(),
           dispatcher_, objects_, environment_.api, environment_.managers}),
      webhook_(webhook_options(with, std::move(on_event)), events_, environment_.clock,
               environment_.log, environment_.metrics),
      heartbeat_(with.heartbeat_interval > std::chrono::milliseconds(0)
                     ? std::make_unique<heartbeats::sender>(
                           executor, heartbeat_options(with),
                           heartbeats::sender_environment{
                               environment_.clock, environment_.log, environment_.metrics,
                               core::make_random_source(), dispatcher_.upstream(),
                               [this] { return report(); }})
                     : nullptr),
      intake_(executor, {"webhook", with.address, {}}, webhook_,
              {*server_tls_, environment_.watchdog, environment_.log, environment_.metrics}),
      stop_(executor) {}

admission::webhook_options webhook_pipeline::webhook_options(const serve_options& with,
                                                             admission::event_observer on_event) {
  admission::webhook_options out{.body_limit = with.max_review_bytes,
                                 .wait = with.admission_wait,
                                 .on_event = std::move(on_event),
                                 .managers = environment_.managers};
  out.on_loss = [this](const watch_event& event) { return observation_.missed(event); };
  if (with.heartbeat_interval > std::chrono::milliseconds(0)) {
    out.probe = [this](std::string_view nonce) { return answer_probe(nonce); };
  }
  return out;
}

/// Waits for `shutdown_delay`: callers that do not know of the end yet are still served, and asked
/// to connect anew, which leads them to another pod as soon as there is one. Returns false if
/// cancelled meanwhile.
asio::awaitable<bool> webhook_pipeline::outlast_callers() {
  if (shutdown_delay_ <= std::chrono::milliseconds(0)) co_return true;
  intake_.release_connections();
  environment_.log.info("stopping soon: reviews are still accepted during the shutdown delay",
                        {{"milliseconds", shutdown_delay_.count()}});
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = environment_.clock.make_timer(executor);
  timer->expires_at(environment_.clock.now() + shutdown_delay_);
  const bool due = co_await timer->wait();
  co_return due;
}

/// Sends the last heartbeat.
asio::awaitable<void> webhook_pipeline::report_end() {
  http::client over(co_await asio::this_coro::executor, upstream_,
                    {*client_tls_, environment_.watchdog, environment_.log, environment_.metrics});
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await heartbeat_->finish(over);
  co_await over.close();
}

std::size_t webhook_pipeline::undelivered() const {
  const auto known = events_.size() + dispatcher_.pending();
  return known + observation_.waiting() + objects_.waiting();
}

heartbeats::watcher_report webhook_pipeline::report() const {
  const auto material = credentials_->current();
  return watcher_report_of({.webhook = webhook_,
                            .dispatcher = dispatcher_,
                            .observation = &observation_,
                            .managers = environment_.managers,
                            .version = version_,
                            .material = material.get(),
                            .delivery = &objects_,
                            .pod = pod_name_,
                            .abandoned = delivery_ended_ ? undelivered() : 0});
}

std::string webhook_pipeline::answer_probe(std::string_view nonce) {
  auto out = heartbeat_->probed(nonce);
  out.undelivered = undelivered();
  out.oldest = std::chrono::ceil<std::chrono::milliseconds>(dispatcher_.statistics().oldest);
  return render_probe_report(out);
}

void webhook_pipeline::note_raised(const std::string& manager, dispatch::resync_cause cause) {
  if (!is_loss(cause)) return;
  losses_.at(loss_index(cause))->Increment();
  environment_.log.limited(loss_log_, core::log_level::error,
                           "changes dropped, their operator is told to look at everything",
                           {{"manager", manager}, {"reason", to_string(cause)}});
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
  core::task_group reporting(executor, fail);
  delivery.spawn(dispatcher_.run());
  delivery.spawn(observation_.run());
  intake.spawn(intake_.run());
  if (heartbeat_) reporting.spawn(heartbeat_->run());

  const auto aborted = co_await stop_.wait();
  bool cancelled = bool(aborted);
  if (!cancelled && !failure) {
    const bool outlasted = co_await outlast_callers();
    cancelled = !outlasted;
  }

  // It uses the connections of dispatch, which closes them at its end.
  reporting.cancel();
  co_await reporting.join();
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
  co_await core::join_by(environment_.clock, intake, end - drain_timeout_ / 2);
  events_.close();
  co_await core::join_by(environment_.clock, delivery, end);
  delivery_ended_ = true;
  if (heartbeat_ && !cancelled) {
    core::task_group last(executor, fail);
    last.spawn(report_end());
    co_await core::join_by(environment_.clock, last, environment_.clock.now() + last_report);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rw::webhook
