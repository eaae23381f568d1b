#include "tests/simulation/history.hpp"

#include <algorithm>
#include <ranges>

namespace rw::simulation {
namespace {

/// From a change to its event, where nothing is broken; and how late a gap is noted.
constexpr auto slack = seconds(3);

/// As a Watcher sees it: `reactors/observation/digest.hpp` says what counts.
std::string digest_of(const managed_watch& watch, const model_kind& kind,
                      const model_object* object) {
  if (object == nullptr || (!watch.labels.empty() && !object->labelled)) return {};
  const auto part = watch.field == "status" ? object->status : object->spec;
  const bool has_generation = watch.field != "status" && kind.has_status;
  return object->uid + (object->deleting ? " deleting " : " ") + std::to_string(part) +
         (has_generation ? " of " + std::to_string(object->generation) : "");
}

}  // namespace

const history::state& history::view::at(time_point when) const {
  const auto later = std::ranges::upper_bound(states, when, {}, &state::since);
  return later == states.begin() ? states.front() : *std::prev(later);
}

void history::extend(std::vector<period>& periods, time_point now) {
  if (!periods.empty() && now <= periods.back().to + slack) {
    periods.back().to = now;
  } else {
    periods.push_back({now, now});
  }
}

bool history::any_in(const std::vector<period>& periods, time_point from, time_point to) {
  return std::ranges::any_of(
      periods, [&](const period& each) { return each.from <= to && from <= each.to; });
}

void history::gap() {
  extend(gaps_, in_.now());
}

void history::hang() {
  extend(hangs_, in_.now());
}

void history::excuse() {
  extend(excuses_, in_.now());
}

void history::gap_told(const std::string& manager) {
  in_.note("gap told to " + manager);
  told_gaps_[manager] = in_.now();
  ++gap_count_;
}

void history::restarted(time_point ledger_time) {
  restarts_.push_back({ledger_time, in_.now()});
}

void history::violate(const std::string& what) {
  in_.note("VIOLATION: " + what);
  violations_.push_back(what);
}

void history::persisted(const model_kind& kind, const k8s::object_key& key,
                        const model_object* now) {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    const auto& watch = watches_[i];
    if (watch.watched.plural != kind.plural || watch.watched.group != kind.group) continue;
    auto& of = subjects_[{watch.manager, kind.kind + " " + key.name}];
    auto& states = of.views[i].states;
    if (states.empty()) states.push_back({time_point::min(), {}});
    auto digest = digest_of(watch, kind, now);
    if (digest == states.back().digest) continue;
    states.push_back({in_.now(), std::move(digest)});
    of.unanswered.push_back(in_.now());
    ++changes_;
  }
}

/// Each Watcher of a manager tells of its own part: as many events as Watchers for which the object
/// changed, since any such change.
bool history::is_other_watchers(const subject& of) const {
  const auto changed = [](const auto& each) { return each.second.states.back().since; };
  return std::ranges::any_of(of.views, [&](const auto& each) {
    const auto since = changed(each);
    const auto answers = of.answers.end() - std::ranges::upper_bound(of.answers, since);
    return answers < std::ranges::count_if(
                         of.views, [&](const auto& other) { return changed(other) >= since; });
  });
}

/// Several Watchers' events of one cause come in a row: what excuses the first one excuses all.
bool history::is_excused(const subject& of) const {
  const auto row = std::ranges::lower_bound(of.told, in_.now() - slack);
  const auto told = row == of.told.begin() ? time_point::min() : *std::prev(row);
  const auto since = (row == of.told.begin() ? in_.now() : told) - slack;
  const bool ledger_lacks_it = std::ranges::any_of(
      restarts_, [&](const restart& each) { return each.ledger <= told && told <= each.at; });
  return ledger_lacks_it || any_in(excuses_, since, in_.now()) || any_in(gaps_, since, in_.now());
}

void history::told(const watch_event& event) {
  const auto what = event.gvk.kind + " " + event.watched.name;
  in_.note("told " + event.manager + " " + what);
  ++told_;
  before_event();
  auto& of = subjects_[{event.manager, what}];
  const auto before = of.told.empty() ? time_point::min() : of.told.back();
  const auto since = of.told.empty() ? before : before - slack;
  // A change while an event was on its way has another event to come.
  std::erase_if(of.unanswered, [&](time_point when) { return when < since; });
  if (!of.unanswered.empty()) {
    of.unanswered.erase(of.unanswered.begin());
    of.answers.push_back(in_.now());
  } else if (is_excused(of)) {
    ++excused_;
  } else if (is_other_watchers(of)) {
    of.answers.push_back(in_.now());
  } else {
    violate("told again, though nothing changed: " + event.manager + " " + what);
  }
  of.told.push_back(in_.now());
}

/// An operator that gets an event reads the object: it knows the state of that time. An event that
/// was sent for an earlier change stands for that one where a watch hung before it showed the later
/// ones: what they changed, and changed back, is no difference to it.
bool history::is_told(const view& seen, time_point told) const {
  const auto& last = seen.states.back();
  const auto* const now = &seen.at(told);
  if (now->digest == last.digest) return true;
  if (told == time_point::min() || !any_in(hangs_, told, last.since)) return false;
  return std::any_of(&seen.at(told - slack), now,
                     [&](const state& known) { return known.digest == last.digest; });
}

/// After a gap an operator reads what there is then.
///
/// Open doubt, not mended: what it reads after a gap that it is told of while a watch is not live
/// may change back until the next list, which then shows no difference.
std::vector<std::string> history::missing(time_point before) const {
  std::vector<std::string> names;
  for (const auto& [name, of] : subjects_) {
    const auto gap = told_gaps_.find(name.first);
    for (const auto& [index, seen] : of.views) {
      const auto told = of.told.empty() ? time_point::min() : of.told.back();
      const auto& last = seen.states.back();
      const bool has_gap = gap != told_gaps_.end() && gap->second >= last.since;
      if (last.since > before || has_gap || is_told(seen, told)) continue;
      names.push_back(name.first + " " + name.second + " (" + watches_[index].field + ")");
    }
  }
  return names;
}

}  // namespace rw::simulation
