#pragma once

#include "rw/reactors/shared/content_gate.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::runtime_rollout {

using wall_time = std::chrono::system_clock::time_point;

/// A number of runtimes, absolute or as a share of all.
struct share {
  unsigned value = 0;
  bool percent = false;

  /// A share of `total`, rounded down, but not less than `least`; an absolute number as it is.
  std::size_t of(std::size_t total, std::size_t least) const noexcept;
  friend bool operator==(const share&, const share&) = default;
};
/// "5" or "10%". None for anything else, and beyond 100 %.
std::optional<share> parse_share(std::string_view text);

struct limits {
  share canaries = {1, true};  ///< at least 2, where it is a percentage; 0: none
  /// By runtime_facts::selected; the number counts only while none of these responds.
  bool canaries_by_label = false;
  share max_unavailable = {10, true};  ///< at least 1
  share failure_budget = {2, true};    ///< at least 2, where it is a percentage; 0: none
  /// Time after which a runtime that is not ready, or has not taken the content, counts as failed,
  /// and one that does not respond no longer counts.
  std::chrono::seconds silence = std::chrono::minutes(5);
  std::chrono::milliseconds soak = std::chrono::seconds(10);  ///< required readiness of canaries
};

using health = content_health;

/// One runtime that takes part.
struct runtime_facts {
  std::string wanted = {};     ///< revision of the content to be rolled out; empty: not known yet
  std::string completed = {};  ///< of the content that was rolled out completely last
  std::string in_place = {};   ///< revision it has; empty: none
  health is = health::unreachable;
  wall_time since = {};           ///< of the health, or of the revision in place if that is later
  wall_time reported_since = {};  ///< the same as it was reported, which may be in the future
  wall_time observed = wall_time::max();   ///< last time that its health was read
  bool selected = false;                   ///< by the canaries' label
  bool ahead = false;                      ///< another writer has applied the content
  bool rejected = false;                   ///< it does not take the content
  std::string error = {};                  ///< of one that failed, for people
  std::optional<wall_time> admitted = {};  ///< to the content that `state` names

  bool updated() const noexcept { return !wanted.empty() && in_place == wanted; }
  /// What it has was never rolled out completely.
  bool left_over() const noexcept { return !in_place.empty() && in_place != completed; }
};
using runtimes = std::map<std::string, runtime_facts>;  ///< by name

enum class phase : std::uint8_t { canary, waves, paused, completed };
std::string_view to_string(phase of) noexcept;
std::optional<phase> parse_phase(std::string_view text) noexcept;

/// A roll-out of the past, or the present one, for people and for scripts.
struct record {
  std::string content = {};  ///< digest
  std::string began = {};    ///< time (RFC 3339)
  std::string ended = {};    ///< when all runtimes had it, or a later content came; empty: not yet
  std::string outcome = {};  ///< Superseded, or its phase
  std::vector<content_source> sources = {};
  bool kept = false;  ///< its content is kept, so that it can be pinned

  friend bool operator==(const record&, const record&) = default;
};
inline constexpr std::size_t most_records = 10;

/// What has to survive a restart; all else follows from the runtimes' own statuses.
struct state {
  std::string content = {};    ///< digest
  std::string completed = {};  ///< of the last one before it that was rolled out completely
  phase at = phase::canary;
  std::string reason = {};              ///< why it is paused; CamelCase
  std::set<std::string> canaries = {};  ///< chosen by number
  std::size_t accepted = 0;             ///< failures at the last resume by hand
  std::string resumed = {};             ///< spec.resume that was acted upon last
  std::size_t ahead = 0;  ///< runtimes to which another writer has applied the content
  std::vector<content_source> sources = {};  ///< of the content
  std::vector<record> history = {};          ///< the last ones, the present one at the end

  /// Paused by failures, until it is resumed by hand or superseded.
  bool stopped() const noexcept { return at == phase::paused && reason != by_hand; }
  const std::string& last_completed() const { return at == phase::completed ? content : completed; }

  static constexpr std::string_view by_hand = "ByHand";
  friend bool operator==(const state&, const state&) = default;
};

struct rollout_request {
  std::string content = {};
  bool at_once = false;  ///< no canaries and no waves
  bool paused = false;
  std::string resume = {};  ///< another value resumes once
  std::vector<content_source> sources = {};
};

struct counts {
  std::size_t total = 0;
  std::size_t updated = 0;   ///< with the content in place
  std::size_t ready = 0;     ///< of these, those that run with it
  std::size_t updating = 0;  ///< admitted, and not ready yet
  std::size_t failed = 0;    ///< with the content, or by it
  std::size_t waiting = 0;   ///< for their turn
  std::size_t aside = 0;     ///< unreachable, or failing before: not waited for
};
/// By the names that the status and the metrics have for them.
inline constexpr std::array<std::pair<std::string_view, std::size_t counts::*>, 7> count_names{
    {{"total", &counts::total},
     {"updated", &counts::updated},
     {"ready", &counts::ready},
     {"updating", &counts::updating},
     {"failed", &counts::failed},
     {"waiting", &counts::waiting},
     {"aside", &counts::aside}}};

/// In a status: the phase, or Partial where it is completed and some runtimes lack the content.
std::string_view phase_text(const state& next, const counts& now) noexcept;

struct decision {
  state next = {};
  counts now = {};
  std::set<std::string> admitted = {};    ///< runtimes that may take, or keep, the content
  std::set<std::string> to_inspect = {};  ///< canaries whose health must be read before they pass
  std::string message = {};               ///< for people
  std::string not_stored = {};  ///< why the content can't be kept as rolled out; empty: it can
  std::optional<wall_time> recheck_at = {};
};

/// The one decision on a roll-out. Pure.
///
///   - Canaries take the content first: all at once if chosen by number. When all of them have been
///     ready for `soak`, and were so at its end, the others follow, ready ones first, as many as
///     `max_unavailable` allows to be updating or failed since the last resume by hand; at least
///     one at a time.
///   - A canary that fails, or more failures than the budget, pause the roll-out, until `resume`
///     has another value or the content is superseded. Runtimes with the content keep it.
///   - Runtimes that do not respond, and those that fail, or are not ready for `silence`, with the
///     completed content, are set aside: they get the content when the roll-out is completed, that
///     is when all others have it. Ready ones without the content that appear later take it by
///     `max_unavailable`. One that stops responding after it was admitted counts as updating for
///     `silence` at most, and is no failure. Canaries by number are replaced by others.
///   - Runtimes to which another writer has applied the content, or a part of it, are admitted,
///     also in a pause: whole it does less harm than half.
///   - Runtimes failing with a superseded content are the first after the canaries.
decision decide(const state& before, const rollout_request& of, const runtimes& all,
                const limits& with, wall_time now);

}  // namespace rw::runtime_rollout
