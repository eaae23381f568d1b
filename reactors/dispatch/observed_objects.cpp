#include "rw/reactors/dispatch/object_table.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rw::dispatch {
namespace {

std::uint64_t ticks(core::time_point at) {
  const auto since = std::chrono::floor<std::chrono::microseconds>(at.time_since_epoch());
  return static_cast<std::uint64_t>(since.count()) & ((std::uint64_t{1} << 47) - 1);
}

/// Of the record that objects were told of that have none.
constexpr std::string_view no_key;

constexpr std::uint64_t last_listing = 14;
constexpr std::uint64_t no_listing = 15;  ///< what was in none of those that are still counted

}  // namespace

observed_objects::observed_objects(std::size_t limit, listeners to)
    : limit_(limit), listeners_(std::move(to)) {}
observed_objects::~observed_objects() = default;

std::uint32_t observed_objects::number_of(const table& of) noexcept {
  return of.number;
}
const managed_watch& observed_objects::watch_of(const table& of) noexcept {
  return of.watch;
}
const k8s::group_version_kind& observed_objects::kind_of(const table& of) noexcept {
  return of.kind;
}
std::size_t observed_objects::size_of(const table& of) noexcept {
  return of.records.size();
}
observed_objects::table& observed_objects::add(const managed_watch& watch) {
  auto& entry = tables_[watch];
  if (entry) return *entry;
  auto& waiting = backlogs_[watch.manager];
  if (!waiting) waiting = std::make_shared<backlog>(watch.manager);
  entry = std::make_unique<table>(watch, waiting, ++numbers_);
  waiting->tables.push_back(entry.get());
  entry->has_history = has_history_;
  return *entry;
}

void observed_objects::remove(const managed_watch& watch, bool inherited) {
  const auto at = tables_.find(watch);
  if (at == tables_.end()) return;
  auto& of = *at->second;
  const auto before = undelivered_;
  while (!of.records.empty()) {
    auto& object = of.records.begin()->second;
    set(object, place::delivered, {});
    drop(object);
  }
  if (undelivered_ < before && !inherited) report_gap(of.watch.manager);
  std::erase(of.waiting->tables, &of);
  tables_.erase(at);
  std::erase_if(backlogs_, [](const auto& each) {
    return each.second->tables.empty() && !each.second->adopted;
  });
}

void observed_objects::set_history(table& of, bool complete) {
  of.has_history = complete;
}

void observed_objects::set_kind(table& of, const k8s::group_version_kind& kind) {
  of.kind = kind;
  of.waiting->flight_of(kind.version);
}

void observed_objects::remember(table& of, std::string_view key, state_hash delivered) {
  if (key == no_key) {
    of.incomplete = true;
  } else if (of.records.contains(key)) {
    return;
  } else if (of.records.size() < 2 * limit_) {
    insert(of, key).newest = delivered;
  } else {
    // A journal has more if many were under way.
    lose(of);
    if (listeners_.on_record) listeners_.on_record(of, key, absent_state, {});
  }
}

void observed_objects::inherit(table& of, std::string_view key) {
  if (key == no_key) return lose(of);
  if (!of.records.contains(key)) mark_unknown(of, key);
}

observed_objects::record* observed_objects::find(const table& of, const object_key& key) const {
  auto& records = const_cast<table&>(of).records;
  const auto at = records.find(k8s::to_string(key));
  return at == records.end() ? nullptr : &at->second;
}

observed_objects::record& observed_objects::insert(table& of, std::string_view key) {
  const auto at = of.records.try_emplace(std::string(key)).first;
  at->second.of = &of;
  at->second.key = &at->first;
  ++size_;
  return at->second;
}

observed_objects::queue& observed_objects::queue_of(record& object) {
  auto& of = *object.of;
  const std::size_t rank = object.place() == place::resync ? 1 : 0;
  if (object.place() == place::expired) return of.waiting->expired;
  return object.newest == absent_state ? of.deletions[rank] : of.waiting->changes[rank];
}

/// The event that is under way may tell of a state that no watch shows.
bool observed_objects::is_sent_blindly(const record& object) {
  return object.blind != 0 && is_taken(object.place());
}

void observed_objects::set(record& object, place to, core::time_point now) {
  auto& of = *object.of;
  auto& waiting = *of.waiting;
  const auto from = object.place();
  const auto count = [&](std::size_t& number, bool before, bool after) {
    number = number + (after ? 1 : 0) - (before ? 1 : 0);
  };
  object.unlink();
  count(undelivered_, from != place::delivered, to != place::delivered);
  count(live_, from == place::live, to == place::live);
  count(waiting.size, waits(from), waits(to));
  count(waiting_, waits(from), waits(to));
  count(of.taken, is_taken(from), is_taken(to));
  object.at = static_cast<std::uint64_t>(to);
  if (waits(to) && !waits(from)) object.since = ticks(now);
  if (waits(to) || to == place::expired) queue_of(object).push_back(object);
  const bool leaves = from == place::delivered && to != place::delivered;
  if (leaves && listeners_.on_record) listeners_.on_record(of, *object.key, unknown_state, now);
  if (waits(to) && !waiting.adopted) {
    waiting.adopted = true;
    awake_.push_back(of.waiting);
  }
}

void observed_objects::set_newest(record& object, state_hash state) {
  if (object.newest == absent_state) --absent_;
  if (state == absent_state) ++absent_;
  object.newest = state;
}

void observed_objects::change_to(record& object, state_hash state, core::time_point now) {
  const auto from = object.place();
  if (state == absent_state && object.untold != 0) return forget(object);
  const bool was_absent = object.newest == absent_state;
  const bool is_absent = state == absent_state;
  set_newest(object, state);
  object.given_up = 0;
  if (is_taken(from)) return set(object, place::changed, now);
  const auto to = object.of->is_listing && from != place::live ? place::resync : place::live;
  // What waits already keeps its turn.
  if (to != from || was_absent != is_absent) set(object, to, now);
}

/// There is nothing to know of the object any more.
void observed_objects::forget(record& object) {
  auto& of = *object.of;
  set(object, place::delivered, {});
  if (listeners_.on_record) listeners_.on_record(of, *object.key, absent_state, {});
  drop(object);
}

void observed_objects::drop(record& object) {
  auto& records = object.of->records;
  if (object.newest == absent_state) --absent_;
  --size_;
  records.erase(records.find(*object.key));
}

/// Makes room at the cost of the deletion that waits longest; false: none waits.
bool observed_objects::trim(table& of) {
  record* victim = nullptr;
  for (auto& each : of.deletions) {
    const bool older = !each.empty() && (victim == nullptr || each.front().since < victim->since);
    if (older) victim = &each.front();
  }
  if (victim == nullptr) return false;
  forget(*victim);
  report_gap(of.watch.manager);
  return true;
}

/// An object is told of, or was, of which nothing is known any more.
void observed_objects::lose(table& of) {
  const bool is_new = !std::exchange(of.incomplete, true);
  if (is_new && listeners_.on_record) listeners_.on_record(of, no_key, unknown_state, {});
}

/// Lists that did not end leave records of what is gone: forgets one of them. False: there is none.
/// O(1) on average over a list.
bool observed_objects::forget_unlisted(table& of) {
  for (; of.searched < of.records.bucket_count(); ++of.searched) {
    for (auto at = of.records.begin(of.searched); at != of.records.end(of.searched); ++at) {
      auto& object = at->second;
      if (object.listing == of.listing || is_taken(object.place())) continue;
      const bool is_delivered = object.place() == place::delivered;
      if (object.untold == 0 && is_delivered) lose(of);
      if (object.untold == 0 && !is_delivered) report_gap(of.watch.manager);
      forget(object);
      return true;
    }
  }
  return false;
}

void observed_objects::report_gap(const std::string& manager) const {
  if (listeners_.on_gap) listeners_.on_gap(manager);
}

void observed_objects::begin_listing(table& of, bool replaces) {
  if (of.listing == last_listing) {
    for (auto& [key, object] : of.records) object.listing = no_listing;
    of.listing = 0;
  }
  const bool had_room = !std::exchange(of.overflowed, false);
  const bool is_doubtful = had_room && (replaces || of.is_listing);
  for (auto& [key, object] : of.records) {
    if (object.sent == 0 || !is_doubtful) continue;
    object.sent = 0;
    if (is_taken(object.place())) object.blind = 1;
    if (object.place() == place::delivered) mark_unknown(of, key);
  }
  ++of.listing;
  of.listed = 0;
  of.searched = 0;
  of.is_listing = true;
  of.outdated = false;
}

bool observed_objects::put(table& of, const object_key& key, state_hash state,
                           core::time_point now) {
  auto* object = find(of, key);
  const bool is_new = object == nullptr;
  if (of.is_listing) {
    const bool counted = !is_new && object->listing == of.listing;
    of.overflowed = !counted && of.listed >= limit_;
    if (of.overflowed) return false;
    of.listed += counted ? 0 : 1;
  } else if (is_new && of.records.size() - of.taken >= limit_ && !trim(of)) {
    of.overflowed = true;
    return false;
  }
  if (is_new) {
    while (of.records.size() - of.taken >= 2 * limit_ && forget_unlisted(of)) {
    }
    object = &insert(of, k8s::to_string(key));
    object->untold = of.has_history ? 1 : 0;
  }
  object->listing = of.listing;
  const bool is_other = of.is_listing && is_sent_blindly(*object);
  if (is_other || object->newest != state) change_to(*object, state, now);
  return true;
}

void observed_objects::erase(table& of, const object_key& key, core::time_point now) {
  auto* object = find(of, key);
  if (object != nullptr && object->newest != absent_state) change_to(*object, absent_state, now);
}

void observed_objects::rehash(table& of, const object_key& key, state_hash from, state_hash to) {
  if (from == to) return;
  auto* object = find(of, key);
  if (object == nullptr || object->newest != from) return;
  object->newest = to;
  const bool is_delivered = object->place() == place::delivered;
  if (is_delivered && listeners_.on_record) listeners_.on_record(of, *object->key, to, {});
}

void observed_objects::end_listing(table& of, core::time_point now) {
  // A kind that was never found, and is not served: there is no event to tell a deletion by.
  while (of.kind.kind.empty() && !of.records.empty()) {
    lose(of);
    forget(of.records.begin()->second);
  }
  for (auto at = of.records.begin(); at != of.records.end();) {
    auto& object = (at++)->second;
    const bool listed = object.listing == of.listing;
    const bool is_known = object.newest == absent_state && !is_sent_blindly(object);
    object.listing = of.listing;
    object.sent = 0;
    if (!listed && !is_known) change_to(object, absent_state, now);
  }
  of.is_listing = false;
  of.has_history = true;
  while (of.records.size() - of.taken > limit_ && trim(of)) {
  }
  if (!std::exchange(of.incomplete, false)) return;
  report_gap(of.watch.manager);
  if (listeners_.on_record) listeners_.on_record(of, no_key, absent_state, {});
}

void observed_objects::make_unknown(table& of, const object_key& key) {
  mark_unknown(of, k8s::to_string(key));
}

void observed_objects::mark_unknown(table& of, std::string_view key) {
  const auto at = of.records.find(key);
  const bool is_new = at == of.records.end();
  if (is_new && of.records.size() - of.taken >= limit_) return lose(of);
  auto& object = is_new ? insert(of, key) : at->second;
  if (object.place() != place::delivered) return;
  if (!is_new && object.newest == unknown_state) return;
  set_newest(object, unknown_state);
  if (listeners_.on_record) listeners_.on_record(of, *object.key, unknown_state, {});
}

void observed_objects::set_live(table& of, bool live) {
  of.outdated = of.outdated || of.live;
  of.live = live;
}

bool observed_objects::has_unknown(const table& of) {
  return std::ranges::any_of(of.records, [](const auto& each) {
    const auto& object = each.second;
    const bool is_unknown = object.newest == unknown_state && object.place() == place::delivered;
    return is_unknown || is_sent_blindly(object);
  });
}

bool observed_objects::send_again(const std::string& manager, core::time_point now) {
  const auto at = backlogs_.find(manager);
  if (at == backlogs_.end() || at->second->tables.empty()) return false;
  for (auto* each : at->second->tables) {
    for (auto& [key, object] : each->records) {
      if (object.place() == place::delivered) set(object, place::resync, now);
    }
  }
  return true;
}

state_hash observed_objects::state_of(const table& of, const object_key& key) const {
  const auto* object = find(of, key);
  return object == nullptr ? absent_state : object->newest;
}

void observed_objects::visit(const std::function<void(const table&)>& take) const {
  for (const auto& [watch, of] : tables_) take(*of);
}

void observed_objects::visit(
    const table& of,
    const std::function<void(std::string_view key, state_hash delivered)>& object) {
  for (const auto& [key, known] : of.records) {
    object(key, known.place() == place::delivered ? known.newest : unknown_state);
  }
  if (of.incomplete) object(no_key, unknown_state);
}

}  // namespace rw::dispatch
