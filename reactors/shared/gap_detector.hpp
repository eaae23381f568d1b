#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/shared/heartbeat.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw {

/// Whose events of a runtime may have been missed, and why.
struct missed_events {
  /// Sorted; the empty name, alone, stands for all managers. Empty: nothing was missed.
  std::vector<std::string> managers = {};
  std::string_view reason = {};  ///< static storage

  explicit operator bool() const noexcept { return !managers.empty(); }
  bool concerns(std::string_view manager) const noexcept;
  /// Returns reason and managers, in at most 512 bytes.
  std::string message() const;
};

/// Notices from the heartbeats of one runtime that its events may have been missed. Of a manager: a
/// count of its gaps differs from that of the series' previous heartbeat, or from 0 in a series not
/// observed before. Of all managers: a pod has started, and
///
/// - it does not observe all resources, or
/// - it observes them, and has no journal (`ledger` other than "read"): what was deleted while none
///   ran cannot be known,
///
/// unless another pod was live on the same watches from before the start until the new pod's lists
/// were complete. That pod may report it within two of its intervals. Of the times that a heartbeat
/// has only the time until it was sent counts, and is subtracted from its arrival: the clocks of
/// two nodes may differ, and may be set.
///
/// A gap that is told while the pod does not observe all resources is told once more, of all
/// managers, when it does.
///
/// The first heartbeat tells of no start, and is a gap only if gaps were counted before it: whether
/// another host learned of them is not known. A pod that began before the first heartbeat arrived
/// is no start either.
///
/// A heartbeat of a version without gaps by manager concerns all managers: if `events.lost` has
/// increased, or its pod has started and does not observe all resources. Beside a pod of such a
/// version no journal is demanded.
///
/// Remembers four pods, in less than 3 KiB whatever they report: a runtime with more may have gaps
/// in excess. A value.
class gap_detector {
 public:
  /// Takes the next heartbeat, at its arrival. Of several pods they come in any order.
  missed_events observe(const heartbeat& now, core::time_point arrival);

 private:
  using time = std::optional<core::time_point>;

  /// Whether lists and watches make up for a time without the watcher.
  enum class coverage : std::uint8_t { full, pending, partial };
  enum class verdict : std::uint8_t { no_gap, undecided, gap };

  struct pod {
    std::uint64_t boot = 0;     ///< hash of its id; 0: none
    std::uint64_t series = 0;   ///< hash; 0: of a version without
    std::uint64_t watches = 0;  ///< hash of their names
    std::uint64_t lost = 0;     ///< of a version without a series
    /// By hash of the manager's name; those beyond the first 31 are added up.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> gaps = {};
    coverage observes = coverage::full;
    bool undecided = false;  ///< whether its start is a gap
    bool remembers = false;  ///< it has read a journal
    bool owed = false;       ///< a gap, as the latest was told before its lists were complete
    time started = {};       ///< by the receiver's clock, as all times here
    core::time_point arrived = {};  ///< the latest
    time complete = {};             ///< when the last of its lists was; nothing: one is not
    std::chrono::seconds interval{0};
  };

  pod& use(const heartbeat& now, missed_events& missed, core::time_point arrival);
  static void count(pod& of, const heartbeat& now, missed_events& missed);
  static void update(pod& of, const heartbeat& now, core::time_point arrival);
  verdict judge(const pod& started, core::time_point now) const;

  std::array<pod, 4> pods_ = {};  ///< the latest first
  time first_ = {};               ///< when the first heartbeat arrived
};

}  // namespace rw
