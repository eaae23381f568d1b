#include "reactors/dispatch/schedule.hpp"

#include <algorithm>

namespace rw::dispatch {

struct schedule::lane {
  lane(const schedule_options& options, core::random_source& random)
      : events(options.capacity),
        gate(options.threshold, core::backoff(options.retry_base, options.probe_limit,
                                              [&random] { return random(); })) {}

  event_set events;
  core::gate gate;
  std::size_t requests = 0;  ///< under way
  std::size_t delayed = 0;   ///< events that wait for their backoff
  std::size_t batch = 1;     ///< events that the receiver takes at once
  unsigned refusals = 0;     ///< of batches, since one was taken
  core::time_point no_batch_before = core::time_point::min();
};

schedule::schedule(schedule_options options, core::random_source random)
    : upstream(
          1, core::backoff(options.retry_base, options.probe_limit, [this] { return random_(); })),
      options_(options),
      random_(std::move(random)) {}

schedule::~schedule() = default;

schedule::lane& schedule::lane_of(const std::string& manager) {
  auto& slot = lanes_[manager];
  if (!slot) slot = std::make_unique<lane>(options_, random_);
  return *slot;
}

schedule::offered schedule::offer(watch_event& event, core::time_point now) {
  const auto known = lanes_.find(event.manager);
  if (full() && (known == lanes_.end() || !known->second->events.contains(event))) {
    return offered::full;
  }
  if (known == lanes_.end() && lanes_.size() >= options_.managers) {
    std::erase_if(lanes_, [](const auto& l) { return is_idle(*l.second); });
    if (lanes_.size() >= options_.managers) return offered::refused;
  }
  auto& one = lane_of(event.manager);
  const auto result = one.events.insert(std::move(event), now);
  if (result != core::insert_result::added) return offered::merged;
  ++size_;
  return offered::added;
}

std::size_t schedule::open_circuits() const noexcept {
  const auto open =
      std::ranges::count_if(lanes_, [](const auto& l) { return l.second->gate.open(); });
  return static_cast<std::size_t>(open) + (upstream.open() ? 1 : 0);
}

bool schedule::is_idle(const lane& one) noexcept {
  return one.requests == 0 && one.events.empty();
}

bool schedule::ready(const lane& one, core::time_point now) const {
  if (one.events.queued() == 0 || !one.gate.passable(now)) return false;
  if (lanes_.size() > 1 && one.requests >= share_) return false;
  return one.batch == 1 || one.requests < options_.batch_requests;
}

bool schedule::ready(core::time_point now) {
  if (!upstream.passable(now)) return false;
  wake_delayed(now);
  return std::ranges::any_of(lanes_, [&](const auto& l) { return ready(*l.second, now); });
}

bool schedule::next(core::time_point now, shipment& into) {
  wake_delayed(now);
  if (lanes_.empty()) return false;
  auto at = lanes_.upper_bound(last_served_);
  for (std::size_t i = 0; i < lanes_.size(); ++i, ++at) {
    if (at == lanes_.end()) at = lanes_.begin();
    auto& one = *at->second;
    if (!ready(one, now)) continue;
    // A probe is one event, so that little is at stake.
    const bool single = one.gate.open() || upstream.open();
    const auto most = single ? 1 : one.batch;
    into.manager = at->first;
    into.events.clear();
    one.events.take(into.events, most);
    into.as_batch = into.events.size() > 1;
    into.ticket = one.gate.enter();
    ++one.requests;
    last_served_ = at->first;
    return true;
  }
  return false;
}

core::time_point schedule::next_time(core::time_point now) const {
  const auto not_before = upstream.open() ? upstream.next() : core::time_point::min();
  auto next = core::time_point::max();
  const auto consider = [&](core::time_point when) {
    when = std::max(when, not_before);
    if (when > now) next = std::min(next, when);
  };
  for (const auto& [manager, one] : lanes_) {
    if (one->events.queued() > 0) consider(one->gate.next());
  }
  const auto delay = delays_.upper_bound(not_before > now ? core::time_point::min() : now);
  if (delay != delays_.end()) consider(delay->first);
  return next;
}

/// Queues the events whose backoff is over.
void schedule::wake_delayed(core::time_point now) {
  while (!delays_.empty() && delays_.begin()->first <= now) {
    const auto [one, event] = delays_.begin()->second;
    delays_.erase(delays_.begin());
    --one->delayed;
    one->events.retry(*event);
  }
}

/// Queues all events of a lane whose receiver is back.
void schedule::release(lane& one) {
  for (auto at = delays_.begin(); at != delays_.end() && one.delayed > 0;) {
    if (at->second.of != &one) {
      ++at;
      continue;
    }
    --one.delayed;
    one.events.retry(*at->second.event);
    at = delays_.erase(at);
  }
}

/// The event needs no more sending, unless it changed while it was in flight.
void schedule::finish(lane& one, const watch_event& event) {
  const auto before = one.events.size();
  one.events.done(event);
  size_ -= before - one.events.size();
}

void schedule::retry_later(lane& one, const event_set::taken& event, std::chrono::seconds at_least,
                           core::time_point now) {
  core::backoff pause(options_.retry_base, options_.retry_limit, [this] { return random_(); });
  pause.skip(event.attempts);
  ++one.delayed;
  delays_.emplace(now + std::max<core::duration>(pause.next(), at_least), delay{&one, event.key});
}

settlement schedule::settle(const shipment& sent, const std::vector<outcome>& outcomes,
                            core::time_point now) {
  auto& one = lane_of(sent.manager);
  --one.requests;
  settlement result;
  std::chrono::seconds pause{0};
  for (std::size_t i = 0; i < sent.events.size(); ++i) {
    const auto& event = sent.events[i];
    switch (outcomes[i].what) {
      case verdict::delivered:
        ++result.delivered;
        finish(one, *event.key);
        break;
      case verdict::rejected:
        ++result.rejected;
        finish(one, *event.key);
        break;
      case verdict::retry:
        if (expired(event, now)) {
          ++result.expired;
          finish(one, *event.key);
          break;
        }
        ++result.retried;
        pause = std::max(pause, outcomes[i].retry_after);
        retry_later(one, event, outcomes[i].retry_after, now);
    }
  }
  if (sent.as_batch && result.delivered > 0) one.refusals = 0;
  if (result.delivered + result.rejected == 0) {
    one.gate.fail(sent.ticket, now, pause);
  } else if (one.gate.succeed()) {
    release(one);
  }
  drop_if_idle(sent.manager);
  return result;
}

settlement schedule::put_back(const shipment& sent, core::time_point now) {
  auto& one = lane_of(sent.manager);
  --one.requests;
  one.gate.abandon(sent.ticket);
  settlement result;
  for (const auto& event : sent.events) {
    if (expired(event, now)) {
      ++result.expired;
      finish(one, *event.key);
      continue;
    }
    ++result.retried;
    one.events.retry(*event.key, false);
  }
  drop_if_idle(sent.manager);
  return result;
}

settlement schedule::expire(core::time_point now) {
  settlement result;
  std::vector<event_set::taken> head;
  for (const auto& [manager, one] : lanes_) {
    for (auto left = one->events.queued(); left > 0; --left) {
      const auto oldest = one->events.head_accepted();
      if (!oldest || now - *oldest <= options_.max_age) break;
      head.clear();
      one->events.take(head, 1);
      if (expired(head.front(), now)) {
        ++result.expired;
        finish(*one, *head.front().key);
      } else {
        one->events.retry(*head.front().key, false);
      }
    }
  }
  return result;
}

void schedule::split(const shipment& sent, core::time_point now) {
  auto& one = lane_of(sent.manager);
  --one.requests;
  one.gate.abandon(sent.ticket);
  const auto pause = options_.batch_pause * (std::int64_t{1} << std::min(one.refusals, 20U));
  ++one.refusals;
  one.batch = 1;
  one.no_batch_before = now + std::min<core::duration>(pause, options_.batch_pause_limit);
  for (const auto& event : sent.events) one.events.retry(*event.key, false);
}

void schedule::set_batch(const std::string& manager, std::size_t events, core::time_point now) {
  auto& one = lane_of(manager);
  one.batch = now < one.no_batch_before ? 1 : std::max<std::size_t>(events, 1);
}

/// Lanes of managers that nobody mentions any more are not kept for ever.
void schedule::drop_if_idle(const std::string& manager) {
  if (lanes_.size() <= options_.managers / 4) return;
  const auto at = lanes_.find(manager);
  if (is_idle(*at->second)) lanes_.erase(at);
}

}  // namespace rw::dispatch
