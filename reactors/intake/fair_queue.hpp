#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/recycled.hpp"
#include "rw/reactors/shared/event_json.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/resync.hpp"

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace rw::listener {

/// An event, and its sender.
struct received_event {
  std::string runtime_id;  ///< common name of the sender's certificate
  watch_event event;       ///< its manager is the listener's component
  /// Set: a resync, whose event has no object. The host looks at everything of the runtime.
  std::optional<resync_reason> resync = {};
};

/// Result of an offer to a fair_queue.
enum class offer_result : std::uint8_t {
  added,
  merged,      ///< an equal event of the runtime is pending, and stands for both
  share_full,  ///< the runtime has its maximum pending
  full,        ///< the queue is full for a runtime with so many pending
};

/// Events of many runtimes that are accepted and wait for the host: for each runtime each event at
/// most once, oldest first; runtimes take turns, one event a turn. So an event waits for those of
/// its own runtime, and for one of each other runtime.
///
/// **Bounds.** A runtime has at most `runtime_events` pending, and all have at most `events`. Of
/// these the last third is kept for runtimes with nothing pending, and the second third for those
/// below their fair part, which is a third divided by the runtimes with something pending. So while
/// a few flood, one event of each of `events` / 3 other runtimes is accepted.
///
/// **Memory.** A pending event takes 0.5 KiB with names of common length and 2.3 KiB with the
/// longest; a runtime with something pending 0.25 KiB, or 0.5 KiB with the longest id; an idle one
/// nothing. 5,000 runtimes with one event each: 3.1 MiB. 18,000 with one each, which is the most
/// that the default bounds allow: 12 MiB, or 47 MiB with the longest names.
///
/// An offer costs O(log n) comparisons in the runtime's pending events, whatever names it chooses;
/// `take` O(1). Not thread-safe.
class fair_queue {
 public:
  struct taken {
    received_event event;
    core::time_point since;  ///< when the oldest of the merged events was accepted
  };

  /// Both at least 1.
  fair_queue(std::size_t runtime_events, std::size_t events)
      : runtime_events_(runtime_events), events_(events) {}

  ~fair_queue();
  fair_queue(const fair_queue&) = delete;
  fair_queue& operator=(const fair_queue&) = delete;

  /// The events' managers are the same. Moves from `event` only if it returns `added`.
  offer_result offer(const std::string& runtime_id, watch_event&& event, core::time_point now);

  /// Takes the oldest event of the runtime whose turn it is; nothing if the queue is empty.
  std::optional<taken> take();

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

 private:
  using by_key_hook = boost::intrusive::set_base_hook<>;
  using in_order_hook = boost::intrusive::list_base_hook<>;

  struct pending : by_key_hook, in_order_hook, core::recycled<pending> {
    explicit pending(core::time_point now) : since(now) {}

    watch_event event = {};
    core::time_point since;
  };
  struct key_of {
    using type = watch_event;
    const watch_event& operator()(const pending& of) const noexcept { return of.event; }
  };
  struct before {
    bool operator()(const watch_event& a, const watch_event& b) const noexcept;
  };
  /// Of one runtime.
  struct share {
    boost::intrusive::set<pending, boost::intrusive::key_of_value<key_of>,
                          boost::intrusive::compare<before>>
        by_key;
    boost::intrusive::list<pending, boost::intrusive::constant_time_size<false>> in_order;
  };
  using share_map = std::map<std::string, share>;

  const std::size_t runtime_events_;
  const std::size_t events_;
  share_map shares_;                      ///< of the runtimes with something pending
  std::list<share_map::iterator> turns_;  ///< each of `shares_` once
  std::size_t size_ = 0;
};

}  // namespace rw::listener
