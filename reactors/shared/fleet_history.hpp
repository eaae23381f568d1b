#pragma once

#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw {

/// The stages of the way of events that are counted, by the names of their columns.
inline constexpr std::array<std::string_view, 7> history_stages{
    "accepted", "delivered", "batches", "requests", "taken", "adds", "reconciles"};

/// What a leader knows of its landscape at one moment.
struct fleet_sample {
  fleet_level level = fleet_level::unknown;
  std::array<std::uint32_t, runtime_condition_count> counts{};  ///< runtimes by runtime_condition
  /// Since the process began; only differences count.
  std::array<std::uint64_t, history_stages.size()> totals{};
};

/// One minute of a landscape.
struct fleet_minute {
  std::int64_t minute = 0;                                      ///< since 1970
  fleet_level level = fleet_level::unknown;                     ///< the worst in it
  std::array<std::uint32_t, runtime_condition_count> counts{};  ///< the last in it
  std::array<std::uint32_t, history_stages.size()> events{};    ///< in it, of each stage

  friend bool operator==(const fleet_minute&, const fleet_minute&) = default;
};

/// A change of a roll-out, or of the CA rotation.
struct landscape_change {
  std::chrono::sys_seconds at = {};
  std::string state = {};
  std::string cause = {};  ///< may be empty

  friend bool operator==(const landscape_change&, const landscape_change&) = default;
};

/// A change of one runtime.
struct runtime_transition {
  std::uint32_t at = 0;  ///< seconds since 1970
  runtime_condition condition = runtime_condition::unknown;
  status_reason reason = status_reason::none;

  friend bool operator==(const runtime_transition&, const runtime_transition&) = default;
};

/// What a leader remembers of the last 24 hours: each minute of the landscape, the changes of
/// roll-outs and of the CA rotation, and the transitions of each runtime, the last 64 each.
///
/// Minutes and changes can be encoded, so that the next leader restores them; the transitions of
/// runtimes are those of one term. A minute in which no leader took a sample is absent. Memory: 52
/// bytes a minute, and at most 0.7 KiB a runtime. A value; not thread-safe.
class fleet_history {
 public:
  using time_point = std::chrono::system_clock::time_point;

  static constexpr std::size_t max_minutes = 24 * 60;
  static constexpr std::size_t max_changes = 64;   ///< of one runtime, roll-out or rotation
  static constexpr std::size_t max_subjects = 16;  ///< roll-outs and rotations
  static constexpr std::size_t max_text = 120;     ///< bytes; longer ones are cut
  /// What `encode` returns is never longer: in Base64 it fits in a Secret of 512 KiB.
  static constexpr std::size_t max_encoded = 382u << 10;

  /// Adds to the minute of `now`. A calendar that is set back ends what was in its future.
  void record(time_point now, const fleet_sample& sample);
  /// Does nothing if that is the subject's latest state and cause.
  void change(time_point now, std::string_view subject, std::string_view state,
              std::string_view cause);
  /// Does nothing if that is the runtime's latest condition and reason, or if a runtime that is not
  /// known yet is `unknown`. A runtime that is not named for 24 hours is forgotten.
  void transition(time_point now, const std::string& kyma, runtime_condition condition,
                  status_reason reason);

  const std::deque<fleet_minute>& minutes() const noexcept { return minutes_; }
  const std::map<std::string, std::deque<landscape_change>, std::less<>>& changes() const noexcept {
    return changes_;
  }
  /// Oldest first; empty if there are none.
  std::vector<runtime_transition> transitions_of(const std::string& kyma) const;
  /// The runtimes that were not well then, by name, each with its transition into that.
  std::vector<std::pair<std::string, runtime_transition>> not_well_at(time_point at) const;
  /// Since when transitions of runtimes are known.
  std::optional<time_point> runtimes_since() const noexcept { return runtimes_since_; }

  /// Minutes and changes, in bytes that begin with a version.
  std::string encode() const;
  /// Nothing if the bytes are of another version, or not what `encode` returns.
  static std::optional<fleet_history> decode(std::string_view bytes);
  /// Puts what an earlier leader has encoded before its own, without what is older than 24 hours,
  /// or in the future.
  void restore(const fleet_history& earlier, time_point now);

 private:
  struct known_runtime {
    std::vector<runtime_transition> transitions = {};
    std::uint32_t named = 0;  ///< last
  };

  void forget_old(std::int64_t minute);
  void add_change(const std::string& subject, landscape_change added);

  std::deque<fleet_minute> minutes_;
  std::map<std::string, std::deque<landscape_change>, std::less<>> changes_;
  std::unordered_map<std::string, known_runtime> runtimes_;
  std::optional<time_point> runtimes_since_;
  std::optional<std::array<std::uint64_t, history_stages.size()>> totals_;  ///< of the last sample
};

/// The JSON of `/history`: `columns`, `minutes` as arrays of numbers in their order, `changes`,
/// `since` (the first minute) and `runtimesSince`, both in seconds since 1970 and absent if there
/// is none.
boost::json::object json_of(const fleet_history& of);
/// Of `/history?at=`: `runtimes` that were not well then, at most `limit`, and `total` of them.
boost::json::object json_of(const fleet_history& of, std::chrono::sys_seconds at,
                            std::size_t limit = 200);
/// Of one runtime, newest first.
boost::json::array json_of(const std::vector<runtime_transition>& of);

}  // namespace rw
