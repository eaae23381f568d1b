#include "rw/reactors/events/dispatch_metrics.hpp"

#include <algorithm>
#include <chrono>

namespace rw::dispatch {
namespace {

constexpr std::size_t labelled_managers = 32;

/// In the order of `loss`.
constexpr std::array lost_counts{&dispatch_counts::overflowed, &dispatch_counts::abandoned};

core::counter& events_total(core::metrics& registry, const char* result) {
  return core::make_counter(registry, "rw_dispatch_events_total", "Events, by what became of them",
                            {{"outcome", result}});
}

core::counter& resyncs_total(core::metrics& registry, const char* result) {
  return core::make_counter(registry, "rw_resyncs_total", "Resyncs sent, by their answer",
                            {{"outcome", result}});
}

core::gauge& events_in(core::metrics& registry, const char* state) {
  return core::make_gauge(registry, "rw_dispatch_undelivered_events",
                          "Events that are not delivered yet", {{"state", state}});
}

core::counter& failed_total(core::metrics& registry, const char* reason) {
  return core::make_counter(registry, "watcher_failed_kcp_total", "Requests to KCP that failed",
                            {{"error_reason", reason}});
}

}  // namespace

dispatch_metrics::dispatch_metrics(core::metrics& r, core::logger& log)
    : delivered(events_total(r, "delivered")),
      coalesced(events_total(r, "coalesced")),
      retried(events_total(r, "retried")),
      rejected(events_total(r, "rejected")),
      requests_(core::make_counter(r, "watcher_kcp_requests_total", "Requests sent to KCP")),
      batch_events_(r, "rw_dispatch_batch_events", "Events in one request", {},
                    {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}),
      registry_(r),
      log_(log),
      lost_{&events_total(r, "overflow"), &events_total(r, "abandoned")},
      resyncs_{&resyncs_total(r, "taken"), &resyncs_total(r, "failed"),
               &resyncs_total(r, "unclear")},
      delivery_seconds_(r, "rw_dispatch_delivery_seconds",
                        "Seconds from taking an event off the channel to its delivery", {},
                        core::latency_bounds()),
      known_(events_in(r, "known")),
      delayed_(events_in(r, "delayed")),
      circuits_(core::make_gauge(r, "rw_dispatch_open_circuits",
                                 "Circuit breakers that let only probes through")),
      oldest_(core::make_gauge(r, "rw_dispatch_oldest_event_seconds",
                               "Time since the latest change of the oldest undelivered event")),
      owed_(core::make_gauge(r, "rw_resyncs_owed", "Number of operators that are owed a resync")),
      failed_(failed_total(r, "failed-request")) {
  // Reasons that alerts may name and that cannot come up here: settings are checked at the start,
  // and setting a request up does not fail.
  for (const char* reason : {"missing-address-or-contract", "request-setup"}) {
    failed_total(r, reason);
  }
}

void dispatch_metrics::lost(loss loss, const watch_event& event) {
  static constexpr std::array<std::string_view, 2> reasons = {"no capacity left",
                                                              "the process ends"};
  const auto i = static_cast<std::size_t>(loss);
  lost_[i]->Increment();
  ++(counts_.*lost_counts[i]);
  log_.limited(loss_logs_[i], core::log_level::error, "event dropped",
               {{"reason", reasons[i]},
                {"manager", event.manager},
                {"kind", event.gvk.kind},
                {"namespace", event.watched.ns},
                {"name", event.watched.name}});
}

void dispatch_metrics::delivered_after(core::duration since_acceptance) {
  ++counts_.delivered;
  counts_.delivery_time += since_acceptance;
  delivery_seconds_.add(core::seconds(since_acceptance));
}

void dispatch_metrics::on_resync(resync_account::outcome ending) {
  resyncs_.at(static_cast<std::size_t>(ending))->Increment();
  counts_.resyncs += ending == resync_account::outcome::taken ? 1 : 0;
}

void dispatch_metrics::on_response(const std::string& manager, unsigned status,
                                   const batch_result& result) {
  delivered.Increment(static_cast<double>(result.delivered));
  if (result.retried == 0 && result.rejected == 0) return;
  retried.Increment(static_cast<double>(result.retried));
  rejected.Increment(static_cast<double>(result.rejected));
  counts_.rejected += result.rejected;
  failed_.Increment();
  series_of(manager, status != 404).failures.Increment();
  log_.limited(failure_log_, core::log_level::warning, "KCP did not accept events",
               {{"manager", manager},
                {"status", std::uint64_t{status}},
                {"to_be_repeated", result.retried},
                {"rejected", result.rejected}});
}

void dispatch_metrics::failed(const std::string& manager, const std::string& error) {
  failed_.Increment();
  if (manager.empty()) return;
  series_of(manager, false).failures.Increment();
  log_.limited(failure_log_, core::log_level::warning, "request to KCP failed; it will be repeated",
               {{"manager", manager}, {"error", error}});
}

dispatch_metrics::manager_series& dispatch_metrics::series_of(const std::string& manager,
                                                              bool known_at_kcp) {
  if (const auto at = by_manager_.find(manager); at != by_manager_.end()) return at->second;
  const bool own = known_at_kcp && by_manager_.size() < labelled_managers;
  const std::string label = own ? manager : "other";
  if (const auto at = by_manager_.find(label); at != by_manager_.end()) return at->second;
  const core::labels with = {{"manager", label}};
  manager_series series = {
      core::make_gauge(registry_, "rw_dispatch_manager_events",
                       "Events that are not delivered yet, by manager", with),
      core::make_gauge(registry_, "rw_dispatch_manager_oldest_event_seconds",
                       "Time since the latest change of the oldest undelivered event, or since a "
                       "resync fails, by manager",
                       with),
      core::make_counter(registry_, "rw_dispatch_manager_failures_total",
                         "Failed requests, by manager", with)};
  return by_manager_.emplace(label, series).first->second;
}

void dispatch_metrics::publish(const schedule& from, const delivery& objects,
                               core::time_point now) {
  double delayed = 0;
  double circuits = from.upstream_open() ? 1 : 0;
  double longest = 0;
  for (auto& [manager, series] : by_manager_) series.pending = series.age = 0;
  from.report([&](const schedule::figures& destination) {
    auto& series = series_of(destination.manager, destination.real);
    const bool waits = destination.oldest != core::time_point::max();
    series.pending += static_cast<double>(destination.events);
    series.age = std::max(series.age, waits ? core::seconds(now - destination.oldest) : 0);
    longest = std::max(longest, series.age);
    delayed += static_cast<double>(destination.delayed);
    circuits += destination.open ? 1 : 0;
  });
  for (auto& [manager, series] : by_manager_) {
    series.events.Set(series.pending);
    series.oldest.Set(series.age);
  }
  known_.Set(static_cast<double>(from.size()));
  delayed_.Set(delayed);
  circuits_.Set(circuits);
  oldest_.Set(longest);
  owed_.Set(static_cast<double>(objects.owed()));
  batch_events_.publish();
  delivery_seconds_.publish();
}

}  // namespace rw::dispatch
