#include "rw/reactors/events/schedule_destination.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace rw::dispatch {

delivery_verdict verdict_of(unsigned status) noexcept {
  if (status >= 200 && status < 300) return delivery_verdict::delivered;
  switch (status) {
    case 401:
    case 403:
    case 404:
    case 408:
    case 429:
      return delivery_verdict::retry;
    default:
      return status >= 400 && status < 500 ? delivery_verdict::rejected : delivery_verdict::retry;
  }
}

std::chrono::seconds retry_after(std::string_view header) noexcept {
  unsigned seconds = 0;
  const auto end = header.data() + header.size();
  const auto parsed = std::from_chars(header.data(), end, seconds);
  if (parsed.ec == std::errc::result_out_of_range) return std::chrono::minutes(5);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return std::min(std::chrono::seconds(seconds), std::chrono::seconds(300));
}

schedule::schedule(schedule_options options, core::random_source random, loss_handler on_loss,
                   delivery& objects)
    : options_(options),
      random_(std::move(random)),
      on_loss_(std::move(on_loss)),
      objects_(objects),
      upstream_(
          1, core::backoff(options.retry_base, options.probe_limit, [this] { return random_(); })) {
}

schedule::~schedule() = default;

/// `observed`: the manager is one of the managers' file, which bounds their number.
schedule::destination* schedule::destination_of(const std::string& manager, bool observed,
                                                core::time_point now) {
  if (const auto known = destinations_.find(manager); known != destinations_.end())
    return known->second.get();
  const bool full = !observed && destinations_.size() >= options_.managers;
  if (full && !make_way(now)) return nullptr;
  const auto at = destinations_.try_emplace(manager).first;
  at->second = std::make_unique<destination>(at->first, ++destinations_made_, options_, random_);
  ring_.push_back(at->second.get());
  if (!observed) ring_.back()->changes = objects_.adopt_unlisted(manager, now);
  return ring_.back();
}

bool schedule::is_idle(const destination& destination) {
  return destination.requests == 0 && destination.events.empty() && destination.waiting() == 0 &&
         !owes(destination);
}

/// Gives up the destination that is missed least: of a manager that nobody knows at KCP, or that
/// has no events, or else the one with the fewest of those that may be invented. False if there is
/// none.
bool schedule::make_way(core::time_point now) {
  const auto merit = [](const destination& destination) {
    return std::pair(!destination.invented() && !destination.events.empty(),
                     destination.events.size());
  };
  destination* victim = nullptr;
  for (auto* candidate : ring_) {
    if (candidate->requests > 0 || candidate->waiting() > 0 || owes(*candidate)) continue;
    if (candidate->known == evidence::real && !candidate->events.empty()) continue;
    if (victim == nullptr || merit(*candidate) < merit(*victim)) victim = candidate;
  }
  if (victim == nullptr) return false;
  while (!victim->events.empty()) shed(*victim, loss::overflow, now);
  erase(*victim);
  return true;
}

/// Sheds one event of the destination that has the least right to what it holds.
void schedule::make_room(destination& newcomer, core::time_point now) {
  destination* victim = &newcomer;
  for (auto* candidate : ring_) {
    if (candidate->events.size() == candidate->events.in_flight()) continue;
    const bool worse = candidate->invented() == victim->invented()
                           ? candidate->events.size() > victim->events.size()
                           : candidate->invented();
    if (worse) victim = candidate;
  }
  shed(*victim, loss::overflow, now);
}

/// Removes the newest event. That of an observed object waits again where it came from: false.
bool schedule::shed(destination& from, loss loss, core::time_point now) {
  bool is_lost = false;
  from.events.shed([&](const watch_event& event) {
    --size_;
    from.note_ended(event);
    is_lost = !from.changes || !objects_.returned(*from.changes, event, now);
    if (is_lost) on_loss_(loss, event);
  });
  return is_lost;
}

std::size_t schedule::abandon(core::time_point now) {
  std::size_t lost = 0;
  for (auto* each : ring_) {
    while (!each->events.empty()) lost += shed(*each, loss::abandoned, now) ? 1 : 0;
  }
  return lost;
}

void schedule::erase(destination& destination) {
  if (destination.changes) objects_.release(*destination.changes);
  std::erase(ring_, &destination);
  destinations_.erase(destinations_.find(destination.manager));
}

bool schedule::empty() const noexcept {
  return size_ == 0 && !objects_.has_live_changes() && !objects_.holds_end();
}

bool schedule::offer(watch_event&& event, core::time_point now) {
  auto* destination = destination_of(event.manager, false, now);
  if (destination == nullptr) {
    on_loss_(loss::overflow, event);
    return false;
  }
  if (destination->events.insert(std::move(event), now) == core::insert_result::merged) return true;
  if (++size_ > options_.capacity) make_room(*destination, now);
  return false;
}

/// What time alone changes. Returns how many requests of failing destinations are under way.
std::size_t schedule::tidy(core::time_point now) {
  std::size_t suspects = 0;
  for (std::size_t i = 0; i < ring_.size();) {
    auto& destination = *ring_[i];
    if (owes(destination)) objects_.advance(*destination.changes, closed_, now);
    if (!owes(destination)) destination.resync_fails_since = core::time_point::max();
    destination.events.wake(now);
    const bool is_probed = destination.breaker.open() && destination.breaker.passable(now);
    if (is_probed && !has_work(destination)) destination.events.wake_first();
    if (destination.breaker.failing()) suspects += destination.requests;
    if (is_idle(destination) && destination.known != evidence::real) {
      erase(destination);
    } else {
      ++i;
    }
  }
  return suspects;
}

/// While connections break, though they can be opened, a destination that does not fail is let
/// through.
bool schedule::shared_breaker_applies(const destination& destination) const {
  return unreachable_ || destination.breaker.failing();
}

bool schedule::has_slot(const destination& destination, std::size_t suspects) const {
  const auto half = std::max<std::size_t>(concurrency_ / 2, 1);
  if (under_way_ >= concurrency_) return false;
  const auto events = destination.requests - (destination.has_resync ? 1 : 0);
  if (destination.breaker.failing()) return events == 0 && suspects < half;
  if (destination.requests == 0) return true;
  if (destination.batch > 1 && destination.requests >= options_.batch_requests) return false;
  return destination.requests < half && under_way_ + concurrency_ / 4 < concurrency_;
}

bool schedule::has_work(const destination& destination) const {
  return destination.events.queued() > 0 ||
         (destination.changes && objects_.has_changes(*destination.changes, closed_));
}

bool schedule::may_send(const destination& destination, std::size_t suspects,
                        core::time_point now) const {
  if (!destination.breaker.passable(now) || !has_work(destination)) return false;
  if (shared_breaker_applies(destination) && !upstream_.passable(now)) return false;
  return has_slot(destination, suspects);
}

/// When, after `now`, time alone changes something for the destination.
core::time_point schedule::next_time(const destination& destination, core::time_point now) const {
  auto next = core::time_point::max();
  if (owes(destination)) {
    next = objects_.next_resync(*destination.changes, now);
    const bool is_due = objects_.resync_due(*destination.changes, closed_, now);
    if (is_due && upstream_.next() > now) next = std::min(next, upstream_.next());
  }
  const bool is_any_due = destination.breaker.open() && destination.events.delayed() > 0;
  const bool waits = !is_any_due && !has_work(destination);
  auto time = waits ? destination.events.next_due() : core::time_point::min();
  time = std::max(time, destination.breaker.next());
  if (shared_breaker_applies(destination)) time = std::max(time, upstream_.next());
  return time > now ? std::min(next, time) : next;
}

schedule::decision schedule::poll(core::time_point now) {
  while (auto changes = objects_.adopt()) {
    auto* const destination = destination_of(delivery::manager_of(*changes), true, now);
    destination->changes = std::move(changes);
  }
  const auto suspects = tidy(now);
  decision result;
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    auto& destination = *ring_[(turn_ + i) % ring_.size()];
    result.send = load_resync(destination, now);
    if (!result.send && may_send(destination, suspects, now)) result.send = load(destination, now);
    if (result.send) {
      turn_ = (turn_ + i + 1) % ring_.size();
      break;
    }
    result.until = std::min(result.until, next_time(destination, now));
  }
  return result;
}

/// Null: all changes that waited are of objects with an event that is sent again already.
std::unique_ptr<schedule::batch> schedule::load(destination& destination, core::time_point now) {
  if (spare_.empty()) spare_.push_back(std::make_unique<batch>());
  auto& events = spare_.back()->events;
  events.clear();
  // A probe is one event, so that little is at stake.
  const bool probe =
      destination.breaker.open() || (upstream_.open() && shared_breaker_applies(destination));
  const std::size_t most = probe ? 1 : destination.batch;
  destination.events.take(events, most);
  for (const auto& each : events) {
    if (destination.changes) objects_.sending(*destination.changes, each.key());
  }
  while (destination.changes && events.size() < most) {
    if (size_ >= options_.capacity && !events.empty()) break;
    auto change = objects_.take(*destination.changes, closed_);
    if (!change) break;
    const auto inserted = destination.events.insert(std::move(change->event), now, change->since);
    size_ += inserted == core::insert_result::added ? 1 : 0;
    destination.events.take(events, 1);
  }
  if (events.empty()) return nullptr;
  auto into = std::move(spare_.back());
  spare_.pop_back();
  into->resync.reset();
  into->as_batch = events.size() > 1;
  into->destination_attempt = destination.breaker.enter();
  into->upstream_attempt =
      shared_breaker_applies(destination) ? upstream_.enter() : upstream_.stray();
  begin(destination, *into);
  return into;
}

void schedule::begin(destination& destination, batch& load) {
  load.manager = &destination.manager;
  load.of = &destination;
  load.number = ++batches_;
  ++destination.requests;
  ++under_way_;
}

bool schedule::connected(std::size_t concurrency) noexcept {
  const auto before = std::exchange(concurrency_, std::max<std::size_t>(concurrency, 1));
  const bool closes = std::exchange(unreachable_, false);
  if (closes) upstream_.succeed();
  if (closes) upstream_fails_since_ = core::time_point::max();
  return closes || concurrency_ != before;
}

batch_result schedule::on_response(std::unique_ptr<batch> sent, const batch_response& response,
                                   core::time_point now) {
  auto& destination = *sent->of;
  upstream_.succeed();
  upstream_fails_since_ = core::time_point::max();
  broken_destination_ = 0;
  destination.unprocessed = 0;
  if (sent->resync) {
    on_resync(destination, outcome_of(response), now);
    end(std::move(sent));
    return {};
  }
  if (response.status != 404) destination.known = evidence::real;
  if (destination.known == evidence::none) destination.known = evidence::not_found;
  if (verdict_of(response.status) == delivery_verdict::delivered) {
    destination.batch =
        now < destination.no_batch_before ? 1 : std::max<std::size_t>(response.batch_offer, 1);
  }
  batch_result result;
  const auto s = response.status;
  if (sent->as_batch && (s == 400 || s == 404 || s == 405 || s == 413)) {
    split(destination, *sent, now);
  } else {
    result = settle(destination, *sent, response, now);
  }
  end(std::move(sent));
  return result;
}

batch_result schedule::settle(destination& destination, const batch& sent,
                              const batch_response& response, core::time_point now) {
  batch_result result;
  bool is_known = true;  // that all which were not delivered are rejected
  for (std::size_t i = 0; i < sent.events.size(); ++i) {
    const auto& event = sent.events[i];
    const auto status = response.status_of(i);
    const auto judged = verdict_of(status);
    if (judged == delivery_verdict::delivered) {
      ++result.delivered;
      finish(destination, event, now);
      continue;
    }
    const bool is_rejected = judged == delivery_verdict::rejected;
    ++(is_rejected ? result.rejected : result.retried);
    is_known = is_known && is_rejected && event.attempts() > 0;
    destination.note_refused(event.key(), status);
    repeat_later(destination, event, is_rejected, response.retry_after, now);
  }
  if (sent.as_batch && result.delivered > 0) destination.refusals = 0;
  if (result.delivered > 0) {
    destination.accepts_others = true;
    destination.fails_since = core::time_point::max();
    if (destination.breaker.succeed()) destination.events.wake(core::time_point::max());
    if (destination.changes) objects_.accepted(*destination.changes, response.offers_resyncs, now);
  } else if (is_known && !destination.breaker.open()) {
    destination.breaker.abandon(sent.destination_attempt);
  } else {
    fail(destination, sent.destination_attempt, response.retry_after, now);
  }
  return result;
}

/// The receiver does not take batches after all: for a while events go to it one by one.
void schedule::split(destination& destination, const batch& sent, core::time_point now) {
  destination.breaker.abandon(sent.destination_attempt);
  const auto pause =
      options_.batch_pause * (std::int64_t{1} << std::min(destination.refusals, 20U));
  ++destination.refusals;
  destination.batch = 1;
  destination.no_batch_before = now + std::min<core::duration>(pause, options_.batch_pause_limit);
  repeat(destination, sent, true, now);
}

/// The pause before the next probe of what fails since then: at first the breaker's own, later one
/// that thousands of clusters can have at the same time.
core::duration schedule::probe_pause(core::time_point since, core::time_point now) {
  if (now - since < options_.patience) return {};
  return core::shortened(options_.late_probe_limit, 0.5, random_());
}

bool schedule::fail(destination& destination, core::circuit_breaker::attempt attempt,
                    core::duration at_least, core::time_point now) {
  destination.fails_since = std::min(destination.fails_since, now);
  const auto pause = std::max(at_least, probe_pause(destination.fails_since, now));
  return destination.breaker.fail(attempt, now, pause);
}

bool schedule::fail_upstream(core::circuit_breaker::attempt attempt, core::time_point now) {
  upstream_fails_since_ = std::min(upstream_fails_since_, now);
  return upstream_.fail(attempt, now, probe_pause(upstream_fails_since_, now));
}

bool schedule::failed(std::unique_ptr<batch> sent, delivery_failure error, core::time_point now) {
  auto& destination = *sent->of;
  bool counted = true;
  bool at_once = true;
  // All kept connections may have been closed while they were idle. What then closes is not idle.
  if (error == delivery_failure::unprocessed && ++destination.unprocessed > concurrency_)
    error = delivery_failure::stream;
  if (sent->resync) {
    counted = fail_resync(destination, *sent, error, now);
    end(std::move(sent));
    return counted;
  }
  switch (error) {
    case delivery_failure::connect:
      counted = fail_upstream(sent->upstream_attempt, now);
      unreachable_ = unreachable_ || counted;
      destination.breaker.abandon(sent->destination_attempt);
      break;
    case delivery_failure::unprocessed:
      upstream_.abandon(sent->upstream_attempt);
      destination.breaker.abandon(sent->destination_attempt);
      at_once = destination.unprocessed <= 2;
      break;
    case delivery_failure::stream:
      broke(destination, *sent, now);
      counted = fail(destination, sent->destination_attempt, {}, now);
      at_once = destination.breaker.failures() == 1;
      break;
    case delivery_failure::timeout:
      upstream_.abandon(sent->upstream_attempt);
      counted = fail(destination, sent->destination_attempt, {}, now);
      at_once = false;
      break;
  }
  repeat(destination, *sent, at_once, now);
  end(std::move(sent));
  return counted;
}

/// A connection broke under a request. If one did under another manager's before, and this request
/// began only then, that is no operator's doing.
void schedule::broke(const destination& destination, const batch& sent, core::time_point now) {
  const bool shared = broken_destination_ != 0 && broken_destination_ != destination.id &&
                      sent.number > broken_after_;
  if (shared) {
    fail_upstream(sent.upstream_attempt, now);
  } else {
    upstream_.abandon(sent.upstream_attempt);
  }
  broken_destination_ = destination.id;
  broken_after_ = batches_;
}

void schedule::repeat(destination& destination, const batch& sent, bool at_once,
                      core::time_point now) {
  for (const auto& event : sent.events) {
    if (at_once) {
      destination.events.retry(event, false);
    } else {
      repeat_later(destination, event, false, {}, now);
    }
  }
}

void schedule::repeat_later(destination& destination, const event_set::taken& event, bool rejected,
                            std::chrono::seconds at_least, core::time_point now) {
  const auto limit = rejected ? options_.refused_limit : options_.retry_limit;
  core::backoff pause(options_.retry_base, limit, [this] { return random_(); });
  pause.skip(event.attempts());
  destination.events.retry_at(event, now + std::max<core::duration>(pause.next(), at_least));
}

/// The event needs no more sending, unless it changed while it was in flight.
void schedule::finish(destination& destination, const event_set::taken& event,
                      core::time_point now) {
  const auto before = destination.events.size();
  destination.note_ended(event.key());
  if (destination.changes && !event.changed())
    objects_.told(*destination.changes, event.key(), now);
  destination.events.done(event);
  size_ -= before - destination.events.size();
}

void schedule::end(std::unique_ptr<batch> sent) {
  --sent->of->requests;
  --under_way_;
  spare_.push_back(std::move(sent));
}

void schedule::report(const std::function<void(const figures&)>& to) const {
  for (const auto* destination : ring_) {
    auto oldest = destination->events.oldest();
    if (destination->changes) oldest = std::min(oldest, objects_.oldest_of(*destination->changes));
    if (owes(*destination)) oldest = std::min(oldest, destination->resync_fails_since);
    const bool only_some =
        destination->refused && destination->accepts_others && !destination->breaker.open();
    to({destination->manager, destination->known == evidence::real,
        destination->events.size() + destination->waiting(), destination->events.delayed(), oldest,
        destination->breaker.open(), only_some ? &*destination->refused : nullptr});
  }
}

}  // namespace rw::dispatch
