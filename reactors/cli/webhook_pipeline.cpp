#include "rw/reactors/cli/webhook_pipeline.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/task_group.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/join_by.hpp"
#include "rw/reactors/cli/watcher_report.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <exception>
#include <fstream>
#include <span>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

constexpr auto longest_save = std::chrono::seconds(2);  // of the journal, at the end
constexpr auto last_report = std::chrono::seconds(1);   // of the last heartbeat

dispatch::dispatch_options dispatch_options(const webhook_settings& s) {
  dispatch::dispatch_options options;
  options.upstream.name = "kcp";
  options.upstream.host = s.kcp.host;
  options.upstream.port = s.kcp.port;
  options.schedule.capacity = s.set_capacity;
  options.schedule.max_age = s.event_max_age;
  options.requests = s.requests_at_once;
  return options;
}

/// Names the counts of gaps of this process.
std::string make_series() {
  auto random = core::make_random_source();
  return std::to_string(random()) + std::to_string(random());
}

/// Names one start of the node (random(4)); empty: unknown.
std::string read_boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(in, id);
  return id;
}

bool observes(const webhook_settings& s) {
  return s.source != "webhook" || s.settle > std::chrono::milliseconds(0);
}

observation::observation_options observation_options(const webhook_settings& s) {
  observation::observation_options options;
  options.watches = s.source != "webhook";
  options.observer.settle = s.settle;
  options.observer.confirm_wait = s.confirm_wait;
  options.observer.settling = s.channel_capacity;
  options.secrets = s.observe_secrets;
  options.journal = s.ledger_file;
  return options;
}

heartbeats::sender_options heartbeat_options(const webhook_settings& s) {
  heartbeats::sender_options options;
  options.interval = s.heartbeat_interval;
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
      credentials_(own),
      source_(settings.source),
      pod_name_(settings.pod_name),
      server_tls_(need(tls::make_server_transport(own), "TLS_CERT")),
      client_tls_(need(tls::make_client_transport(own, client_tls(settings)), "CA_CERT")),
      gap_count_(core::make_counter(
          environment_.metrics, "rw_event_gaps_total",
          "Number of gaps: changes given up of which an operator was sent no event")),
      events_(settings.channel_capacity),
      gaps_(make_series(),
            [this](const std::string& manager, const gap_counts& now) {
              if (observation_) observation_->record(manager, now);
            }),
      objects_(settings.observe_objects,
               {.on_record = [this](const auto& of, std::string_view key, dispatch::state_hash told,
                                    auto now) { observation_->record(of, key, told, now); },
                .on_gap =
                    [this](const std::string& manager) {
                      environment_.log.limited(gap_log_, core::log_level::error,
                                               "changes of watched objects dropped",
                                               {{"manager", manager}});
                      raise_gap(manager);
                    }}),
      dispatcher_(make_dispatcher(executor, settings)),
      observation_(observes(settings)
                       ? std::make_unique<observation::observation>(
                             executor, observation_options(settings), events_,
                             observation::observation_environment{
                                 environment_.clock, environment_.log, environment_.metrics,
                                 core::make_random_source(), dispatcher_, objects_,
                                 environment_.api, environment_.managers, &gaps_, read_boot_id()})
                       : nullptr),
      webhook_(webhook_options(settings, std::move(on_event)), events_, environment_.clock,
               environment_.log, environment_.metrics),
      heartbeat_(settings.heartbeat_interval > std::chrono::milliseconds(0)
                     ? std::make_unique<heartbeats::sender>(
                           executor, heartbeat_options(settings),
                           heartbeats::sender_environment{
                               environment_.clock, environment_.log, environment_.metrics,
                               core::make_random_source(), dispatcher_.upstream(),
                               [this] { return report(); }, [this] { return heartbeat_managers(); },
                               [this](const std::string& manager, std::uint64_t count) {
                                 gaps_.told(manager, count);
                               },
                               [this] {
                                 if (observation_) observation_->reported();
                               }})
                     : nullptr),
      intake_(executor,
              {"webhook",
               listening_address({settings.bind_address, settings.webhook_port}, "BIND_ADDRESS"),
               {}},
              webhook_,
              {*server_tls_, environment_.watchdog, environment_.log, environment_.metrics}),
      stop_(executor) {}

dispatch::dispatcher webhook_pipeline::make_dispatcher(asio::any_io_executor executor,
                                                       const webhook_settings& settings) {
  dispatch::dispatch_environment in{environment_.clock,   environment_.watchdog,
                                    *client_tls_,         environment_.log,
                                    environment_.metrics, core::make_random_source()};
  in.on_loss = [this](const watch_event& event) { raise_gap(event.manager); };
  if (!observes(settings)) {
    return {std::move(executor), dispatch_options(settings), events_, std::move(in)};
  }
  in.objects = &objects_;
  return {std::move(executor), dispatch_options(settings), std::move(in)};
}

admission::webhook_options webhook_pipeline::webhook_options(const webhook_settings& settings,
                                                             admission::event_observer on_event) {
  admission::webhook_options out{.body_limit = settings.max_review_bytes,
                                 .wait = settings.admission_wait,
                                 .on_event = std::move(on_event),
                                 .managers = environment_.managers};
  out.on_loss = [this](const watch_event& event) {
    const bool replaced = observation_ && observation_->missed(event);
    if (!replaced) raise_gap(event.manager);
    return replaced;
  };
  if (settings.heartbeat_interval > std::chrono::milliseconds(0)) {
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

std::size_t webhook_pipeline::undelivered() const {
  const auto known = events_.size() + dispatcher_.pending();
  return observation_ ? known + observation_->waiting() + objects_.waiting() : known;
}

heartbeats::watcher_report webhook_pipeline::report() const {
  const auto material = credentials_->current();
  return watcher_report_of({.webhook = webhook_,
                            .dispatcher = dispatcher_,
                            .observation = observation_.get(),
                            .managers = environment_.managers,
                            .source = source_,
                            .material = material.get(),
                            .gaps = &gaps_,
                            .pod = pod_name_});
}

std::string webhook_pipeline::answer_probe(std::string_view nonce) {
  auto out = heartbeat_->probed(nonce);
  out.undelivered = undelivered();
  out.oldest = std::chrono::ceil<std::chrono::milliseconds>(dispatcher_.statistics().oldest);
  return render_probe_report(out);
}

std::vector<std::string> webhook_pipeline::heartbeat_managers() const {
  auto names = dispatcher_.heartbeat_managers();
  const auto known = environment_.managers ? environment_.managers->current() : nullptr;
  std::erase_if(names, [&](const std::string& name) {
    return name == heartbeat_component || (known && known->find(name) == nullptr);
  });
  return names;
}

void webhook_pipeline::raise_gap(const std::string& manager) {
  gap_count_.Increment();
  gaps_.raise(manager);
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
  if (observation_) delivery.spawn(observation_->run());
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
  if (heartbeat_ && !cancelled) {
    core::task_group last(executor, fail);
    last.spawn(heartbeat_->finish());
    co_await join_by(environment_.clock, last, environment_.clock.now() + last_report);
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
  if (observation_) {
    core::task_group saving(executor, fail);
    saving.spawn(observation_->save());
    co_await join_by(environment_.clock, saving, environment_.clock.now() + longest_save);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rw::cli
