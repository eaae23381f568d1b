#include "rw/k8s/cache/informer_metrics.hpp"

#include <string>
#include <utility>

namespace rw::k8s {
namespace {

template <std::size_t N>
void make_all(std::array<core::counter*, N>& into, core::metrics& registry, const std::string& name,
              const std::string& help, const core::labels& with, const std::string& label,
              const std::array<const char*, N>& values) {
  for (std::size_t i = 0; i < N; ++i) {
    auto labels = with;
    labels[label] = values[i];
    into[i] = &core::make_counter(registry, name, help, labels);
  }
}

}  // namespace

informer_metrics::informer_metrics(core::metrics& registry, const resource_type& type) {
  const core::labels with = {{"resource", to_string(type)}};
  make_all(events_, registry, "rw_informer_events_total", "Events of watches.", with, "type",
           {"added", "modified", "deleted", "bookmark", "error"});
  make_all(watches_, registry, "rw_informer_watches_total", "Watches, by how they ended.", with,
           "end", {"ended", "empty", "expired", "refused", "broken", "silent", "bad_event"});
  make_all(failures_, registry, "rw_informer_failures_total",
           "What went wrong, and is tried again.", with, "phase",
           {"probe", "list", "watch", "decode"});
  lists_ = &core::make_counter(registry, "rw_informer_lists_total",
                               "Lists begun, in pages or as streams.", with);
  objects_ = &core::make_gauge(registry, "rw_informer_objects", "Objects in stores.", with);
  pending_ = &core::make_gauge(registry, "rw_informer_pending_deltas",
                               "Changes that slow subscribers have no room for.", with);
}

informer_metrics::~informer_metrics() {
  report(0, 0);
}

void informer_metrics::move(core::gauge& gauge, std::size_t& from, std::size_t to) {
  if (from == to) return;
  gauge.Increment(static_cast<double>(to) - static_cast<double>(from));
  from = to;
}

void informer_metrics::report(std::size_t objects, std::size_t pending) {
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const auto count = std::exchange(unreported_[i], 0);
    if (count > 0) events_[i]->Increment(count);
  }
  move(*objects_, reported_objects_, objects);
  move(*pending_, reported_pending_, pending);
}

}  // namespace rw::k8s
