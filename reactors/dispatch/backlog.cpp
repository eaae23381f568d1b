#include "rw/reactors/dispatch/object_table.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rw::dispatch {
namespace {

constexpr unsigned resync_turn = 4;  ///< each so manieth change taken is one of a list

object_key split(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

core::time_point time_of(std::uint64_t ticks) {
  return core::time_point(std::chrono::microseconds(ticks));
}

}  // namespace

const std::string& observed_objects::manager_of(const backlog& of) noexcept {
  return of.manager;
}
std::size_t observed_objects::size_of(const backlog& of) noexcept {
  return of.size;
}

std::shared_ptr<observed_objects::backlog> observed_objects::adopt() {
  if (awake_.empty()) return nullptr;
  auto next = std::move(awake_.back());
  awake_.pop_back();
  return next;
}

void observed_objects::release(backlog& of) {
  of.adopted = false;
  if (of.tables.empty()) backlogs_.erase(of.manager);
}

/// Returns what is to be taken next of one rank. Deletions take turns with other changes.
observed_objects::record* observed_objects::first(backlog& of, place rank) const {
  const std::size_t i = rank == place::resync ? 1 : 0;
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
  const bool ready =
      next != nullptr && time_of(next->since) <= recorded_ && !next->of->kind.kind.empty();
  return ready ? next : nullptr;
}

bool observed_objects::has_changes(const backlog& of, bool closing) const {
  if (of.size == 0) return false;
  auto& from = const_cast<backlog&>(of);
  return first(from, place::live) != nullptr || (!closing && first(from, place::resync) != nullptr);
}

std::optional<observed_objects::change> observed_objects::take(backlog& of, bool closing) {
  ++of.turn;
  auto* next = first(of, place::live);
  const bool resync_turn_now = next == nullptr || of.turn % resync_turn == 0;
  if (resync_turn_now && !closing) {
    if (auto* resync = first(of, place::resync)) next = resync;
  }
  if (next == nullptr) return std::nullopt;
  const auto& table = *next->of;
  ++(next->place() == place::resync ? taken_resyncs_ : taken_live_);
  change result{{of.manager, table.kind, split(*next->key)}, time_of(next->since)};
  sending(of, result.event);
  return result;
}

/// One event tells all Watchers of the manager.
void observed_objects::sending(backlog& of, const watch_event& event) {
  const auto flight = of.flight_of(event.gvk.version);
  for (auto* each : of.tables) {
    if (each->kind.group != event.gvk.group || each->kind.kind != event.gvk.kind) continue;
    auto* object = find(*each, event.watched);
    const bool is_listed = object != nullptr && object->listing == each->listing;
    const bool covered = each->live || (is_listed && !each->outdated);
    if (!covered) make_unknown(*each, event.watched);
    if (object == nullptr || object->place() == place::delivered) continue;
    if (time_of(object->since) > recorded_) continue;
    object->untold = 0;
    object->blind = covered ? 0 : 1;
    object->sent = 1;
    object->flight = flight;
    if (waits(object->place())) object->undecided = 0;
    set(*object, place::taken, {});
  }
}

/// Calls `then` with each record that is taken and told by the event, and not by one of another
/// version since. True: there is a record that is taken.
template <typename Function>
bool observed_objects::each_taken(backlog& of, const watch_event& event, Function then) {
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

void observed_objects::delivered(backlog& of, const watch_event& event, core::time_point now) {
  bool accepts_again = false;
  each_taken(of, event, [&](record& object) {
    accepts_again = accepts_again || object.rejected != 0;
    object.rejected = 0;
    object.given_up = 0;
    if (object.place() == place::changed) return set(object, place::live, now);
    if (object.blind != 0) set_newest(object, unknown_state);
    if (object.newest == absent_state) return forget(object);
    set(object, place::delivered, now);
    if (listeners_.on_record) listeners_.on_record(*object.of, *object.key, object.newest, {});
  });
  while (accepts_again && !of.expired.empty()) set(of.expired.front(), place::resync, now);
}

void observed_objects::failed(backlog& of, const watch_event& event, bool rejected) {
  each_taken(of, event, [&](record& object) {
    if (rejected) object.rejected = 1;
    if (!rejected) object.undecided = 1;
  });
}

bool observed_objects::returned(backlog& of, const watch_event& event, core::time_point now) {
  return each_taken(of, event, [&](record& object) {
    const bool changed = object.place() == place::changed;
    set(object, changed ? place::live : place::resync, now);
  });
}

bool observed_objects::expired(backlog& of, const watch_event& event, core::time_point now) {
  bool gap = false;
  const bool any = each_taken(of, event, [&](record& object) {
    const bool was_rejected = object.rejected != 0 && object.undecided == 0;
    const bool ends = was_rejected && object.place() != place::changed;
    if (!ends)
      return set(object, object.place() == place::changed ? place::live : place::resync, now);
    gap = gap || object.given_up == 0;
    object.given_up = 1;
    // Nothing of the object is left to be told but that.
    if (object.newest == absent_state) return forget(object);
    set(object, place::expired, now);
  });
  if (gap && listeners_.on_gap) listeners_.on_gap(of.manager);
  return any;
}

void observed_objects::try_expired(core::time_point now) {
  for (const auto& [manager, of] : backlogs_) {
    const bool busy = of->size > 0 || std::ranges::any_of(of->tables, [](const table* each) {
                        return each->taken > 0;
                      });
    if (!busy && !of->expired.empty()) set(of->expired.front(), place::resync, now);
  }
}

core::time_point observed_objects::oldest_of(const backlog& of) const {
  auto oldest = core::time_point::max();
  const auto see = [&](const queue& each) {
    if (!each.empty()) oldest = std::min(oldest, time_of(each.front().since));
  };
  for (const auto& each : of.changes) see(each);
  for (const auto* each : of.tables) {
    for (const auto& deletions : each->deletions) see(deletions);
  }
  return oldest;
}

}  // namespace rw::dispatch
