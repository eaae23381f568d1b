#include "rw/reactors/heartbeat/tracker.hpp"

#include "rw/core/task_group.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"

#include <boost/asio/this_coro.hpp>

#include <string>
#include <utility>

namespace rw::heartbeats {
namespace {

namespace asio = boost::asio;

constexpr std::size_t received_at_once = 256;
/// With 5,000 runtimes it was a seventh of what the manager did at rest, at each tick.
constexpr unsigned ticks_of_expectations = 5;

core::counter& received(core::metrics& metrics, const char* outcome) {
  return core::make_counter(metrics, "rw_heartbeats_received_total",
                            "Number of heartbeats of runtimes, by outcome", {{"outcome", outcome}});
}

core::gauge& in_state(core::metrics& metrics, liveness state) {
  return core::make_gauge(metrics, "rw_runtimes",
                          "Number of runtimes with an installed watcher, by its heartbeats",
                          {{"state", std::string(to_string(state))}});
}

}  // namespace

tracker::tracker(core::channel<received_heartbeat>& from, tracker_options options,
                 tracker_environment environment)
    : heartbeats_(from),
      options_(options),
      environment_(std::move(environment)),
      runtimes_{&in_state(environment_.metrics, liveness::unknown),
                &in_state(environment_.metrics, liveness::live),
                &in_state(environment_.metrics, liveness::degraded),
                &in_state(environment_.metrics, liveness::silent)},
      accepted_(received(environment_.metrics, "accepted")),
      limited_(received(environment_.metrics, "limited")),
      unknown_(received(environment_.metrics, "unknown")),
      losses_(core::make_counter(environment_.metrics, "rw_runtime_losses_total",
                                 "Number of reports of runtimes that something was dropped which "
                                 "an operator had to be told, one of each runtime in 10 minutes")),
      probe_seconds_(core::make_histogram(environment_.metrics, "rw_probe_seconds",
                                          "Time from a probe to the heartbeat that names it, in "
                                          "seconds",
                                          {}, core::latency_bounds())),
      health_(options.health) {}

asio::awaitable<void> tracker::run() {
  const auto executor = co_await asio::this_coro::executor;
  health_.listen(now());
  core::task_group tasks(executor);
  tasks.spawn(read());
  tasks.spawn(keep_time());
  co_await tasks.join();
}

asio::awaitable<void> tracker::read() {
  std::vector<received_heartbeat> batch;
  for (;;) {
    batch.clear();
    const auto got = co_await heartbeats_.receive_some(batch, received_at_once);
    if (got.has_error()) co_return;
    for (auto& heartbeat : batch) receive(std::move(heartbeat));
    publish();
  }
}

/// Compares what reports with what is expected to.
void tracker::expect(moment at) {
  environment_.kymas.objects().for_each([&](const k8s::object& kyma) {
    auto key = kyma.key();
    if (!environment_.reports(key)) {
      health_.unexpect(key, at);
    } else if (health_.expect(key, at)) {
      environment_.on_expected(key);
    }
  });
  health_.retain(
      [&](const k8s::object_key& key) { return bool(environment_.kymas.objects().get(key)); });
}

bool tracker::is_expected(const k8s::object_key& kyma) const {
  return environment_.kymas.objects().get(kyma) && environment_.reports(kyma);
}

asio::awaitable<void> tracker::keep_time() {
  const auto executor = co_await asio::this_coro::executor;
  const auto timer = environment_.clock.make_timer(executor);
  for (unsigned tick = 0;; ++tick) {
    const auto at = now();
    if (tick % ticks_of_expectations == 0) expect(at);
    health_.poll(at, [&](const fleet_health::change& change) {
      const bool silent = change.now.state == liveness::silent;
      if (silent && !is_expected(change.kyma)) return;  // no more, since it was looked up
      report(change);
      if (silent) environment_.on_silent(change.kyma);
    });
    publish();
    timer->expires_at(at.now + options_.tick);
    const bool due = co_await timer->wait();
    if (!due) co_return;
  }
}

void tracker::receive(received_heartbeat received) {
  const auto kymas = environment_.kymas_of(received.runtime_id);
  if (kymas.empty()) {
    unknown_.Increment();
    environment_.log.limited(unknown_log_, core::log_level::warning,
                             "heartbeat ignored: no Kyma has its runtime id",
                             {{"runtimeId", received.runtime_id}});
  }
  for (const auto& kyma : kymas) {
    const bool accepted = health_.accepts(kyma.key(), received.content, now());
    (accepted ? accepted_ : limited_).Increment();
    if (!accepted) continue;
    const auto outcome = health_.receive(kyma.key(), received.content, now());
    if (outcome.changed) report(*outcome.changed);
    if (outcome.probe) {
      probe_seconds_.Observe(std::chrono::duration<double>(*outcome.probe).count());
    }
    if (outcome.reloaded) environment_.on_reloaded(kyma.key());
    if (!outcome.lost) continue;
    if (outcome.first_loss) losses_.Increment();
    const auto message = outcome.lost.message();
    environment_.log.limited(loss_log_, core::log_level::warning, "watcher dropped events",
                             {{"kyma", kyma.name()}, {"reason", message}});
    environment_.events.warning(k8s::reference_to(kyma.parse()), "EventsMissed"_reason, message);
  }
}

void tracker::probed(const k8s::object_key& kyma, probe_result result) {
  const auto changed = health_.probed(kyma, std::move(result), now());
  if (changed) report(*changed);
}

/// Reports a change as an event of the Kyma. That a runtime is live is reported after another state
/// only.
void tracker::report(const fleet_health::change& change) {
  const bool live = change.now.state == liveness::live;
  if (live && change.before == liveness::unknown) return;
  const auto kyma = environment_.kymas.objects().get(change.kyma);
  if (!kyma) return;
  const auto about = k8s::reference_to(kyma.parse());
  if (live) {
    environment_.events.normal(about, "WatcherLive"_reason,
                               "heartbeats arrive and report no error");
  } else if (change.now.state == liveness::silent) {
    environment_.events.warning(about, "WatcherSilent"_reason, change.now.message);
  } else {
    environment_.events.warning(
        about, "WatcherDegraded"_reason,
        std::string(to_string(change.now.reason)) + ": " + change.now.message);
  }
}

void tracker::publish() {
  for (std::size_t i = 0; i < runtimes_.size(); ++i) {
    runtimes_[i]->Set(static_cast<double>(health_.count(static_cast<liveness>(i))));
  }
}

}  // namespace rw::heartbeats
