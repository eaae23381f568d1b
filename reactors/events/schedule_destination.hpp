#pragma once

#include "rw/reactors/events/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace rw::dispatch {

/// Whether a manager is known to exist.
enum class evidence : std::uint8_t { none, not_found, real };

/// What goes to one manager.
struct schedule::destination {
  destination(const std::string& name, std::uint64_t number, const schedule_options& options,
              core::random_source& random)
      : manager(name),
        id(number),
        breaker(options.threshold, core::backoff(options.retry_base, options.probe_limit,
                                                 [&random] { return random(); })) {}

  std::size_t waiting() const noexcept { return changes ? delivery::size_of(*changes) : 0; }
  bool invented() const noexcept { return known == evidence::not_found; }

  void note_refused(const watch_event& event, unsigned status) {
    if (!refused) {
      refused = rejected_event{event, 0};
      accepts_others = false;
    }
    if (refused->event == event) refused->status = status;
  }
  /// The event is accepted, or lost.
  void note_ended(const watch_event& event) {
    if (refused && refused->event == event) refused.reset();
  }

  const std::string& manager;
  const std::uint64_t id;
  event_set events;
  std::shared_ptr<delivery::queue> changes;  ///< null: nothing of it was ever to be told
  core::circuit_breaker breaker;
  std::size_t requests = 0;  ///< under way
  std::size_t batch = 1;     ///< events that the receiver takes at once
  unsigned refusals = 0;     ///< of batches, since one was taken
  unsigned unprocessed = 0;  ///< requests in a row that nobody looked at
  core::time_point fails_since = core::time_point::max();
  /// When the latest resync was sent: what waited then need not be.
  core::time_point resync_sent = core::time_point::max();
  bool has_resync = false;  ///< it is under way
  /// Since when a resync that is owed has had no answer, or the failure of a server.
  core::time_point resync_fails_since = core::time_point::max();
  evidence known = evidence::none;
  std::optional<rejected_event> refused;  ///< of those that are not ended, the first one noticed
  bool accepts_others = false;            ///< since then
  core::time_point no_batch_before = core::time_point::min();
};

}  // namespace rw::dispatch
