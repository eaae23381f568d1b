#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/reactors/shared/resync.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rw::dispatch {

/// Why an operator is owed a resync, as far as that decides when it is sent.
enum class resync_cause : std::uint8_t {
  started,          ///< the process has, and cannot know what was told before
  watcher_changed,  ///< one of its Watchers came, or was edited
  watch_back,       ///< a watch had to list again
  checked,  ///< a watch was listed again because reviews were in doubt, as tenants can cause
  // Losses:
  removed,    ///< a Watcher went, some of whose changes were not told
  undecided,  ///< reviews that only a list could decide, where there is none
  overflow,   ///< a change or a review found no room
};

/// Number of the last ones, which are losses.
inline constexpr std::size_t resync_losses = 3;

/// As a metric's label: `watch_back`.
std::string_view to_string(resync_cause cause) noexcept;
/// Something was given up, which the resync makes up for.
constexpr bool is_loss(resync_cause cause) noexcept {
  return cause >= resync_cause::removed;
}
/// What operators are told of it.
resync_reason reason_of(resync_cause cause) noexcept;

/// What one operator is owed: a resync, while the number of those raised and of those paid differ.
/// Both only grow. Decides when the next attempt is due, and what stands in for a resync where the
/// receiver does not know resyncs. Knows no clock and no socket. Not thread-safe.
///
/// An answer that is neither "taken" nor the failure of a server says nothing by itself: a gateway
/// without a route says 404, and a portal says 200. One existing object is then sent as an event.
/// If that is accepted without the offer of resyncs, the receiver does not know them: it is sent
/// all objects, once for all that was raised by then.
class resync_account {
 public:
  static constexpr core::duration retry_base = std::chrono::seconds(1);
  static constexpr core::duration retry_limit = std::chrono::minutes(5);
  /// Between two resyncs that losses alone are the cause of, two sendings of all objects, and from
  /// the finding that a receiver knows no resyncs to the next one.
  static constexpr core::duration interval = std::chrono::minutes(10);
  /// All objects are not sent before the process is so old.
  static constexpr core::duration quiet_start = std::chrono::minutes(1);

  /// How a resync ended.
  enum class outcome : std::uint8_t {
    taken,
    failed,   ///< no answer, or the failure of a server
    unclear,  ///< an answer of what may be no listener
  };

  /// `needs_offer`: nothing but an answer shows that the operator exists (there is no managers'
  /// file).
  explicit resync_account(core::time_point started, bool needs_offer = false)
      : started_(started), needs_offer_(needs_offer) {}

  /// It is one of the managers' file.
  void set_named() noexcept { needs_offer_ = false; }
  /// It is known to exist.
  bool is_real() const noexcept { return !needs_offer_ || has_offered_; }

  void raise(resync_cause cause);
  /// Something was dropped whose change can be read `settle` later: raised then.
  void raise_later(core::time_point now, core::duration settle);
  /// Raises what is due by then. Returns true if something was.
  bool advance(core::time_point now);
  /// The operator's last Watcher is gone. Returns true if a resync was owed.
  bool forgive();

  bool owed() const noexcept { return raised_ != paid_; }
  bool in_flight() const noexcept { return in_flight_; }
  /// One will be, for what was dropped.
  bool raises_later() const noexcept { return raise_at_ != core::time_point::max(); }
  /// Nothing is to be sent, now or later, or under way.
  bool settled() const noexcept { return !sendable() && !in_flight_ && !raises_later(); }
  /// Objects of a first list are held, as a resync will tell them.
  bool holds() const noexcept { return owed() || in_flight_; }

  /// Whether a resync is to be sent now. `ready`: the watches are; `closing`: the process ends, so
  /// that it is sent once, whatever it waits for.
  bool due(core::time_point now, bool ready, bool closing) const;
  /// Whether all objects are.
  bool resend_due(core::time_point now, bool ready, bool closing) const;
  /// When, after `now`, time alone changes the answers; max(): never.
  core::time_point next(core::time_point now) const;

  resync_reason begin(bool closing);
  /// `has_objects`: one exists that can be sent as an event. Returns true if that is to be done.
  bool end(outcome ending, bool has_objects, core::time_point now,
           const core::random_source& random);
  /// The request was not read, and says nothing: it is sent again at once.
  void unprocessed();
  void resent(core::time_point now);
  /// An event was accepted, with the offer to take resyncs or without it.
  void accepted(bool offers, core::time_point now);

  /// A resync has to be tried before the process ends, or is under way. (A receiver that knows none
  /// would be told of nothing by it.)
  bool holds_end() const noexcept {
    return in_flight_ || (!is_legacy_ && !tried_at_end_ && (sendable() || raises_later()));
  }

 private:
  bool sendable() const noexcept { return owed() && (!needs_offer_ || offered_); }
  bool is_urgent() const noexcept;
  core::time_point allowed_at() const noexcept;
  core::time_point resend_at() const noexcept;

  const core::time_point started_;
  bool needs_offer_;
  std::uint64_t raised_ = 0;
  std::uint64_t paid_ = 0;
  std::uint64_t sent_ = 0;    ///< `raised_` when the one in flight was sent
  std::uint64_t resent_ = 0;  ///< likewise of all objects
  unsigned causes_ = 0;       ///< a bit for each, of what is not paid
  unsigned sent_causes_ = 0;  ///< of the one in flight
  bool in_flight_ = false;
  bool offered_ = false;      ///< its receiver knows resyncs
  bool has_offered_ = false;  ///< once
  bool unclear_ = false;      ///< the latest resync was answered so
  bool is_legacy_ = false;    ///< its receiver does not know resyncs
  bool tried_at_end_ = false;
  unsigned failures_ = 0;                                  ///< in a row
  core::time_point not_before_ = core::time_point::min();  ///< the next attempt
  core::time_point taken_at_ = core::time_point::min();
  core::time_point resent_at_ = core::time_point::min();
  core::time_point raise_at_ = core::time_point::max();    ///< for what was dropped
  core::time_point dropped_by_ = core::time_point::min();  ///< and when all of it can be read
};

}  // namespace rw::dispatch
