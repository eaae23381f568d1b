#include "tests/simulation/history.hpp"

#include "rw/reactors/observation/digest.hpp"

#include <boost/json/parse.hpp>

#include <algorithm>
#include <ranges>
#include <utility>

namespace rw::simulation {
namespace {

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

/// Returns the first state with that mark that the runtime may have seen since it counted one.
int history::view::find(dispatch::state_hash mark) const {
  const auto from = [&](int first) {
    while (first <= newest() && states[static_cast<std::size_t>(std::max(first, 0))].mark != mark) {
      ++first;
    }
    return std::max(first, 0);
  };
  if (changes && from(delivered + 1) <= newest()) return from(delivered + 1);
  return from(delivered) <= newest() ? from(delivered) : from(0);
}

void history::gap_told(const std::string& manager) {
  in_.note("gap told to " + manager);
  told_gaps_[manager] = in_.now();
}

void history::violate(const std::string& what) {
  in_.note("VIOLATION: " + what);
  violations_.push_back(what);
}

void history::persisted(const model_kind& kind, const k8s::object_key& key, const model_object* now,
                        std::string_view text) {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    const auto& watch = watches_[i];
    if (watch.watched.plural != kind.plural || watch.watched.group != kind.group) continue;
    auto& states = subjects_[{watch.manager, kind.kind + " " + key.name}].views[i].states;
    auto digest = digest_of(watch, kind, now);
    if (digest == states.back().digest) continue;
    const auto mark = digest.empty() ? dispatch::absent_state
                                     : observation::state_hashes_of(boost::json::parse(text),
                                                                    watch.field, kind.has_status)
                                           .state;
    states.push_back({in_.now(), std::move(digest), mark});
    ++changes_;
  }
}

/// Objects were told of that have no record: a list may have any of them told again.
void history::lost_records(const managed_watch& watch) {
  const auto index = std::ranges::find(watches_, watch) - watches_.begin();
  for (auto& [name, of] : subjects_) {
    const auto seen = of.views.find(static_cast<std::size_t>(index));
    if (seen == of.views.end()) continue;
    seen->second.unknown = true;
    seen->second.unknown_told = false;
  }
}

void history::recorded(const managed_watch& watch, std::string_view key,
                       dispatch::state_hash delivered, bool changes) {
  if (key.empty()) {
    if (delivered == dispatch::unknown_state) lost_records(watch);
    return;
  }
  const auto name = std::string(key.substr(key.find('/') + 1));
  const auto kind = std::ranges::find(kinds_, watch.watched.plural, &model_kind::plural);
  auto& of = subjects_[{watch.manager, kind->kind + " " + name}];
  const auto index = std::ranges::find(watches_, watch) - watches_.begin();
  auto& seen = of.views[static_cast<std::size_t>(index)];
  if (delivered == dispatch::unknown_state && seen.changes && !changes) {
    // It was delivered, in a state that is not known.
    of.recorded = in_.now();
    if (std::exchange(of.as_review, false)) ++of.reviews;
    seen.changes = seen.unknown_told = false;
    seen.unknown = true;
  } else if (delivered == dispatch::unknown_state) {
    (changes ? seen.changes : seen.unknown) = true;
    seen.unknown_told = seen.unknown_told && changes;
  } else {
    const auto state = seen.find(delivered);
    if (state > seen.newest()) return violate("counts what never was: " + name);
    of.recorded = in_.now();
    // What was told had a record: the event of the review may be still to come.
    if (std::exchange(of.as_review, false)) ++of.reviews;
    seen.delivered = state;
    seen.changes = seen.unknown = seen.unknown_told = false;
  }
  seen.records.push_back({in_.now(), seen.changes || seen.unknown ? nothing : seen.delivered});
}

void history::sent_again(const std::string& manager) {
  in_.note("all is sent again to " + manager);
  for (auto& [name, of] : subjects_) {
    if (name.first != manager) continue;
    for (auto& [index, seen] : of.views) {
      const bool leaves = !seen.records.empty() && seen.records.back().at == in_.now();
      seen.unknown = seen.unknown || (leaves && seen.changes);
      if (leaves) seen.unknown_told = false;
    }
  }
}

void history::uncovered(const watch_event& review) {
  ++subjects_[{review.manager, review.gvk.kind + " " + review.watched.name}].reviews;
}

void history::old_shown(const model_kind& kind, const std::string& name) {
  for (auto& [of, subject] : subjects_) subject.old += of.second == kind.kind + " " + name ? 1 : 0;
}

void history::came_to_rest() {
  for (auto& [name, of] : subjects_) of.reviews = of.old = 0;
}

void history::restarted(const observation::journal_content& journal, time_point complete,
                        time_point delivered) {
  unanswered();
  came_to_rest();
  for (auto& [name, of] : subjects_) {
    for (auto& [index, seen] : of.views) {
      auto mark = dispatch::absent_state;
      bool outdated = false;
      if (const auto known = journal.watches.find(watches_[index]);
          known != journal.watches.end()) {
        const auto key = "kyma-system/" + name.second.substr(name.second.find(' ') + 1);
        const auto at = known->second.states.find(key);
        if (at != known->second.states.end()) mark = at->second;
        outdated = known->second.outdated;
      }
      if (outdated) {
        // In which state it was told is not kept.
        seen.records.clear();
        seen.delivered = 0;
        seen.changes = seen.unknown_told = false;
        seen.unknown = mark == dispatch::unknown_state;
        continue;
      }
      const auto has = [&](const record& each) {
        return (each.state == nothing
                    ? dispatch::unknown_state
                    : seen.states[static_cast<std::size_t>(each.state)].mark) == mark;
      };
      auto lost = seen.records.end();
      while (lost != seen.records.begin() && !has(*std::prev(lost))) --lost;
      if (lost != seen.records.end() &&
          lost->at < (lost->state == nothing ? complete : delivered)) {
        violate("the journal lacks a record of " + name.second);
      }
      const bool begins = lost == seen.records.begin();
      const bool known =
          begins ? mark == dispatch::absent_state : std::prev(lost)->state != nothing;
      seen.delivered = begins || !known ? 0 : std::prev(lost)->state;
      seen.records.erase(lost, seen.records.end());
      seen.changes = seen.unknown_told = false;
      seen.unknown = !known;
    }
  }
}

void history::late(time_point since) {
  late_since_ = late_at_ == in_.now() ? std::min(late_since_, since) : since;
  late_at_ = in_.now();
  unanswered();
}

void history::want(const std::vector<managed_watch>& watches,
                   const std::vector<managed_watch>& forgotten) {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    const bool now = std::ranges::find(watches, watches_[i]) != watches.end();
    const bool is_new = now && !wanted_[i];
    wanted_[i] = now;
    if (!is_new || std::ranges::find(forgotten, watches_[i]) == forgotten.end()) continue;
    for (auto& [name, of] : subjects_) {
      if (const auto seen = of.views.find(i); seen != of.views.end()) {
        seen->second.told = time_point::min();
      }
    }
  }
}

void history::observe(const std::vector<managed_watch>& watches) {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    const bool now = std::ranges::find(watches, watches_[i]) != watches.end();
    // What was sent for it when it was removed has no record.
    for (auto& [name, of] : subjects_) {
      const bool again = now && observed_[i] != time_point::max() && of.views.contains(i);
      if (again) of.last = time_point::min();
    }
    if (now) observed_[i] = time_point::max();
    if (now || observed_[i] != time_point::max()) continue;
    observed_[i] = in_.now();
    // Its events that were not answered are sent again, as if they were of reviews.
    for (auto& [name, of] : subjects_) {
      const auto seen = of.views.find(i);
      if (seen != of.views.end() && seen->second.changes) ++of.reviews;
    }
  }
}

/// Returns true if they are one Watcher, before and after it was edited, or the same.
bool history::is_edited(std::size_t watch, std::size_t other) const {
  const auto& one = watches_[watch];
  const auto& as = watches_[other];
  return one.manager == as.manager && one.watched == as.watched && one.field == as.field;
}

/// Returns how many changes the runtime may have seen that it does not know to be told.
std::size_t history::changes_of(std::size_t watch, const view& seen) const {
  const auto last = &seen.at(observed_[watch]) - seen.states.data();
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(last - seen.delivered, 0));
}

/// Returns why an event comes; empty: there is no reason.
std::string_view history::explain(subject& of) const {
  // A review's event has no record, and may come before that of its change, or with it.
  if (of.reviews > 0) {
    --of.reviews;
    return "review";
  }
  const bool ended = of.recorded >= of.last || unanswered_ >= of.last;
  if (ended) of.changes = 0;
  // Watches show each change in their own time, and what one shows while an event is on its way
  // has another to come: one for each change of each Watcher.
  std::size_t changes = 0;
  for (const auto& [index, seen] : of.views) changes += changes_of(index, seen);
  if (of.changes < changes) {
    ++of.changes;
    return "change";
  }
  for (auto& [index, seen] : of.views) {
    if (!seen.unknown || (seen.unknown_told && !ended)) continue;
    seen.unknown_told = true;
    return "unknown";
  }
  if (of.old > 0) {
    --of.old;
    return "old";
  }
  if (of.told.empty()) return "";
  if (unanswered_ >= of.told.back() && of.recorded < of.told.back()) return "no answer";
  return late_at_ == in_.now() && late_since_ <= of.told.back() ? "late" : "";
}

void history::told(const watch_event& event) {
  const auto what = event.gvk.kind + " " + event.watched.name;
  before_event();
  auto& of = subjects_[{event.manager, what}];
  const auto cause = explain(of);
  in_.note("told " + event.manager + " " + what + ": " + std::string(cause));
  ++told_;
  ++causes_[cause];
  if (cause.empty()) {
    violate("told again, though nothing changed: " + event.manager + " " + what);
  }
  if (cause == "review") {
    of.as_review = true;
  } else {
    of.last = in_.now();
  }
  of.told.push_back(in_.now());
  // What a Watcher's operator is told for others while the file lacks it is not told for it, but
  // for what it was before it was edited.
  for (auto& [index, seen] : of.views) {
    const bool is_told = std::ranges::any_of(of.views, [&](const auto& other) {
      return observed_[other.first] == time_point::max() && is_edited(index, other.first);
    });
    if (is_told) seen.told = in_.now();
  }
}

/// An operator that gets an event reads the object: it knows the state of that time.
/// After a gap it reads what there is then.
///
/// Open doubt, not mended: what it reads after a gap that it is told of while a watch is not live
/// may change back until the next list, which then shows no difference.
std::vector<std::string> history::missing(time_point before) const {
  std::vector<std::string> names;
  for (const auto& [name, of] : subjects_) {
    const auto gap = told_gaps_.find(name.first);
    for (const auto& [index, seen] : of.views) {
      const auto& last = seen.states.back();
      const auto read = gap == told_gaps_.end() ? time_point::min() : gap->second;
      if (!wanted_[index] || last.since > before) continue;
      if (seen.at(seen.told).digest == last.digest || seen.at(read).digest == last.digest) continue;
      names.push_back(name.first + " " + name.second + " (" + watches_[index].field + ")");
    }
  }
  return names;
}

}  // namespace rw::simulation
