#include "reactors/config_sync/progress.hpp"

#include <string>

namespace rw::config_sync {
namespace {

constexpr std::array all_standings{standing::current, standing::pending, standing::behind,
                                   standing::suspended, standing::apart};

bool waits(standing how) {
  return how == standing::pending || how == standing::behind;
}

}  // namespace

progress::progress(core::metrics& metrics)
    : oldest_(core::make_gauge(metrics, "rw_config_sync_waiting_since_timestamp_seconds",
                               "Since when the Runtime that has waited longest for the newest "
                               "configuration does so, in Unix time; 0: none waits")) {
  for (const auto how : all_standings) {
    gauges_.at(index(how)) =
        &core::make_gauge(metrics, "rw_config_sync_runtimes",
                          "Runtimes, by how they stand to the newest configuration",
                          {{"standing", std::string(to_string(how))}});
  }
}

void progress::set(const k8s::object_key& runtime, standing how, time_point since) {
  const auto at = entries_.find(runtime);
  entry next{how, std::nullopt};
  if (at != entries_.end()) {
    if (at->second.how == how) return;
    if (waits(how)) next.since = at->second.since.value_or(since);
    leave(at->second);
    at->second = next;
  }
  if (waits(how) && !next.since) next.since = since;
  if (next.since) waiting_.insert(*next.since);
  ++counts_.at(index(how));
  entries_[runtime] = next;
  publish();
}

void progress::forget(const k8s::object_key& runtime) {
  const auto at = entries_.find(runtime);
  if (at == entries_.end()) return;
  leave(at->second);
  entries_.erase(at);
  publish();
}

void progress::leave(const entry& one) {
  --counts_.at(index(one.how));
  if (one.since) waiting_.erase(waiting_.find(*one.since));
}

void progress::publish() {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    gauges_.at(i)->Set(static_cast<double>(counts_.at(i)));
  }
  const std::chrono::duration<double> since =
      waiting_.empty() ? std::chrono::duration<double>(0) : waiting_.begin()->time_since_epoch();
  oldest_.Set(since.count());
}

}  // namespace rw::config_sync
