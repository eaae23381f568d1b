#include "rw/reactors/events/schedule_destination.hpp"

#include <algorithm>
#include <utility>

namespace rw::dispatch {

/// 5xx, 408, 425 and 429 are a server's that knows nothing of it at present.
resync_account::outcome outcome_of(const batch_response& response) noexcept {
  const auto status = response.status;
  if (status / 100 == 2 && response.resync_taken) return resync_account::outcome::taken;
  const bool failed = status / 100 == 5 || status == 408 || status == 425 || status == 429;
  return failed ? resync_account::outcome::failed : resync_account::outcome::unclear;
}

bool schedule::owes(const destination& destination) {
  return destination.changes && !delivery::is_settled(*destination.changes);
}

/// Null: none is due, or can be sent.
std::unique_ptr<schedule::batch> schedule::load_resync(destination& destination,
                                                       core::time_point now) {
  if (!owes(destination) || under_way_ >= concurrency_) return nullptr;
  // At the end there is but one attempt.
  const bool passes = upstream_.passable(now);
  if (!passes && !closed_) return nullptr;
  if (!objects_.resync_due(*destination.changes, closed_, now)) return nullptr;
  if (spare_.empty()) spare_.push_back(std::make_unique<batch>());
  auto into = std::move(spare_.back());
  spare_.pop_back();
  into->events.clear();
  into->resync = objects_.begin_resync(*destination.changes, closed_);
  into->as_batch = true;
  into->upstream_attempt = passes ? upstream_.enter() : upstream_.stray();
  destination.resync_sent = now;
  destination.has_resync = true;
  begin(destination, *into);
  return into;
}

void schedule::on_resync(destination& destination, resync_account::outcome ending,
                         core::time_point now) {
  auto& changes = *destination.changes;
  destination.has_resync = false;
  destination.resync_fails_since = ending == resync_account::outcome::failed
                                       ? std::min(destination.resync_fails_since, now)
                                       : core::time_point::max();
  if (ending == resync_account::outcome::taken) {
    tell_waiting(destination, now);
    // Its receiver is there.
    destination.fails_since = core::time_point::max();
    if (destination.breaker.succeed()) destination.events.wake(core::time_point::max());
  }
  auto probe = objects_.end_resync(changes, ending, random_, now);
  // Any event that waits will do as well, unless it is refused.
  constexpr std::size_t enough = 4;
  if (probe && !closed_ && destination.events.size() < enough) offer(std::move(*probe), now);
}

/// A resync has told what waited when it was sent and could be read by then.
void schedule::tell_waiting(destination& destination, core::time_point now) {
  const auto readable = destination.resync_sent - objects_.settle();
  destination.events.expire(readable, [&](const watch_event& event) {
    --size_;
    destination.note_ended(event);
    objects_.told_by_resync(*destination.changes, event, now);
  });
}

/// A resync has no answer. Its failure counts for the way to KCP, if anything.
bool schedule::fail_resync(destination& destination, const batch& sent, delivery_failure error,
                           core::time_point now) {
  bool counted = true;
  if (error == delivery_failure::connect) {
    counted = fail_upstream(sent.upstream_attempt, now);
    unreachable_ = unreachable_ || counted;
  } else {
    upstream_.abandon(sent.upstream_attempt);
  }
  if (error == delivery_failure::unprocessed && destination.unprocessed <= 2) {
    destination.has_resync = false;
    delivery::resync_unprocessed(*destination.changes);
  } else {
    on_resync(destination, resync_account::outcome::failed, now);
  }
  return counted;
}

}  // namespace rw::dispatch
