#include "rw/reactors/events/resync_account.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <utility>

namespace rw::dispatch {
namespace {

constexpr unsigned bit(resync_cause cause) {
  return 1U << static_cast<unsigned>(cause);
}

/// What is neither the loss of a change nor caused by reviews, which tenants send at will.
constexpr unsigned urgent =
    bit(resync_cause::started) | bit(resync_cause::watcher_changed) | bit(resync_cause::watch_back);

core::time_point after(core::time_point at, core::duration pause) {
  return at == core::time_point::min() ? at : at + pause;
}

}  // namespace

resync_reason reason_of(resync_cause cause) noexcept {
  switch (cause) {
    case resync_cause::started:
      return resync_reason::started;
    case resync_cause::watcher_changed:
      return resync_reason::watcher_changed;
    case resync_cause::watch_back:
    case resync_cause::checked:
      return resync_reason::watch_back;
    case resync_cause::removed:
    case resync_cause::undecided:
    case resync_cause::overflow:
      break;
  }
  return resync_reason::dropped;
}

std::string_view to_string(resync_cause cause) noexcept {
  static constexpr std::array<std::string_view, 7> names = {
      "started", "watcher_changed", "watch_back", "checked", "removed", "undecided", "overflow"};
  return names.at(static_cast<std::size_t>(cause));
}

void resync_account::raise(resync_cause cause) {
  ++raised_;
  causes_ |= bit(cause);
}

void resync_account::raise_later(core::time_point now, core::duration settle) {
  dropped_by_ = now + settle;
  raise_at_ = std::min(raise_at_, dropped_by_);
}

bool resync_account::advance(core::time_point now) {
  if (raise_at_ > now) return false;
  raise(resync_cause::overflow);
  raise_at_ = dropped_by_ > now ? dropped_by_ : core::time_point::max();
  return true;
}

bool resync_account::forgive() {
  const bool was_owed = owed() || raises_later();
  paid_ = raised_;
  causes_ = sent_causes_ = 0;
  raise_at_ = core::time_point::max();
  not_before_ = core::time_point::min();
  failures_ = 0;
  is_legacy_ = unclear_ = false;
  return was_owed;
}

bool resync_account::is_urgent() const noexcept {
  return (causes_ & urgent) != 0;
}

core::time_point resync_account::allowed_at() const noexcept {
  return is_urgent() ? not_before_ : std::max(not_before_, after(taken_at_, interval));
}

core::time_point resync_account::resend_at() const noexcept {
  return std::max(started_ + quiet_start, after(resent_at_, interval));
}

bool resync_account::due(core::time_point now, bool ready, bool closing) const {
  if (in_flight_ || !sendable()) return false;
  if (closing) return !tried_at_end_ && !is_legacy_ && !raises_later();
  return ready && now >= allowed_at();
}

bool resync_account::resend_due(core::time_point now, bool ready, bool closing) const {
  if (closing || !ready || !is_legacy_ || !owed() || raised_ == resent_) return false;
  return now >= resend_at();
}

core::time_point resync_account::next(core::time_point now) const {
  auto out = raise_at_;
  const auto see = [&](core::time_point at) {
    if (at > now) out = std::min(out, at);
  };
  if (!owed()) return out;
  if (!in_flight_ && sendable()) see(allowed_at());
  if (is_legacy_ && raised_ != resent_) see(resend_at());
  return out;
}

resync_reason resync_account::begin(bool closing) {
  in_flight_ = true;
  tried_at_end_ = closing;
  sent_ = raised_;
  sent_causes_ = std::exchange(causes_, 0);
  const auto gravest = std::bit_width(sent_causes_);
  return reason_of(static_cast<resync_cause>(gravest == 0 ? 0 : gravest - 1));
}

bool resync_account::end(outcome ending, bool has_objects, core::time_point now,
                         const core::random_source& random) {
  in_flight_ = false;
  if (ending == outcome::taken) {
    paid_ = std::max(paid_, sent_);
    sent_causes_ = 0;
    failures_ = 0;
    offered_ = has_offered_ = true;
    is_legacy_ = unclear_ = tried_at_end_ = false;
    not_before_ = core::time_point::min();
    taken_at_ = now;
    return false;
  }
  causes_ |= std::exchange(sent_causes_, 0);
  core::backoff pause(retry_base, retry_limit, random);
  pause.skip(failures_++);
  not_before_ = now + pause.next();
  if (ending == outcome::failed) return false;
  unclear_ = true;
  // Not before the object's event.
  not_before_ = std::max(not_before_, now + (is_legacy_ ? interval : retry_base));
  return has_objects && !is_legacy_;
}

void resync_account::unprocessed() {
  in_flight_ = tried_at_end_ = false;
  causes_ |= std::exchange(sent_causes_, 0);
}

void resync_account::resent(core::time_point now) {
  resent_ = raised_;
  resent_at_ = now;
}

void resync_account::accepted(bool offers, core::time_point now) {
  if (offers) {
    // Once: what answers in its place may do so again.
    if (!std::exchange(has_offered_, true) && !unclear_) not_before_ = core::time_point::min();
    offered_ = true;
    unclear_ = is_legacy_ = false;
    return;
  }
  offered_ = false;
  if (!unclear_ || is_legacy_) return;
  is_legacy_ = true;
  not_before_ = now + interval;
}

}  // namespace rw::dispatch
