#include "reactors/bootstrapper/progress.hpp"

namespace rw::bootstrapper {

progress::progress(core::metrics& registry)
    : managed_(core::make_gauge(registry, "rw_bootstrapper_managed_runtimes",
                                "Number of runtimes in mode direct")),
      current_(core::make_gauge(registry, "rw_bootstrapper_current_runtimes",
                                "Number of runtimes in mode direct with both units in place")),
      since_(
          core::make_gauge(registry, "rw_bootstrapper_outdated_since_seconds",
                           "Unix time since when the longest outdated runtime is so; 0: none is")),
      differing_(
          core::make_gauge(registry, "rw_bootstrapper_differing_runtimes",
                           "Number of runtimes in mode shadow where something would be written")) {}

void progress::expect(const k8s::object_key& key, time_point now) {
  if (!entries_.contains(key)) outdated(key, now);
}

void progress::outdated(const k8s::object_key& key, time_point now) {
  auto& since = entries_[key];
  if (!since) {
    since = now;
    waiting_.insert(now);
  }
  publish();
}

void progress::current(const k8s::object_key& key) {
  auto& since = entries_[key];
  if (since) waiting_.erase(waiting_.find(*since));
  since.reset();
  publish();
}

void progress::leave(const k8s::object_key& key) {
  if (!entries_.contains(key)) return;
  current(key);
  entries_.erase(key);
  publish();
}

void progress::differs(const k8s::object_key& key, bool does) {
  if (does) {
    differing_keys_.insert(key);
  } else {
    differing_keys_.erase(key);
  }
  publish();
}

std::optional<progress::time_point> progress::outdated_since() const {
  if (waiting_.empty()) return std::nullopt;
  return *waiting_.begin();
}

void progress::publish() {
  managed_.Set(static_cast<double>(managed()));
  current_.Set(static_cast<double>(currents()));
  differing_.Set(static_cast<double>(differing_keys_.size()));
  const auto since = outdated_since();
  since_.Set(since ? std::chrono::duration<double>(since->time_since_epoch()).count() : 0);
}

}  // namespace rw::bootstrapper
