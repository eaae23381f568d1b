#include "rw/reactors/shared/gap_detector.hpp"

#include "rw/core/hash.hpp"

#include <algorithm>

namespace rw {
namespace {

constexpr core::duration longest_life = std::chrono::hours(24 * 365 * 10);
constexpr std::size_t most_counts = 31;
constexpr std::size_t most_named = 256;  // bytes of names in a message

constexpr std::string_view lost = "the watcher has lost events";
constexpr std::string_view partial = "the watcher restarted, and does not observe all resources";
constexpr std::string_view incomplete = "the lists that a gap was told before are complete";
constexpr std::string_view forgetful =
    "the watcher restarted without a journal of what it had delivered";

/// Never 0.
std::uint64_t hash_of(std::string_view name) {
  return core::string_hash().add(name).value() | 1;
}

}  // namespace

bool missed_events::concerns(std::string_view manager) const noexcept {
  return std::ranges::any_of(
      managers, [&](const std::string& each) { return each.empty() || each == manager; });
}

std::string missed_events::message() const {
  std::string names;
  std::size_t named = 0;
  for (const auto& each : managers) {
    if (named > 0 && names.size() + each.size() > most_named) break;
    names += (named++ == 0 ? "" : ", ") + each;
  }
  if (named < managers.size()) names += " and " + std::to_string(managers.size() - named) + " more";
  return std::string(reason) + (concerns("") ? " (all operators)" : " (operators: " + names + ")");
}

missed_events gap_detector::observe(const heartbeat& now, core::time_point arrival) {
  missed_events out;
  auto& latest = use(now, out, arrival);
  count(latest, now, out);
  update(latest, now, arrival);
  for (auto& each : pods_) {
    if (!each.undecided) continue;
    const auto found = judge(each, arrival);
    each.undecided = found == verdict::undecided;
    if (found != verdict::gap) continue;
    out.managers.emplace_back();
    out.reason = each.observes == coverage::full ? forgetful : partial;
  }
  // What is read after a gap may change until the lists are complete, and they may not show it.
  const bool is_full = latest.observes == coverage::full;
  if (latest.series != 0 && is_full && std::exchange(latest.owed, false)) {
    out.managers.emplace_back();
    out.reason = incomplete;
  }
  if (out && !is_full) latest.owed = true;
  if (out.concerns("")) out.managers = {""};
  std::ranges::sort(out.managers);
  return out;
}

/// Returns the heartbeat's pod, which becomes the first.
gap_detector::pod& gap_detector::use(const heartbeat& now, missed_events& missed,
                                     core::time_point arrival) {
  const auto boot = hash_of(now.boot_id);
  const auto series = now.gaps ? hash_of(now.gaps->series) : 0;
  auto found = std::ranges::find(pods_, boot, &pod::boot);
  const bool is_known = found != pods_.end();
  // A process that continues the journal of another one.
  if (!is_known && series != 0) found = std::ranges::find(pods_, series, &pod::series);
  if (found == pods_.end()) {
    found = std::prev(pods_.end());
    // One that was never live covers nothing, and is judged if it comes back.
    const bool was_live = found->observes != coverage::pending;
    if (found->undecided && was_live) missed = {.managers = {""}, .reason = forgetful};
    *found = {};
  }
  std::rotate(pods_.begin(), found, std::next(found));
  auto& out = pods_.front();
  if (out.series != series) out.gaps.clear();
  out.series = series;
  if (is_known) return out;
  // What was not decided of the journal's former process is not decided by reading it.
  out.remembers = !out.undecided;
  out.undecided = out.undecided || first_;
  out.boot = boot;
  if (!first_) first_ = arrival;
  return out;
}

void gap_detector::count(pod& of, const heartbeat& now, missed_events& missed) {
  const auto add = [&](const std::string& manager) {
    missed.managers.push_back(manager);
    missed.reason = lost;
  };
  if (!now.gaps) {
    if (now.events.lost > of.lost) add({});
    of.lost = std::max(of.lost, now.events.lost);
    return;
  }
  const auto before = std::exchange(of.gaps, {});
  const auto compare = [&](const std::string& manager, std::uint64_t count) {
    const auto name = hash_of(manager);
    const auto known = std::ranges::find(before, name, [](const auto& each) { return each.first; });
    // A decrease, too: the journal has lost its end, and what the difference hides is not known.
    if (count != (known == before.end() ? 0 : known->second)) add(manager);
    of.gaps.emplace_back(name, count);
  };
  std::uint64_t rest = 0;
  for (const auto& each : now.gaps->managers) {
    if (each.manager.empty() || of.gaps.size() >= most_counts) {
      rest += each.count;
    } else {
      compare(each.manager, each.count);
    }
  }
  compare({}, rest);
}

void gap_detector::update(pod& of, const heartbeat& now, core::time_point arrival) {
  const auto any = [&](watch_state state) {
    return std::ranges::find(now.watches, state, &watch_report::state) != now.watches.end();
  };
  // One that ends its watches without having brought anything has been listed.
  const bool any_unlisted = std::ranges::any_of(now.watches, [](const watch_report& each) {
    return each.state == watch_state::catching_up && !each.live_since;
  });
  const bool is_partial =
      now.source == "webhook" || now.more_watches > 0 || any(watch_state::unobserved);
  of.observes = is_partial ? coverage::partial : any_unlisted ? coverage::pending : coverage::full;
  of.remembers = of.remembers && now.ledger == "read";
  const auto local = [&](const auto& claimed) {
    using std::chrono::microseconds, std::chrono::floor;
    if (!claimed || !now.sent) return time();
    // In microseconds a difference of any two times can be represented.
    const auto age = floor<microseconds>(now.sent->time_since_epoch()) -
                     floor<microseconds>(claimed->time_since_epoch());
    return time(arrival - std::clamp(age, microseconds::zero(), floor<microseconds>(longest_life)));
  };
  of.started = local(now.started);
  of.arrived = arrival;
  of.interval = now.interval;
  of.complete = of.started;
  core::string_hash names;
  for (const auto& each : now.watches) {
    names.add(each.manager).add(each.group).add(each.resource).add(each.field);
    // Reviews of an unobserved resource are accepted from the start.
    const auto since = each.state == watch_state::unobserved ? of.started : local(each.live_since);
    of.complete = of.complete && since ? std::max(of.complete, since) : std::nullopt;
  }
  of.watches = names.value();
}

gap_detector::verdict gap_detector::judge(const pod& started, core::time_point now) const {
  const bool is_full = started.observes == coverage::full;
  if (started.observes == coverage::pending) return verdict::undecided;
  if (started.series == 0) return is_full ? verdict::no_gap : verdict::gap;
  if (is_full && started.remembers) return verdict::no_gap;
  if (started.started && first_ && *started.started <= *first_) return verdict::no_gap;
  if (!started.started || !started.complete) return verdict::gap;
  bool may_come = false;
  for (const auto& each : pods_) {
    if (each.boot == 0 || each.boot == started.boot) continue;
    const auto patience = 2 * each.interval;
    const bool was_heard = each.arrived + patience >= *started.started;
    const bool is_waited_for = now <= *started.complete + patience;
    if (each.observes == coverage::pending) {
      // It may have been live before the start, and yet say so.
      may_come = may_come || (was_heard && is_waited_for);
    } else if (each.observes == coverage::full) {
      if (each.series == 0 && is_full && was_heard) return verdict::no_gap;
      const bool covers =
          each.watches == started.watches && each.complete && *each.complete < *started.started;
      if (covers && each.arrived >= *started.complete) return verdict::no_gap;
      may_come = may_come || (covers && is_waited_for);
    }
  }
  return may_come ? verdict::undecided : verdict::gap;
}

}  // namespace rw
