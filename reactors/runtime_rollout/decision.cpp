#include "rw/reactors/runtime_rollout/decision.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/explanations.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace rw::runtime_rollout {
namespace {

constexpr std::array<std::string_view, 4> phase_names = {"Canary"_reason, "Waves"_reason,
                                                         "Paused"_reason, "Completed"_reason};
static_assert(find_entry(state::by_hand) && find_entry(state::no_prometheus) &&
              find_entry(state::not_verified));

enum class standing : std::uint8_t { waiting, aside, updating, ready, failed, lost };

constexpr std::array counted_as = {&counts::waiting, &counts::aside,  &counts::updating,
                                   &counts::ready,   &counts::failed, &counts::aside};

constexpr auto inspection = std::chrono::seconds(10);

/// A runtime, and what the decision finds about it.
struct candidate {
  const std::string& name;
  const participant& facts;
  standing is = standing::waiting;
  std::size_t step = 0;
  bool canary = false;  ///< one that answers
  bool admitted = false;

  bool answers() const noexcept {
    return facts.is != health::unreachable || is == standing::updating;
  }
};

/// One call of `decide`.
class planner {
 public:
  planner(const state& before, const rollout_request& of, const participants& all,
          const limits& with, wall_time now)
      : of_(of), with_(with), now_(now) {
    all_.reserve(all.size());
    for (const auto& [name, facts] : all) all_.push_back({.name = name, .facts = facts});
    out_.next = before;
    known_ = before.content == of.content;
    if (known_) return;
    out_.next = {.content = of.content,
                 .completed = before.last_completed(),
                 .promoted = of.promote,
                 .resumed = of.resume,
                 .history = before.history};
  }

  rollout_decision run() {
    classify();
    if (all_.empty()) {
      out_.message = "no runtime takes part";
      record_progress();
      return std::move(out_);
    }
    place();
    promote();
    inspect_canaries();
    stop_or_resume();
    end_steps();
    set_phase();
    admit();
    const auto admitted = std::ranges::count(all_, true, &candidate::admitted);
    out_.admitted.reserve(static_cast<std::size_t>(admitted));
    for (const auto& each : all_) {
      if (each.admitted) out_.admitted.emplace_hint(out_.admitted.end(), each.name);
    }
    out_.catches_up = out_.next.at == phase::completed && std::ranges::any_of(all_, catches_up);
    describe();
    record_progress();
    return std::move(out_);
  }

 private:
  /// Where no completed content is known, only the new content is on trial.
  static bool is_proven(const participant& of) {
    return !of.left_over() || (!of.updated() && of.completed.empty());
  }

  standing standing_of(const participant& of) {
    const bool admitted = known_ && of.admitted;
    // A completed roll-out does not wait for it: it gets the content when it responds.
    const bool completed = known_ && out_.next.at == phase::completed;
    if (completed && of.is == health::unreachable && !of.updated()) return standing::aside;
    const bool proven = is_proven(of);
    const auto ill_from = of.since + with_.silence;
    const bool not_ready = of.is == health::progressing && !of.in_place.empty() && proven;
    const bool ill = (of.is == health::failed && proven) || (not_ready && now_ >= ill_from);
    if (ill && (of.updated() || !admitted)) return standing::aside;
    if (!of.updated() && !admitted) {
      if (not_ready) recheck_at(ill_from);
      return of.is == health::unreachable ? standing::aside : standing::waiting;
    }
    if (of.updated() && of.is == health::ready) return standing::ready;
    const bool fails = of.updated() ? of.is == health::failed : of.rejected;
    if (fails && of.is != health::unreachable) return standing::failed;
    // One that was away when the roll-out was completed has its time from when it responds.
    const auto from = of.updated() ? of.since
                      : completed  ? std::max(of.since, *of.admitted)
                                   : *of.admitted;
    const auto until = from + with_.silence;
    if (now_ < until) {
      recheck_at(until);
      return standing::updating;
    }
    return of.is == health::unreachable ? standing::lost : standing::failed;
  }

  void classify() {
    auto& now = out_.now;
    for (auto& each : all_) {
      const auto& facts = each.facts;
      each.is = standing_of(facts);
      ++now.total;
      now.updated += facts.updated() && !facts.damaged() ? 1 : 0;
      const auto as = facts.damaged() && each.is == standing::ready ? standing::aside : each.is;
      ++(now.*counted_as[static_cast<std::size_t>(as)]);
    }
  }

  /// Its health will tell something of the content. One that waits and is not ready may be about to
  /// be set aside.
  static bool proves(const candidate& of) {
    if (of.is == standing::aside || of.is == standing::lost || !of.answers()) return false;
    return of.is != standing::waiting || of.facts.is != health::progressing ||
           of.facts.in_place.empty() || !is_proven(of.facts);
  }

  /// Which runtimes belong to which step, and their order.
  void place() {
    auto& next = out_.next;
    const bool completed = next.at == phase::completed;
    if (!std::ranges::equal(next.steps, with_.steps, {}, &placed_step::of) || completed) {
      next.steps.clear();
      for (const auto& each : with_.steps) next.steps.push_back({each});
      if (!completed) next.step = 0;
      if (!completed) next.settled.reset();
    }
    if (completed) next.step = next.steps.size();
    std::vector<member> members;
    members.reserve(all_.size());
    for (const auto& each : all_) {
      members.push_back({each.facts.position, each.facts.labelled, each.answers(), proves(each)});
    }
    raise(next.steps, members);
    order_.reserve(all_.size());
    for (std::size_t i = 0; i < all_.size(); ++i) {
      all_[i].step = step_of(next.steps, members[i]);
      order_.push_back(&all_[i]);
    }
    std::ranges::sort(order_, {}, [](const candidate* each) {
      return std::pair(each->facts.position, each);  // they are in the order of their names
    });
    for (const bool proving : {true, false}) {
      find_canaries(proving);
      if (canaries_ > 0) break;
    }
  }

  /// By number those that have begun with the content come first: one that they replaced waits.
  void find_canaries(bool proving) {
    if (out_.next.steps.empty()) return;
    const auto most = canary_count(share{100, true});
    for (const bool begun : {true, false}) {
      for (auto* each : order_) {
        if (each->step != 0 || !each->answers()) continue;
        if (proves(*each) != proving || has_begun(*each) != begun) continue;
        if (!begun && canaries_ >= most) continue;
        each->canary = true;
        ++canaries_;
      }
    }
  }

  /// How many runtimes the first step asks for by number, or this share, where labels choose them.
  std::size_t canary_count(share labelled) const {
    const auto number = parse_share(with_.steps[0].runtimes).value_or(labelled);
    return std::min(number.of(all_.size(), 2), all_.size());
  }

  static bool has_begun(const candidate& of) {
    const bool admitted = of.is != standing::waiting && of.is != standing::aside;
    return admitted || of.facts.updated();
  }

  void promote() {
    auto& next = out_.next;
    if (of_.promote != next.promoted && next.step < next.steps.size()) next.bake_ended = true;
    next.promoted = of_.promote;
  }

  /// Returns true if the runtime was ready at `until`, and has been read since.
  bool was_ready(const candidate& of, wall_time until) {
    if (now_ < until) {
      recheck_at(until);
      return false;
    }
    if (of.facts.observed >= until) return true;
    out_.to_inspect.emplace_hint(out_.to_inspect.end(), of.name);
    recheck_at(now_ + inspection);
    return false;
  }

  void inspect_canaries() {
    const auto& next = out_.next;
    canaries_wait_ = canaries_ == 0 && !next.steps.empty();
    for (const auto& each : all_) {
      if (!each.canary) continue;
      // One that fails with a completed content does not prove that content wrong.
      if (each.is == standing::aside && each.facts.updated()) continue;
      if (each.is == standing::failed) {
        ++failed_canaries_;
      } else if (each.is != standing::ready) {
        canaries_wait_ = true;
      } else if (next.step == 0 && !next.bake_ended) {
        const bool was = was_ready(each, each.facts.since + with_.steps[0].bake);
        if (!was) canaries_wait_ = true;
      }
    }
  }

  /// Whether the present step's runtimes have had the content for its bake.
  bool has_baked() {
    auto& next = out_.next;
    if (canaries_wait_ || next.step == 0) return !canaries_wait_;
    const bool all = std::ranges::none_of(all_, [&](const candidate& each) {
      const bool waits = each.is == standing::waiting || each.is == standing::updating;
      return each.step <= next.step && waits;
    });
    const auto now = std::chrono::ceil<std::chrono::seconds>(now_);  // as the status has it
    if (all && !next.settled) next.settled = now;
    if (!next.settled) return false;
    next.settled = std::min<wall_time>(*next.settled, now);
    const auto bake = with_.steps[next.step].bake;
    if (next.bake_ended || bake.count() == 0) return true;
    const auto until = *next.settled + bake;
    bool done = now_ >= until;
    if (!done) recheck_at(until);
    for (const auto& each : all_) {
      if (now_ < until || each.step > next.step || each.is != standing::ready) continue;
      const bool was = was_ready(each, until);
      done = done && was;
    }
    return done;
  }

  void end_steps() {
    auto& next = out_.next;
    const bool stands = of_.paused || of_.at_once || !can_verify();
    if (next.at == phase::completed || next.stopped() || stands) return;
    while (next.step < next.steps.size() && has_baked()) {
      if (with_.steps[next.step].verify) {
        if (!of_.verified || of_.verified->step != next.step) {
          out_.to_verify = next.step;
          return;
        }
        next.verification = of_.verified->text;
        if (!of_.verified->passed) {
          next.at = phase::paused;
          next.reason = state::not_verified;
          return;
        }
      }
      next.end_step();
    }
  }

  bool can_verify() const {
    const auto& all = with_.steps;
    const auto from = static_cast<std::ptrdiff_t>(out_.next.step);
    return of_.can_verify || std::none_of(all.begin() + from, all.end(),
                                          [](const step& each) { return each.verify.has_value(); });
  }

  void stop_or_resume() {
    auto& next = out_.next;
    const bool resume = of_.resume != next.resumed;
    next.resumed = of_.resume;
    if (next.at == phase::completed) return;
    if (next.stopped()) {
      if (!resume) return;
      next.accepted = out_.now.failed;
      if (next.reason == state::not_verified) next.end_step();
    }
    next.at = phase::canary;
    next.reason.clear();
    const auto budget = with_.failure_budget.of(out_.now.total, 2);
    const bool by_canaries = failed_canaries_ > next.accepted;
    if (!by_canaries && out_.now.failed <= next.accepted + budget) return;
    next.at = phase::paused;
    next.reason = by_canaries ? "CanaryFailed"_reason : "FailureBudgetExhausted"_reason;
  }

  void set_phase() {
    auto& next = out_.next;
    if (next.at == phase::completed || next.stopped()) return;
    if (of_.paused) {
      next.at = phase::paused;
      next.reason = state::by_hand;
    } else if (!of_.at_once && !can_verify()) {
      next.at = phase::paused;
      next.reason = state::no_prometheus;
    } else if (!of_.at_once && (canaries_wait_ || (next.step == 0 && !next.steps.empty()))) {
      next.at = phase::canary;
    } else {
      const bool ended = of_.at_once || next.step == next.steps.size();
      const bool done = ended && out_.now.waiting + out_.now.updating == 0;
      next.at = done ? phase::completed : phase::waves;
      if (done) next.step = next.steps.size();
    }
  }

  void admit() {
    const auto& next = out_.next;
    const bool all = of_.at_once && !of_.paused;
    const bool completed = next.at == phase::completed;
    const bool paused = next.at == phase::paused;
    for (auto& each : all_) {
      const auto& facts = each.facts;
      const bool begun = each.is == standing::waiting ? completed && facts.in_place.empty()
                                                      : completed || each.is != standing::aside;
      each.admitted = all || facts.updated() || facts.ahead || (!paused && begun);
    }
    if (all || paused) return;
    auto allowed = std::max(with_.max_unavailable.of(all_.size(), 1), std::size_t{1});
    const bool all_canaries = next.at == phase::canary && with_.canaries_at_once;
    if (all_canaries) allowed = std::max(allowed, canary_count(share{1, true}));
    // Failed ones occupy capacity, but not all of it: otherwise one could block the roll-out.
    const auto failed = out_.now.failed - std::min(out_.now.failed, next.accepted);
    allowed = std::max(allowed - std::min(allowed, failed), std::size_t{1});
    auto unavailable = out_.now.updating;
    if (!all_canaries)
      unavailable += static_cast<std::size_t>(std::ranges::count_if(all_, is_down));
    // At least one proceeds.
    const auto proceed = [&, begun = out_.now.updating > 0](bool more) {
      if (!begun && !more) allowed = std::max(allowed, unavailable + 1);
    };
    const auto present = next.at == phase::canary ? 0 : next.step;
    const auto may_come = [&](const candidate& each) {
      return !each.admitted && (each.step <= present || completed);
    };
    const auto add = [&](const auto& is_one) {
      for (auto* each : order_) {
        if (unavailable >= allowed) return;
        if (!may_come(*each) || !is_one(*each)) continue;
        each->admitted = true;
        unavailable += is_down(*each) ? 0 : 1;
      }
    };
    const auto waits = [](const candidate& each) { return each.is == standing::waiting; };
    if (next.at == phase::canary) proceed(false);
    add([](const candidate& each) { return each.canary; });
    if (next.at != phase::waves && !completed) return;
    // Those that the content may mend are down anyway, of whichever step they are.
    bool mends = false;
    for (auto* each : order_) {
      if (each->admitted || !is_down(*each) || is_proven(each->facts)) continue;
      each->admitted = true;
      mends = true;
    }
    proceed(mends);
    add([&](const candidate& each) { return waits(each) && each.facts.is == health::ready; });
    add(waits);
  }

  /// It is not ready with what it has, and was not admitted yet.
  static bool is_down(const candidate& of) {
    const bool is_ready = of.facts.is == health::ready || of.facts.is == health::unreachable;
    return of.is == standing::waiting && !is_ready && !of.facts.in_place.empty();
  }

  /// It responds, lacks the content and has not failed to take it.
  static bool catches_up(const candidate& of) {
    return !of.facts.updated() && of.facts.is != health::unreachable && of.is != standing::failed;
  }

  void describe() {
    std::size_t named = 0;
    for (const auto& each : all_) {
      if ((each.is != standing::failed && !each.facts.damaged()) || ++named > 3) continue;
      const auto& error = each.facts.error;
      out_.message += (named == 1 ? "" : "; ") + each.name + ": " +
                      (error.empty() ? std::string("not ready in time") : error);
    }
    const auto& next = out_.next;
    if (next.at == phase::canary && canaries_ == 0) {
      out_.message = "no runtime that takes part answers";
    }
    if (next.at != phase::paused) return;
    if (next.reason == state::not_verified) out_.message = next.verification;
    if (next.reason == state::no_prometheus) {
      out_.message = "a step verifies, and the manager has no --rollout-prometheus";
    }
  }

  void record_progress() {
    auto& next = out_.next;
    auto& all = next.history;
    next.sources = of_.sources;
    const auto now = k8s::format_time(now_);
    if (all.empty() || !known_) {
      if (!all.empty() && all.back().ended.empty()) {
        all.back().ended = now;
        all.back().outcome = "Superseded"_reason;
      }
      // A source with newer content, while this one is pinned, stays as it was read.
      const auto former =
          std::ranges::find(all.rbegin(), all.rend(), next.content, &rollout_record::content);
      auto sources = former == all.rend() ? std::vector<content_source>() : former->sources;
      if (all.size() >= most_records) all.erase(all.begin());
      all.push_back({.content = next.content, .began = now, .sources = std::move(sources)});
    }
    auto& present = all.back();
    for (const auto& each : of_.sources) {
      const auto is_same = [&](const content_source& known) {
        return known.kind == each.kind && known.name == each.name;
      };
      const auto known = std::ranges::find_if(present.sources, is_same);
      if (known != present.sources.end()) {
        *known = each;
      } else {
        present.sources.push_back(each);
      }
    }
    present.wire_version = of_.wire_version;
    present.outcome = phase_text(next, out_.now);
    if (next.at != phase::completed) present.ended.clear();
    if (next.at == phase::completed && present.ended.empty()) present.ended = now;
  }

  void recheck_at(wall_time when) {
    if (!out_.recheck_at || when < *out_.recheck_at) out_.recheck_at = when;
  }

  const rollout_request& of_;
  const limits& with_;
  const wall_time now_;
  bool known_ = false;  ///< the facts are about this content
  rollout_decision out_;
  std::vector<candidate> all_;     ///< by name
  std::vector<candidate*> order_;  ///< by position
  std::size_t canaries_ = 0;       ///< that answer
  std::size_t failed_canaries_ = 0;
  bool canaries_wait_ = false;  ///< one of them is not ready yet
};

}  // namespace

std::string_view to_string(phase of) noexcept {
  return phase_names[static_cast<std::size_t>(of)];
}

std::optional<phase> parse_phase(std::string_view text) noexcept {
  const auto at = std::ranges::find(phase_names, text);
  if (at == phase_names.end()) return std::nullopt;
  return static_cast<phase>(at - phase_names.begin());
}

std::string_view phase_text(const state& next, const counts& now) noexcept {
  const bool partial = next.at == phase::completed && now.updated < now.total;
  return partial ? "Partial" : to_string(next.at);
}

rollout_decision decide(const state& before, const rollout_request& of, const participants& all,
                        const limits& with, wall_time now) {
  return planner(before, of, all, with, now).run();
}

}  // namespace rw::runtime_rollout
