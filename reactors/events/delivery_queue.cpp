#include "rw/reactors/events/delivery_table.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rw::dispatch {
namespace {

constexpr unsigned listed_turn = 4;  ///< each so manieth change taken is none of a live watch

object_key split(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

core::time_point time_of(std::uint64_t ticks) {
  return core::time_point(std::chrono::microseconds(ticks));
}

}  // namespace

const std::string& delivery::manager_of(const queue& of) noexcept {
  return of.manager;
}
std::size_t delivery::size_of(const queue& of) noexcept {
  return of.size;
}

std::shared_ptr<delivery::queue> delivery::adopt() {
  if (awake_.empty()) return nullptr;
  auto next = std::move(awake_.back());
  awake_.pop_back();
  return next;
}

std::shared_ptr<delivery::queue> delivery::adopt_unlisted(const std::string& manager,
                                                          core::time_point now) {
  if (has_file_) return nullptr;
  const bool is_new = !queues_.contains(manager);
  auto& of = add_queue(manager, now, true);
  of.adopted = true;
  if (is_new) raise(of, resync_cause::started);
  return queues_.at(manager);
}

void delivery::release(queue& of) {
  of.adopted = false;
  if (!is_settled(of) || of.size > 0) return wake(of);
  erase_if_done(of);
}

/// Returns what is to be taken next of one rank. Deletions take turns with other changes.
delivery::record* delivery::first(queue& of, place rank) const {
  const std::size_t i = rank == place::listed ? 1 : 0;
  record* change = of.changes[i].empty() ? nullptr : &of.changes[i].front();
  record* deletion = nullptr;
  for (auto* each : of.tables) {
    auto& waiting = each->deletions[i];
    const bool older =
        !waiting.empty() && (deletion == nullptr || waiting.front().since < deletion->since);
    if (older) deletion = &waiting.front();
  }
  const bool deletion_first = deletion != nullptr && (change == nullptr || of.turn % 2 != 0);
  auto* next = deletion_first ? deletion : change;
  return next != nullptr && !next->of->kind.kind.empty() ? next : nullptr;
}

bool delivery::has_changes(const queue& of, bool closing) const {
  if (of.size == 0) return false;
  auto& from = const_cast<queue&>(of);
  return first(from, place::live) != nullptr || (!closing && first(from, place::listed) != nullptr);
}

std::optional<delivery::change> delivery::take(queue& of, bool closing) {
  ++of.turn;
  auto* next = first(of, place::live);
  const bool listed_turn_now = next == nullptr || of.turn % listed_turn == 0;
  if (listed_turn_now && !closing) {
    if (auto* listed = first(of, place::listed)) next = listed;
  }
  if (next == nullptr) return std::nullopt;
  const auto& table = *next->of;
  ++(next->place() == place::listed ? taken_listed_ : taken_live_);
  change result{{of.manager, table.kind, split(*next->key)}, time_of(next->since)};
  sending(of, result.event);
  return result;
}

/// One event tells all Watchers of the manager.
void delivery::sending(queue& of, const watch_event& event) {
  const auto flight = of.flight_of(event.gvk.version);
  for (auto* each : of.tables) {
    if (each->kind.group != event.gvk.group || each->kind.kind != event.gvk.kind) continue;
    auto* object = find(*each, event.watched);
    if (object == nullptr || object->place() == place::told) continue;
    object->flight = flight;
    set(*object, place::taken, {});
  }
}

/// Calls `then` with each record that is taken and told by the event, and not by one of another
/// version since. True: there is a record that is taken.
template <typename Function>
bool delivery::each_taken(queue& of, const watch_event& event, Function then) {
  bool any = false;
  const auto flight = of.flight_of(event.gvk.version);
  for (auto* each : of.tables) {
    if (each->kind.group != event.gvk.group || each->kind.kind != event.gvk.kind) continue;
    auto* object = find(*each, event.watched);
    if (object == nullptr) continue;
    const bool taken = is_taken(object->place());
    any = any || taken;
    if (taken && object->flight == flight) then(*object);
  }
  return any;
}

void delivery::told(queue& of, const watch_event& event, core::time_point now) {
  each_taken(of, event, [&](record& object) {
    if (object.place() == place::changed) return set(object, place::live, now);
    if (object.newest == absent_state) return forget(object);
    set(object, place::told, now);
  });
}

void delivery::told_by_resync(queue& of, const watch_event& event, core::time_point now) {
  each_taken(of, event, [&](record& object) {
    const bool is_newer = object.place() == place::changed || object.fresh != 0;
    if (is_newer) return set(object, place::live, now);
    if (object.newest == absent_state) return forget(object);
    set(object, place::told, now);
  });
}

bool delivery::returned(queue& of, const watch_event& event, core::time_point now) {
  return each_taken(of, event, [&](record& object) {
    const bool changed = object.place() == place::changed;
    set(object, changed ? place::live : place::listed, now);
  });
}

core::time_point delivery::oldest_of(const queue& of) const {
  auto oldest = core::time_point::max();
  const auto see = [&](const records& each) {
    if (!each.empty()) oldest = std::min(oldest, time_of(each.front().since));
  };
  for (const auto& each : of.changes) see(each);
  for (const auto* each : of.tables) {
    for (const auto& deletions : each->deletions) see(deletions);
  }
  return oldest;
}

// --- resyncs ---------------------------------------------------------------------------------

core::time_point delivery::ready_at(const queue& of) {
  auto at = core::time_point::min();
  for (const auto* each : of.tables) at = std::max(at, each->ready_at());
  return at;
}

void delivery::advance(queue& of, bool closing, core::time_point now) {
  of.account.advance(now);
  if (of.account.resend_due(now, now >= ready_at(of), closing)) resend(of, now);
}

bool delivery::resync_due(const queue& of, bool closing, core::time_point now) const {
  return of.account.due(now, now >= ready_at(of), closing);
}

core::time_point delivery::next_resync(const queue& of, core::time_point now) const {
  const auto next = of.account.next(now);
  const auto ready = ready_at(of);
  return of.account.owed() && ready > now ? std::min(next, ready) : next;
}

bool delivery::is_settled(const queue& of) noexcept {
  return of.account.settled();
}

bool delivery::holds_end() const {
  return std::ranges::any_of(queues_,
                             [](const auto& each) { return each.second->account.holds_end(); });
}

std::size_t delivery::owed() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(queues_, [](const auto& each) { return each.second->account.owed(); }));
}

resync_reason delivery::begin_resync(queue& of, bool closing) {
  for (auto* each : of.tables) {
    each->told_away = !each->live;
    for (auto& [key, object] : each->objects) object.fresh = 0;
  }
  return of.account.begin(closing);
}

std::optional<watch_event> delivery::end_resync(queue& of, resync_account::outcome ending,
                                                const core::random_source& random,
                                                core::time_point now) {
  const table* with_objects = nullptr;
  const std::string* key = nullptr;
  if (ending == resync_account::outcome::unclear) {
    for (const auto* each : of.tables) {
      if (each->kind.kind.empty()) continue;
      const auto at = std::ranges::find_if(
          each->objects, [](const auto& known) { return known.second.newest != absent_state; });
      if (at == each->objects.end()) continue;
      with_objects = each;
      key = &at->first;
      break;
    }
  }
  const bool is_tried = of.account.end(ending, with_objects != nullptr, now, random);
  if (ending == resync_account::outcome::taken) {
    for (auto* each : of.tables) tell_all(*each, now);
  }
  if (!is_tried) return std::nullopt;
  return watch_event{of.manager, with_objects->kind, split(*key)};
}

/// A resync has told what was known when it was sent.
void delivery::tell_all(table& of, core::time_point now) {
  const bool holds = of.waiting->account.holds();
  for (auto at = of.objects.begin(); at != of.objects.end();) {
    auto& object = (at++)->second;
    const bool is_fresh = object.fresh != 0;
    object.fresh = 0;
    if (object.place() == place::told || is_taken(object.place())) continue;
    if (is_fresh) {
      if (object.place() == place::held && !holds) set(object, place::listed, now);
    } else if (object.newest == absent_state) {
      forget(object);
    } else {
      set(object, place::told, now);
    }
  }
}

void delivery::resync_unprocessed(queue& of) {
  of.account.unprocessed();
}

void delivery::accepted(queue& of, bool offers, core::time_point now) {
  of.account.accepted(offers, now);
}

/// In place of a resync, for a receiver that knows none.
void delivery::resend(queue& of, core::time_point now) {
  for (auto* each : of.tables) {
    for (auto& [key, object] : each->objects) {
      if (object.place() == place::taken) set(object, place::changed, now);
      if (object.place() == place::told || object.place() == place::held)
        set(object, place::listed, now);
    }
  }
  of.account.resent(now);
}

}  // namespace rw::dispatch
