#include "rw/reactors/runtime_rollout/decision.hpp"

#include "rw/k8s/objects/types.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace rw::runtime_rollout {
namespace {

constexpr std::array<std::string_view, 4> phase_names = {"Canary", "Waves", "Paused", "Completed"};

enum class standing : std::uint8_t { waiting, aside, updating, ready, failed, lost };

constexpr std::array counted_as = {&counts::waiting, &counts::aside,  &counts::updating,
                                   &counts::ready,   &counts::failed, &counts::aside};

/// One call of `decide`.
class planner {
 public:
  planner(const state& before, const rollout_request& of, const runtimes& all, const limits& with,
          wall_time now)
      : of_(of), all_(all), with_(with), now_(now) {
    out_.next = before;
    known_ = before.content == of.content;
    if (known_) return;
    out_.next = {.content = of.content,
                 .completed = before.last_completed(),
                 .canaries = before.canaries,
                 .resumed = of.resume,
                 .history = before.history};
  }

  decision run() {
    classify();
    if (all_.empty()) {
      out_.message = "no runtime takes part";
      record_progress();
      return std::move(out_);
    }
    choose_canaries();
    inspect_canaries();
    stop_or_resume();
    set_phase();
    admit();
    describe();
    record_progress();
    return std::move(out_);
  }

 private:
  standing standing_of(const runtime_facts& of) {
    const bool admitted = known_ && of.admitted;
    // Where no completed content is known, only the new content is on trial.
    const bool proven = !of.left_over() || (!of.updated() && of.completed.empty());
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
    const auto until = (of.updated() ? of.since : *of.admitted) + with_.silence;
    if (now_ < until) {
      recheck_at(until);
      return standing::updating;
    }
    return of.is == health::unreachable ? standing::lost : standing::failed;
  }

  void classify() {
    auto& now = out_.now;
    for (const auto& [name, each] : all_) {
      const auto is = standing_of(each);
      standings_.emplace(name, is);
      ++now.total;
      now.updated += each.updated() ? 1 : 0;
      ++(now.*counted_as[static_cast<std::size_t>(is)]);
    }
  }

  bool answers(const std::string& name) const {
    return all_.at(name).is != health::unreachable || standings_.at(name) == standing::updating;
  }

  /// The chosen ones stay, so that no others are exposed; then those that have the content, then
  /// ready ones.
  void choose_canaries() {
    for (const auto& [name, each] : all_) {
      if (with_.canaries_by_label && each.selected && answers(name)) canaries_.insert(name);
    }
    if (!canaries_.empty()) {
      out_.next.canaries.clear();
      return;
    }
    const auto count = std::min(with_.canaries.of(all_.size(), 2), all_.size());
    const auto add = [&](const auto& is_one) {
      for (const auto& [name, each] : standings_) {
        if (canaries_.size() >= count) return;
        if (answers(name) && is_one(name, each)) canaries_.insert(name);
      }
    };
    add([&](const auto& name, auto) { return out_.next.canaries.contains(name); });
    add([](const auto&, auto is) { return is != standing::waiting && is != standing::aside; });
    add([&](const auto& name, auto is) { return is_ready_to_wait(name, is); });
    add([](const auto&, auto is) { return is == standing::waiting; });
    add([](const auto&, auto) { return true; });
    out_.next.canaries = canaries_;
  }

  bool is_ready_to_wait(const std::string& name, standing is) const {
    return is == standing::waiting && all_.at(name).is == health::ready;
  }

  void inspect_canaries() {
    for (const auto& name : canaries_) {
      const auto is = standings_.at(name);
      // One that fails with a completed content does not prove that content wrong.
      if (is == standing::aside && all_.at(name).updated()) continue;
      if (is == standing::failed) {
        ++failed_canaries_;
      } else if (is != standing::ready) {
        canaries_wait_ = true;
      } else if (const auto until = all_.at(name).since + with_.soak; now_ < until) {
        recheck_at(until);
        canaries_wait_ = true;
      } else if (all_.at(name).observed < until) {
        out_.to_inspect.insert(name);
        recheck_at(now_ + with_.soak);
        canaries_wait_ = true;
      }
    }
  }

  void stop_or_resume() {
    auto& next = out_.next;
    const bool resume = of_.resume != next.resumed;
    next.resumed = of_.resume;
    if (next.at == phase::completed) return;
    if (next.stopped()) {
      if (!resume) return;
      next.accepted = out_.now.failed;
    }
    next.at = phase::canary;
    next.reason.clear();
    const auto budget = with_.failure_budget.of(out_.now.total, 2);
    const bool by_canaries = failed_canaries_ > next.accepted;
    if (!by_canaries && out_.now.failed <= next.accepted + budget) return;
    next.at = phase::paused;
    next.reason = by_canaries ? "CanaryFailed" : "FailureBudgetExhausted";
  }

  void set_phase() {
    auto& next = out_.next;
    if (next.at == phase::completed || next.stopped()) return;
    const bool none = with_.canaries.of(all_.size(), 2) == 0;
    const bool canaries_done = (none || !canaries_.empty()) && !canaries_wait_;
    if (of_.paused) {
      next.at = phase::paused;
      next.reason = state::by_hand;
    } else if (!of_.at_once && !canaries_done) {
      next.at = phase::canary;
    } else {
      const bool done = out_.now.waiting + out_.now.updating == 0;
      next.at = done ? phase::completed : phase::waves;
    }
  }

  void admit() {
    const auto& next = out_.next;
    const bool all = of_.at_once && !of_.paused;
    const bool completed = next.at == phase::completed;
    const bool paused = next.at == phase::paused;
    for (const auto& [name, each] : all_) {
      const auto is = standings_.at(name);
      const bool begun = is == standing::waiting ? completed && each.in_place.empty()
                                                 : completed || is != standing::aside;
      if (all || each.updated() || each.ahead || (!paused && begun)) out_.admitted.insert(name);
    }
    if (all || paused) return;
    auto allowed = std::max(with_.max_unavailable.of(all_.size(), 1), std::size_t{1});
    if (next.at == phase::canary) allowed = std::max(allowed, next.canaries.size());
    // Failed ones occupy capacity, but not all of it: otherwise one could block the roll-out.
    const auto failed = out_.now.failed - std::min(out_.now.failed, next.accepted);
    allowed = std::max(allowed - std::min(allowed, failed), std::size_t{1});
    auto unavailable = out_.now.updating;
    const auto add = [&](const auto& is_one) {
      for (const auto& [name, is] : standings_) {
        if (unavailable >= allowed) return;
        if (is_one(name, is) && out_.admitted.insert(name).second) ++unavailable;
      }
    };
    add([&](const auto& name, auto) { return canaries_.contains(name); });
    if (next.at != phase::waves && !completed) return;
    add([&](const auto& name, auto is) {
      return is == standing::waiting && all_.at(name).is == health::failed;
    });
    add([&](const auto& name, auto is) { return is_ready_to_wait(name, is); });
    add([](const auto&, auto is) { return is == standing::waiting; });
  }

  void describe() {
    std::size_t named = 0;
    for (const auto& [name, is] : standings_) {
      if (is != standing::failed || ++named > 3) continue;
      const auto& error = all_.at(name).error;
      out_.message += (named == 1 ? "" : "; ") + name + ": " +
                      (error.empty() ? std::string("not ready in time") : error);
    }
    if (out_.next.at == phase::canary && canaries_.empty()) out_.message = "no runtime answers";
  }

  void record_progress() {
    auto& next = out_.next;
    auto& all = next.history;
    next.sources = of_.sources;
    const auto now = k8s::format_time(now_);
    if (all.empty() || !known_) {
      if (!all.empty() && all.back().ended.empty()) {
        all.back().ended = now;
        all.back().outcome = "Superseded";
      }
      if (all.size() >= most_records) all.erase(all.begin());
      all.push_back({.content = next.content, .began = now});
    }
    auto& present = all.back();
    present.sources = of_.sources;
    present.outcome = phase_text(next, out_.now);
    if (next.at != phase::completed) present.ended.clear();
    if (next.at == phase::completed && present.ended.empty()) present.ended = now;
  }

  void recheck_at(wall_time when) {
    if (!out_.recheck_at || when < *out_.recheck_at) out_.recheck_at = when;
  }

  const rollout_request& of_;
  const runtimes& all_;
  const limits& with_;
  const wall_time now_;
  bool known_ = false;  ///< the facts are about this content
  decision out_;
  std::map<std::string, standing> standings_;
  std::set<std::string> canaries_;  ///< that answer
  std::size_t failed_canaries_ = 0;
  bool canaries_wait_ = false;  ///< one of them is not ready yet
};

}  // namespace

std::size_t share::of(std::size_t total, std::size_t least) const noexcept {
  return percent ? std::max(total * value / 100, least) : value;
}

std::optional<share> parse_share(std::string_view text) {
  share out{.percent = text.ends_with('%')};
  if (out.percent) text.remove_suffix(1);
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out.value);
  if (error != std::errc() || at != end || (out.percent && out.value > 100)) return std::nullopt;
  return out;
}

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

decision decide(const state& before, const rollout_request& of, const runtimes& all,
                const limits& with, wall_time now) {
  return planner(before, of, all, with, now).run();
}

}  // namespace rw::runtime_rollout
