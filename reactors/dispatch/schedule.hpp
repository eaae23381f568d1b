#pragma once

#include "core/backoff.hpp"
#include "core/coalescing_set.hpp"
#include "core/gate.hpp"
#include "reactors/dispatch/verdict.hpp"
#include "reactors/events.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rw::dispatch {

struct schedule_options {
  std::size_t capacity =
      32768;  ///< events known at once: queued, in flight and waiting for a retry
  core::duration retry_base = std::chrono::milliseconds(100);
  core::duration retry_limit = std::chrono::seconds(30);
  core::duration probe_limit = std::chrono::seconds(3);  ///< longest pause between probes
  unsigned threshold = 5;  ///< failures in a row after which only probes are sent
  core::duration max_age = std::chrono::hours(1);  ///< after its latest change an event is given up
  std::size_t managers = 256;      ///< with undelivered events at once; further ones are refused
  std::size_t batch_requests = 2;  ///< at once to one manager that takes batches
  /// How long a receiver's offer to take batches is not believed after it refused one: at first,
  /// and at most, doubled each time until one is taken.
  core::duration batch_pause = std::chrono::seconds(10);
  core::duration batch_pause_limit = std::chrono::minutes(10);
};

using event_set = core::coalescing_set<watch_event, watch_event_hash>;

/// What is sent in one request: events of one manager, which the schedule owns until it is settled.
struct shipment {
  std::string manager;
  std::vector<event_set::taken> events;
  bool as_batch = false;
  core::gate::ticket ticket = 0;
};

/// What became of one event of a shipment.
struct outcome {
  verdict what = verdict::delivered;
  std::chrono::seconds retry_after{0};
};

/// What the schedule did with a shipment's events; for the metrics and the log.
struct settlement {
  std::size_t delivered = 0;
  std::size_t retried = 0;
  std::size_t rejected = 0;
  std::size_t expired = 0;
};

/// Decides what is sent next: which events, to which manager, and when after a failure. Knows no
/// socket and no timer, so that all of it can be tested with literals.
///
/// Every manager has a lane of its own: events in the order of their latest change, a circuit
/// breaker, and whether its receiver takes batches. A manager whose operator is down holds up no
/// other. Above them stands the breaker of the way to KCP itself (`upstream`).
///
/// An event that failed waits for its own backoff (full jitter), or until its lane's breaker closes
/// again, which shows that the receiver is back. Meanwhile it still counts as in flight: a newer
/// change of the same object merges into it.
///
/// Single-threaded.
class schedule {
 public:
  enum class offered : std::uint8_t {
    added,
    merged,
    full,     ///< as many events as there may be
    refused,  ///< as many managers as there may be; the event is not taken
  };

  schedule(schedule_options options, core::random_source random);
  ~schedule();
  schedule(const schedule&) = delete;
  schedule& operator=(const schedule&) = delete;

  /// Takes in an event that was accepted at `now`. In front of a full schedule it is left alone.
  /// The managers are bounded too, since anybody who reaches the webhook can name one.
  offered offer(watch_event& event, core::time_point now);

  /// True if an event that is not known yet would not be taken.
  bool full() const noexcept { return size_ >= options_.capacity; }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  std::size_t delayed() const noexcept { return delays_.size(); }
  std::size_t open_circuits() const noexcept;

  /// True if `next` would give something.
  bool ready(core::time_point now);

  /// The next shipment, lanes in turn. False if nothing is to be sent now.
  bool next(core::time_point now, shipment& into);

  /// When, after `now`, time alone makes something ready that is not ready now; `time_point::max()`
  /// if only a new event or a settlement changes anything.
  core::time_point next_time(core::time_point now) const;

  /// Ends a shipment that reached a receiver; `outcomes` has one element for each event.
  settlement settle(const shipment& sent, const std::vector<outcome>& outcomes,
                    core::time_point now);

  /// Ends a shipment that found no receiver, or none that looked at it: it is sent again as soon as
  /// the breaker of the upstream lets it. That is up to the caller.
  settlement put_back(const shipment& sent, core::time_point now);

  /// Gives up queued events whose latest change is too old. For times when nothing can be sent.
  settlement expire(core::time_point now);

  /// How many requests one manager may have under way while there are others, so that one that
  /// hangs leaves room for them.
  void set_share(std::size_t requests) noexcept { share_ = requests > 0 ? requests : 1; }

  /// The receiver did not take the shipment as a batch: for a while all events go to it one by one.
  void split(const shipment& sent, core::time_point now);

  /// The receiver of a manager offers to take up to `events` at once; 0 or 1 takes the offer back.
  void set_batch(const std::string& manager, std::size_t events, core::time_point now);

  core::gate upstream;  ///< breaker of the connection to KCP

 private:
  struct lane;
  struct delay {
    lane* of;
    const watch_event* event;
  };

  lane& lane_of(const std::string& manager);
  static bool is_idle(const lane& one) noexcept;
  bool ready(const lane& one, core::time_point now) const;
  void wake_delayed(core::time_point now);
  void release(lane& one);
  bool expired(const event_set::taken& event, core::time_point now) const {
    return now - event.latest_accepted > options_.max_age;
  }
  void retry_later(lane& one, const event_set::taken& event, std::chrono::seconds at_least,
                   core::time_point now);
  void finish(lane& one, const watch_event& event);
  void drop_if_idle(const std::string& manager);

  const schedule_options options_;
  core::random_source random_;
  std::map<std::string, std::unique_ptr<lane>> lanes_;
  std::string last_served_;
  std::multimap<core::time_point, delay> delays_;  ///< events in flight that wait for their backoff
  std::size_t size_ = 0;
  std::size_t share_ = 16;
};

}  // namespace rw::dispatch
