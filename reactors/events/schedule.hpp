#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/circuit_breaker.hpp"
#include "rw/core/coalescing_set.hpp"
#include "rw/reactors/events/delivery.hpp"
#include "rw/reactors/shared/events.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::dispatch {

struct schedule_options {
  /// Events known at once: queued, in flight and delayed. In front of a full schedule each
  /// request may still have one change of an observed object.
  std::size_t capacity = 32768;
  core::duration retry_base = std::chrono::milliseconds(100);
  core::duration retry_limit = std::chrono::seconds(30);
  core::duration refused_limit = std::chrono::minutes(5);  ///< likewise, of a rejected event
  /// Longest pause between probes of what fails for less than `patience`, and after that.
  core::duration probe_limit = std::chrono::seconds(3);
  core::duration late_probe_limit = std::chrono::seconds(30);
  core::duration patience = std::chrono::minutes(1);
  unsigned threshold = 5;          ///< failures in a row after which only probes are sent
  std::size_t managers = 256;      ///< known at once
  std::size_t batch_requests = 2;  ///< at once to one manager that takes batches
  /// How long a receiver's offer to take batches is not believed after it refused one: at first,
  /// and at most, doubled each time until one is taken.
  core::duration batch_pause = std::chrono::seconds(10);
  core::duration batch_pause_limit = std::chrono::minutes(10);
};

using event_set = core::coalescing_set<watch_event, watch_event_hash>;

/// What becomes of an event after an answer from upstream.
enum class delivery_verdict : std::uint8_t {
  delivered,  ///< 2xx: the receiver has accepted it
  retry,      ///< the receiver or the way to it may recover: 401, 403, 404, 408, 429, 3xx, 5xx
  rejected,   ///< this event may be at fault: 400, 405, 413 and any other 4xx; it is sent again
};

delivery_verdict verdict_of(unsigned status) noexcept;

/// `Retry-After` in its form of seconds (RFC 9110, section 10.2.3), at most five minutes. The form
/// of a date, which needs synchronous clocks, is not heeded.
std::chrono::seconds retry_after(std::string_view header) noexcept;

/// What became of an event that will not be delivered.
enum class loss : std::uint8_t {
  overflow,   ///< there was no capacity left for it
  abandoned,  ///< the process ended before
};

/// The answer to a request, as far as it says what becomes of the events in it.
struct batch_response {
  unsigned status = 200;
  std::chrono::seconds retry_after{0};
  std::size_t batch_offer = 1;  ///< events that the receiver takes in one request
  /// Statuses of a batch's events (207); empty: all have `status`.
  std::vector<unsigned> statuses = {};
  bool offers_resyncs = false;  ///< the receiver knows them
  bool resync_taken = false;    ///< of a resync: as the receiver said

  unsigned status_of(std::size_t event) const {
    return statuses.empty() ? status : statuses[event];
  }
};

/// An event that was answered and not accepted.
struct rejected_event {
  watch_event event;
  unsigned status = 0;  ///< of the latest answer
};

/// How a resync ended that was answered.
resync_account::outcome outcome_of(const batch_response& response) noexcept;

/// Why a request has no answer, and thereby whose failure it is.
enum class delivery_failure : std::uint8_t {
  connect,      ///< no connection could be opened: everybody's
  unprocessed,  ///< the connection ended or refused the request, which was not read: nobody's
  stream,       ///< the connection broke under the request: the manager's, unless others share it
  timeout,      ///< the answer did not come in time or is too large: the manager's
};

/// Events of an answered request, by what became of them; for the metrics.
struct batch_result {
  std::size_t delivered = 0;
  std::size_t retried = 0;
  std::size_t rejected = 0;  ///< sent again, too
};

/// Decides what is sent next: which events, to which manager, and when after a failure. Knows no
/// socket and no timer: `poll` is a function of the state and of the time, to be called after any
/// other call and when the time has come that it named. Nothing else has to be remembered.
///
/// Every manager has a destination of its own: events in the order of their latest change, a
/// circuit breaker, and whether its receiver takes batches. A destination takes changes of observed
/// objects (`delivery`) when it can send them, after the events that it was offered; it
/// gives back those that it cannot keep, and loses none. What one operator does costs its own
/// destination only:
///
/// - Requests: one that fails has one under way, all that fail together have half of `concurrency`,
///   and no manager has more than half. A quarter is kept for managers that have none under way.
/// - Capacity: known keys are always taken. A new one in front of a full schedule is taken at the
///   cost of the manager that holds most, whose newest event is lost; of managers that only ever
///   answered 404, which anybody can invent, it is theirs first.
/// - Managers: in front of too many one without a sign of being real makes way, the one with the
///   fewest events if none has answered yet.
/// - Failures: `delivery_failure` says whose they are. An operator's open its own destination's
///   breaker. The breaker of the way to KCP is opened by connections that can't be opened, and, for
///   the destinations that fail, by connections that break under requests of different managers
///   with no answer in between.
///
/// Nothing but 2xx ends an event: a gateway in a wrong state answers 400 for events that its
/// receiver would accept. One that is rejected while others are accepted counts once against its
/// destination's breaker, so that a few bad events do not hold back the others; where every event
/// is rejected the breaker opens.
///
/// An event that failed waits for its own backoff (full jitter), or until its destination's breaker
/// closes again, which shows that the receiver is back. While that is open one event after the
/// other is the probe, whatever it waits for. Nothing expires.
///
/// A resync that `delivery` says is due is a request of its own, in front of events. It waits for
/// nobody's breaker but that of the way to KCP, and opens none: its pauses are the account's.
///
/// `poll` costs O(managers), all other calls O(1) for each event on average, and O(managers) in
/// front of a full schedule. Single-threaded.
class schedule {
 public:
  struct destination;

  /// What is sent in one request: events of one manager. To be given back, once, to `answered` or
  /// `failed`.
  struct batch {
    const std::string* manager = nullptr;
    std::vector<event_set::taken> events;
    bool as_batch = false;
    std::optional<resync_reason> resync = {};  ///< it is one, without events
    destination* of = nullptr;
    core::circuit_breaker::attempt destination_attempt = 0;
    core::circuit_breaker::attempt upstream_attempt = 0;
    std::uint64_t number = 0;
  };

  /// Send this, or else wait until then.
  struct decision {
    std::unique_ptr<batch> send;
    core::time_point until = core::time_point::max();
  };

  /// One manager's figures, for the metrics.
  struct figures {
    const std::string& manager;
    bool real;            ///< it has answered something else than 404
    std::size_t events;   ///< not delivered yet
    std::size_t delayed;  ///< of these, waiting for a backoff
    /// Latest change of the event that waits longest, or since when a resync fails; max(): neither.
    core::time_point oldest;
    bool open;                      ///< its breaker lets only probes pass
    const rejected_event* refused;  ///< since then its receiver accepts others; null: there is none
  };

  /// Told of each event that is lost, before it is forgotten.
  using loss_handler = std::function<void(loss, const watch_event&)>;

  /// `objects` must outlive it.
  schedule(schedule_options options, core::random_source random, loss_handler on_loss,
           delivery& objects);
  ~schedule();
  schedule(const schedule&) = delete;
  schedule& operator=(const schedule&) = delete;

  /// Takes an event that was accepted at `now`. True if it was known, and became one with the
  /// other.
  bool offer(watch_event&& event, core::time_point now);

  /// The end is near: changes that a list would bring again are not taken from now on.
  void close() noexcept { closed_ = true; }

  /// What to do now.
  decision poll(core::time_point now);

  /// A connection was found for a request; so many requests may now be under way in all. True if
  /// that changes what `poll` says.
  bool connected(std::size_t concurrency) noexcept;

  /// Ends a request that was answered.
  batch_result on_response(std::unique_ptr<batch> sent, const batch_response& response,
                           core::time_point now);

  /// Ends a request that was not. False if an earlier failure has said as much already.
  bool failed(std::unique_ptr<batch> sent, delivery_failure error, core::time_point now);

  /// Nothing is left to send.
  bool empty() const noexcept;
  /// Gives all up, for the end. No request may be under way. Returns the number of events that are
  /// lost; those of observed objects go back to where they came from.
  std::size_t abandon(core::time_point now);
  /// Number of events that were offered or taken, and are not delivered.
  std::size_t size() const noexcept { return size_; }
  bool upstream_open() const noexcept { return upstream_.open(); }
  void report(const std::function<void(const figures&)>& to) const;

 private:
  destination* destination_of(const std::string& manager, bool observed, core::time_point now);
  bool make_way(core::time_point now);
  void make_room(destination& newcomer, core::time_point now);
  void erase(destination& destination);
  bool shed(destination& from, loss loss, core::time_point now);
  bool has_work(const destination& destination) const;
  static bool owes(const destination& destination);
  static bool is_idle(const destination& destination);
  void on_resync(destination& destination, resync_account::outcome ending, core::time_point now);
  void tell_waiting(destination& destination, core::time_point now);
  std::unique_ptr<batch> load_resync(destination& destination, core::time_point now);
  void begin(destination& destination, batch& load);
  bool fail_resync(destination& destination, const batch& sent, delivery_failure error,
                   core::time_point now);
  core::duration probe_pause(core::time_point since, core::time_point now);
  bool fail(destination& destination, core::circuit_breaker::attempt attempt,
            core::duration at_least, core::time_point now);
  bool fail_upstream(core::circuit_breaker::attempt attempt, core::time_point now);
  std::size_t tidy(core::time_point now);
  bool shared_breaker_applies(const destination& destination) const;
  bool has_slot(const destination& destination, std::size_t suspects) const;
  bool may_send(const destination& destination, std::size_t suspects, core::time_point now) const;
  core::time_point next_time(const destination& destination, core::time_point now) const;
  std::unique_ptr<batch> load(destination& destination, core::time_point now);
  void repeat(destination& destination, const batch& sent, bool at_once, core::time_point now);
  void repeat_later(destination& destination, const event_set::taken& event, bool rejected,
                    std::chrono::seconds at_least, core::time_point now);
  void finish(destination& destination, const event_set::taken& event, core::time_point now);
  void broke(const destination& destination, const batch& sent, core::time_point now);
  batch_result settle(destination& destination, const batch& sent, const batch_response& response,
                      core::time_point now);
  void split(destination& destination, const batch& sent, core::time_point now);
  void end(std::unique_ptr<batch> sent);

  const schedule_options options_;
  core::random_source random_;
  const loss_handler on_loss_;
  delivery& objects_;
  core::circuit_breaker upstream_;  ///< the way to KCP
  bool unreachable_ = false;        ///< it is open because no connection can be opened
  core::time_point upstream_fails_since_ = core::time_point::max();
  std::map<std::string, std::unique_ptr<destination>> destinations_;
  std::vector<destination*> ring_;  ///< the same, in turn
  std::size_t turn_ = 0;
  std::vector<std::unique_ptr<batch>> spare_;
  std::size_t size_ = 0;
  bool closed_ = false;
  std::size_t concurrency_ = 64;
  std::size_t under_way_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t destinations_made_ = 0;
  /// Under which a connection broke, since the latest answer; 0: none.
  std::uint64_t broken_destination_ = 0;
  std::uint64_t broken_after_ = 0;  ///< batches that had begun by then
};

}  // namespace rw::dispatch
