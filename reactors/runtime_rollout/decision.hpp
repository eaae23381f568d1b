#pragma once

#include "rw/reactors/runtime_rollout/steps.hpp"
#include "rw/reactors/shared/content_gate.hpp"

#include <boost/container/flat_set.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::runtime_rollout {

using wall_time = std::chrono::system_clock::time_point;

struct limits {
  /// In their order; who belongs to none follows last. Those of the first are the canaries. None:
  /// there are no canaries.
  std::vector<step> steps = {step()};
  bool canaries_at_once = true;        ///< `max_unavailable` does not hold for the first step
  share max_unavailable = {10, true};  ///< that are not ready, whatever they have; at least 1
  share failure_budget = {2, true};    ///< at least 2, where it is a percentage; 0: none
  /// Time after which a runtime that is not ready, or has not taken the content, counts as failed,
  /// and one that does not respond no longer counts.
  std::chrono::seconds silence = std::chrono::minutes(5);
};

using health = content_health;

/// One runtime that takes part.
struct participant {
  std::string wanted = {};     ///< revision of the content to be rolled out; empty: not known yet
  std::string completed = {};  ///< of the content that was rolled out completely last
  std::string in_place = {};   ///< revision it has; empty: none
  health is = health::unreachable;
  wall_time since = {};           ///< of the health, or of the revision in place if that is later
  wall_time reported_since = {};  ///< the same as it was reported, which may be in the future
  wall_time observed = wall_time::max();  ///< last time that its health was read
  std::string uid = {};
  std::uint32_t position = 0;                ///< of its uid (steps.hpp)
  std::optional<std::size_t> labelled = {};  ///< the first step that has its labels
  bool ahead = false;                        ///< another writer has applied the content
  bool rejected = false;                     ///< it does not take the content, or its repair
  std::string error = {};                    ///< of one that failed, for people
  std::optional<wall_time> admitted = {};    ///< to the content that `state` names

  bool updated() const noexcept { return !wanted.empty() && in_place == wanted; }
  /// It may take the content, or keep it.
  bool has_turn() const noexcept { return updated() || admitted; }
  /// It had the content as a whole: something was changed since, and the repair is refused. That
  /// tells nothing of the content, but until it is repaired the roll-out is not on all runtimes.
  bool damaged() const noexcept { return updated() && rejected; }
  /// What it has was never rolled out completely.
  bool left_over() const noexcept { return !in_place.empty() && in_place != completed; }

  friend bool operator==(const participant&, const participant&) = default;
};
using participants = std::map<std::string, participant>;  ///< by name
/// A decision may name all of thousands of runtimes, in their order.
using name_set = boost::container::flat_set<std::string>;

enum class phase : std::uint8_t { canary, waves, paused, completed };
std::string_view to_string(phase of) noexcept;
std::optional<phase> parse_phase(std::string_view text) noexcept;

/// A roll-out of the past, or the present one, for people and for scripts.
struct rollout_record {
  std::string content = {};  ///< digest
  std::string began = {};    ///< time (RFC 3339)
  std::string ended = {};    ///< when all runtimes had it, or a later content came; empty: not yet
  std::string outcome = {};  ///< Superseded, or its phase
  std::vector<content_source> sources = {};
  bool kept = false;     ///< its content is kept, so that it can be pinned
  int wire_version = 0;  ///< of its program (wire_version.hpp); 0: it has none

  friend bool operator==(const rollout_record&, const rollout_record&) = default;
};
inline constexpr std::size_t most_records = 10;

/// What has to survive a restart; all else follows from the runtimes' own statuses.
struct state {
  std::string content = {};    ///< digest
  std::string completed = {};  ///< of the last one before it that was rolled out completely
  phase at = phase::canary;
  std::string reason = {};  ///< why it is paused; CamelCase
  std::vector<placed_step> steps = {};
  std::size_t step = 0;           ///< steps that have ended
  bool bake_ended = false;        ///< by hand, of the present one
  std::string promoted = {};      ///< spec.promote that was acted upon last
  std::string verification = {};  ///< of the last step that was verified, for people
  /// When the runtimes of the present step had the content; none: not yet, or it is the first.
  std::optional<wall_time> settled = {};
  std::size_t accepted = 0;  ///< failures at the last resume by hand
  std::string resumed = {};  ///< spec.resume that was acted upon last
  std::size_t ahead = 0;     ///< runtimes to which another writer has applied the content
  std::vector<content_source> sources = {};  ///< of the content
  std::vector<rollout_record> history = {};  ///< the last ones, the present one at the end

  /// Paused by failures, until it is resumed by hand or superseded.
  bool stopped() const noexcept {
    return at == phase::paused && reason != by_hand && reason != no_prometheus;
  }
  const std::string& last_completed() const { return at == phase::completed ? content : completed; }

  void end_step() {
    ++step;
    bake_ended = false;
    settled.reset();
  }

  static constexpr std::string_view by_hand = "ByHand";
  static constexpr std::string_view no_prometheus = "PrometheusNotConfigured";
  static constexpr std::string_view not_verified = "VerificationFailed";
  friend bool operator==(const state&, const state&) = default;
};

struct verification_result {
  std::size_t step = 0;
  bool passed = false;
  std::string text = {};  ///< for people
};

struct rollout_request {
  std::string content = {};
  bool at_once = false;  ///< no canaries and no waves
  bool paused = false;
  std::string resume = {};  ///< another value resumes once
  int wire_version = 0;     ///< of the content; 0: none
  std::vector<content_source> sources = {};
  std::string promote = {};  ///< another value ends the bake of the present step
  bool can_verify = true;    ///< a Prometheus is configured
  std::optional<verification_result> verified = {};
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

struct rollout_decision {
  state next = {};
  counts now = {};
  name_set admitted = {};    ///< runtimes that may take, or keep, the content
  name_set to_inspect = {};  ///< whose health must be read before their step ends
  /// It is completed, and runtimes that respond and lack the content get it now. Unreachable ones
  /// are set aside: they would get it, too, but the roll-out does not wait for them.
  bool catches_up = false;
  std::string message = {};     ///< for people
  std::string not_stored = {};  ///< why the content can't be kept as rolled out; empty: it can
  std::optional<std::size_t> to_verify = {};  ///< step whose result `decide` needs to go on
  std::optional<wall_time> recheck_at = {};
};

/// The one decision on a roll-out. Pure.
///
///   - Runtimes take the content step by step, and within a step by their positions. Those that are
///     not ready with a superseded content come first, after the canaries, all at once and of all
///     steps. Then ready ones, as many as `max_unavailable` allows beside all that are not ready,
///     whichever content they have, and those that failed since the last resume by hand; at least
///     one at a time. The first step all at once if `canaries_at_once`.
///   - The first step ends when all of its runtimes, the canaries, have been ready for its bake,
///     and were so at its end; it begins again, without a bake, while one of them is not ready.
///     Another step ends when, once, all runtimes until it were ready or had failed, its bake has
///     passed since then, and they have been read again; those that restart meanwhile are not
///     waited for. `promote` ends a bake. What the step verifies is verified after that.
///   - A canary by number that responds again after another took its place waits with the others.
///   - A canary that fails, more failures than the budget, or a failed verification pause the
///     roll-out, until `resume` has another value (the step that was not verified has ended then)
///     or the content is superseded. Runtimes with the content keep it.
///   - Other steps begin from the first one.
///   - Runtimes that do not respond, and those that fail, or are not ready for `silence`, with the
///     completed content, are set aside: they get the content when the roll-out is completed, that
///     is when all others have it. Ready ones without the content that appear later take it by
///     `max_unavailable`. One that stops responding after it was admitted counts as updating for
///     `silence` at most, and is no failure. By number others take its place in a step.
///   - A completed roll-out catches up while runtimes that respond get the content, each for
///     `silence` at most. One that does not respond is set aside again at once.
///   - Runtimes to which another writer has applied the content, or a part of it, are admitted,
///     also in a pause: whole it does less harm than half.
rollout_decision decide(const state& before, const rollout_request& of, const participants& all,
                        const limits& with, wall_time now);

}  // namespace rw::runtime_rollout
