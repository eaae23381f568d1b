#pragma once

#include "rw/reactors/shared/runtime_state.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// How one runtime is.
enum class runtime_condition : std::uint8_t {
  well,
  ill,
  under_way,  ///< what it lacks comes by itself where all is well: its pods start
  unknown,    ///< nobody has looked at it yet
  /// It may lack anything: its Kyma is deleted, and no removal has failed, or this manager leaves
  /// it alone.
  left_out,
};
inline constexpr std::size_t runtime_condition_count = 5;
/// "well", "ill", "underWay", "unknown", "leftOut".
std::string_view to_string(runtime_condition of) noexcept;
inline std::ostream& operator<<(std::ostream& out, runtime_condition of) {
  return out << to_string(of);
}

/// What is known of one runtime.
struct runtime_observation {
  bool is_left_out = false;
  std::optional<runtime_state> installation = {};    ///< nothing: not looked at
  status_reason reason = status_reason::none;        ///< of the installation
  std::chrono::system_clock::time_point since = {};  ///< likewise
  std::optional<liveness> heartbeats = {};           ///< nothing: none are expected
  status_reason heartbeat_reason = status_reason::none;
  std::string waits_for = {};  ///< the operator that does not accept its events, if it is named
};

/// A runtime as it is judged.
struct judged_runtime {
  std::string kyma = {};
  runtime_condition condition = runtime_condition::unknown;
  status_reason reason = status_reason::none;  ///< none if it is not ill
  std::string waits_for = {};  ///< the operator that does not accept its events, if it is named
};

/// Judges one runtime. What comes by itself has ten minutes to do so.
judged_runtime judge(std::string kyma, const runtime_observation& of,
                     std::chrono::system_clock::time_point now);

/// A fault of the landscape as a whole, rather than of single runtimes.
struct fleet_fault {
  std::string reason = {};   ///< the word of `status` for it
  std::string message = {};  ///< a sentence
  std::string next = {};     ///< what to do
};
/// Of a RuntimeRollout that stands still until a person acts: it is paused, or `Stalled`; nothing:
/// it does not.
std::optional<fleet_fault> fault_of_rollout(const boost::json::value& rollout);

/// How all runtimes of a landscape are.
enum class fleet_level : std::uint8_t {
  well,      ///< at most 1 % are ill
  degraded,  ///< more are, or the landscape has a fault
  /// More than 5 % are ill, and more than one, or all; without those that lack nothing but an
  /// operator that accepts their events.
  outage,
  unknown,  ///< nobody can tell
};
inline constexpr std::size_t fleet_level_count = 4;
std::string_view to_string(fleet_level of) noexcept;
inline std::ostream& operator<<(std::ostream& out, fleet_level of) {
  return out << to_string(of);
}

/// One reason for which runtimes are ill, and one operator if it is that one's, or a fault of the
/// landscape.
struct fleet_cause {
  std::string reason = {};
  std::size_t count = 0;                   ///< of runtimes; 0: it is of the landscape
  std::vector<std::string> runtimes = {};  ///< the first of them, by name
  std::string message = {};                ///< of a fault of the landscape or of an operator
  std::string next = {};                   ///< what to do
};

/// Formats the first few names of runtimes, of which there are `all`: "a, b, ...".
std::string first_of(const std::vector<std::string>& names, std::size_t all);

/// The one verdict on a landscape: whoever says whether all is well says this.
struct fleet_verdict {
  fleet_level level = fleet_level::unknown;
  /// One line that begins with the level: "outage: 15 of 20 runtimes are ill (75 %)". Where all is
  /// well but for a few it names the first of these.
  std::string message = {};
  std::array<std::size_t, runtime_condition_count> counts{};  ///< by runtime_condition
  /// Those of most runtimes first, then the landscape's; at most `max_causes` of each.
  std::vector<fleet_cause> causes = {};
  static constexpr std::size_t max_causes = 5;

  std::size_t count(runtime_condition of) const noexcept {
    return counts[static_cast<std::size_t>(of)];
  }
  /// Number of runtimes that are expected to be well, all but those `left_out`: the denominator of
  /// every count of the ill ones, in `status`, `doctor`, on the page and in metrics.
  std::size_t expected() const noexcept;
  /// The part of `expected` in a condition, 0 to 1.
  double share(runtime_condition of) const noexcept;
  /// What to do about a reason of runtimes, as `causes` say it: about the runtimes themselves as
  /// long as most are without it.
  std::string_view next_step_of(status_reason reason) const noexcept;
};

/// Decides, purely, how a landscape is: the leader for its page, `/runtimes` and metrics, of what
/// its reactors know; `doctor` of what it has found itself.
fleet_verdict judge_fleet(std::span<const judged_runtime> runtimes,
                          std::span<const fleet_fault> faults);

/// "unknown: no leader", and why nobody else can tell.
fleet_verdict no_leader(std::string_view reason);

/// An older verdict says nothing: its leader hangs, or is gone.
inline constexpr std::chrono::seconds verdict_expiry(60);

/// The JSON of `/runtimes` and the page. `age`: since the verdict was made.
boost::json::object json_of(const fleet_verdict& of, std::chrono::system_clock::duration age);
/// Reads it from a response of a manager; `no_leader` if it is absent or too old.
fleet_verdict read_verdict(const boost::json::value& response);

/// Formats it for people: the message, and a line for each cause with what to do.
std::string text_of(const fleet_verdict& of);

/// What to do about a reason of runtimes; a sentence.
std::string_view next_step(status_reason of) noexcept;
/// Likewise where most runtimes are without it, so that what all share is in order.
std::string_view next_step_of_few(status_reason of) noexcept;

}  // namespace rw
