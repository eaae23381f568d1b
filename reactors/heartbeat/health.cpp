#include "reactors/heartbeat/health.hpp"

#include "k8s/objects/types.hpp"

#include <algorithm>
#include <utility>

namespace rw::heartbeats {
namespace {

std::string seconds(core::duration of) {
  return std::to_string(std::chrono::floor<std::chrono::seconds>(of).count()) + " s";
}

std::string name_of(const watch_report& watch) {
  return watch.resource + (watch.group.empty() ? "" : "." + watch.group);
}

}  // namespace

std::string_view to_string(liveness of) noexcept {
  constexpr std::array<std::string_view, liveness_count> names{"unknown", "live", "degraded",
                                                               "silent"};
  return names.at(static_cast<std::size_t>(of));
}

fleet_health::record& fleet_health::use(const k8s::object_key& kyma, moment at) {
  const auto [found, added] = records_.try_emplace(kyma);
  if (added) {
    found->second.heard = at.now;
    found->second.shown.since = at.wall;
    ++counts_[static_cast<std::size_t>(liveness::unknown)];
  }
  return found->second;
}

void fleet_health::move(record& one, liveness to, moment at) {
  if (one.shown.state == to) return;
  --counts_[static_cast<std::size_t>(one.shown.state)];
  ++counts_[static_cast<std::size_t>(to)];
  one.shown.state = to;
  one.shown.since = at.wall;
}

/// A watcher with a longer interval than the default announces it.
core::duration fleet_health::timeout_of(const record& one) const {
  return std::max<core::duration>(options_.timeout, one.shown.last.interval * 5 / 2);
}

/// Sets reason and message, empty without trouble. What comes first needs a person first.
void fleet_health::assess(record& one, const heartbeat& content, moment at) const {
  const auto catches_up = std::ranges::find(content.watches, watch_state::catching_up,
                                            [](const auto& each) { return each.state; });
  if (catches_up == content.watches.end()) {
    one.catching_up.reset();
  } else if (!one.catching_up) {
    one.catching_up = at.now;
  }
  auto& shown = one.shown;
  shown.reason.clear();
  shown.message.clear();
  const auto& expiry = content.certificate_not_after;
  if (expiry && *expiry < at.wall + options_.certificate) {
    shown.reason = "CertificateExpires";
    shown.message = "the watcher's certificate expires at " + k8s::format_time(*expiry) +
                    ": see why it is not renewed";
  } else if (content.oldest_undelivered > options_.undelivered) {
    shown.reason = "EventsWait";
    shown.message = "an event has waited for " + seconds(content.oldest_undelivered) +
                    ": see whether its manager accepts events";
  } else if (one.catching_up && at.now - *one.catching_up > options_.catch_up) {
    shown.reason = "WatchNotLive";
    shown.message = name_of(*catches_up) + " is not watched" +
                    (catches_up->reason.empty() ? "" : ": " + catches_up->reason);
  } else if (content.ledger == "failed") {
    shown.reason = "LedgerNotWritten";
    shown.message = "the watcher cannot write its ledger: see its log";
  }
}

fleet_health::receipt fleet_health::receive(const k8s::object_key& kyma, heartbeat content,
                                            moment at) {
  auto& one = use(kyma, at);
  auto& shown = one.shown;
  const bool first = !shown.heard;
  receipt out;
  out.gap = gap_between(first ? nullptr : &shown.last, content);
  if (!out.gap.empty()) {
    ++shown.gaps;
    shown.gap = out.gap;
  }
  const auto before = shown.state;
  const auto reason = shown.reason;
  assess(one, content, at);
  one.heard = at.now;
  shown.heard = at.wall;
  content.watches = {};
  shown.last = std::move(content);
  move(one, shown.reason.empty() ? liveness::live : liveness::degraded, at);
  const bool news = shown.state != before || shown.reason != reason;
  if (news) out.changed.emplace(change{records_.find(kyma)->first, shown, before});
  return out;
}

void fleet_health::expect(const k8s::object_key& kyma, moment at) {
  use(kyma, at);
}

void fleet_health::poll(moment at, const visitor& report) {
  for (auto& [kyma, one] : records_) {
    if (one.shown.state == liveness::silent || at.now - one.heard < timeout_of(one)) continue;
    const auto before = one.shown.state;
    const auto& expiry = one.shown.last.certificate_not_after;
    move(one, liveness::silent, at);
    one.shown.reason = "NoHeartbeat";
    one.shown.message = "no heartbeat for " + seconds(at.now - one.heard);
    one.shown.message += expiry && *expiry < at.wall
                             ? ": the watcher's certificate expired at " + k8s::format_time(*expiry)
                             : ": see whether the watcher's pod runs and reaches the gateway";
    report(change{kyma, one.shown, before});
  }
}

void fleet_health::retain(const std::function<bool(const k8s::object_key&)>& keep) {
  std::erase_if(records_, [&](const auto& each) {
    if (keep(each.first)) return false;
    --counts_[static_cast<std::size_t>(each.second.shown.state)];
    return true;
  });
}

const runtime_health* fleet_health::find(const k8s::object_key& kyma) const {
  const auto found = records_.find(kyma);
  return found == records_.end() ? nullptr : &found->second.shown;
}

}  // namespace rw::heartbeats
