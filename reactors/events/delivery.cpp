#include "rw/reactors/events/delivery_table.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rw::dispatch {
namespace {

std::uint64_t ticks(core::time_point at) {
  const auto since = std::chrono::floor<std::chrono::microseconds>(at.time_since_epoch());
  return static_cast<std::uint64_t>(since.count()) & ((std::uint64_t{1} << 47) - 1);
}

constexpr std::uint64_t last_listing = 14;
constexpr std::uint64_t no_listing = 15;  ///< what was in none of those that are still counted

}  // namespace

delivery::delivery(delivery_options options, raise_handler on_raise)
    : options_(options), on_raise_(std::move(on_raise)) {}
delivery::~delivery() = default;

const managed_watch& delivery::watch_of(const table& of) noexcept {
  return of.watch;
}
std::size_t delivery::size_of(const table& of) noexcept {
  return of.objects.size();
}

// --- operators -------------------------------------------------------------------------------

/// Null: no operator of that name has Watchers.
delivery::queue* delivery::find_queue(const std::string& manager) const {
  const auto at = queues_.find(manager);
  const bool is_known = at != queues_.end() && (at->second->named || !has_file_);
  return is_known ? at->second.get() : nullptr;
}

delivery::queue& delivery::add_queue(const std::string& manager, core::time_point now,
                                     bool needs_offer) {
  auto& entry = queues_[manager];
  if (!entry) entry = std::make_shared<queue>(manager, now, needs_offer);
  return *entry;
}

void delivery::erase_if_done(const queue& of) {
  if (of.tables.empty() && !of.adopted && !of.named) queues_.erase(std::string(of.manager));
}

void delivery::set_managers(const std::vector<std::string>& names, core::time_point now) {
  const bool is_first = !std::exchange(has_file_, true);
  for (const auto& name : names) {
    auto& of = add_queue(name, now, false);
    of.named = true;
    of.account.set_named();
    if (is_first) raise(of, resync_cause::started);
  }
  std::vector<std::shared_ptr<queue>> gone;
  for (const auto& [name, of] : queues_) {
    if (of->named && std::ranges::find(names, name) == names.end()) gone.push_back(of);
  }
  for (const auto& of : gone) {
    of->named = false;
    forgiven_ += of->account.forgive() ? 1 : 0;
    erase_if_done(*of);
  }
}

void delivery::wake(queue& of) {
  if (std::exchange(of.adopted, true)) return;
  awake_.push_back(queues_.at(of.manager));
}

void delivery::note_loss(const std::string& manager, resync_cause cause) {
  if (is_loss(cause)) ++losses_[manager];
  if (on_raise_) on_raise_(manager, cause);
}

void delivery::raise(queue& of, resync_cause cause) {
  of.account.raise(cause);
  wake(of);
  note_loss(of.manager, cause);
}

void delivery::raise(const std::string& manager, resync_cause cause) {
  if (auto* of = find_queue(manager)) raise(*of, cause);
}

void delivery::drop_review(const std::string& manager, core::time_point now) {
  auto* of = find_queue(manager);
  // Without a managers' file a client of the webhook may invent operators.
  note_loss(of != nullptr && of->named ? manager : std::string(), resync_cause::overflow);
  if (of == nullptr || !of->account.is_real()) return;
  of->account.raise_later(now, options_.settle);
  wake(*of);
}

// --- tables ----------------------------------------------------------------------------------

delivery::table& delivery::add(const managed_watch& watch, core::time_point now) {
  auto& entry = tables_[watch];
  if (entry) return *entry;
  auto& waiting = add_queue(watch.manager, now, false);
  entry = std::make_unique<table>(watch, queues_.at(watch.manager), now);
  waiting.tables.push_back(entry.get());
  return *entry;
}

void delivery::remove(const managed_watch& watch, bool replaced, core::time_point now) {
  const auto at = tables_.find(watch);
  if (at == tables_.end()) return;
  auto& of = *at->second;
  const auto waiting = of.waiting;
  const auto before = undelivered_;
  while (!of.objects.empty()) {
    auto& object = of.objects.begin()->second;
    set(object, place::told, now);
    forget(object);
  }
  const bool is_lost = undelivered_ < before && !replaced;
  std::erase(waiting->tables, &of);
  tables_.erase(at);
  if (is_lost && waiting->named) raise(*waiting, resync_cause::removed);
  erase_if_done(*waiting);
}

void delivery::set_kind(table& of, const k8s::group_version_kind& kind) {
  of.kind = kind;
  of.waiting->flight_of(kind.version);
}

void delivery::set_live(table& of, bool live, core::time_point now) {
  if (of.live && !live) of.since = now;
  of.live = live;
  if (!live) return;
  if (std::exchange(of.told_away, false)) raise(*of.waiting, resync_cause::watch_back);
  const auto& account = of.waiting->account;
  const bool is_to_come = account.owed() && !account.in_flight();
  if (std::exchange(of.reviewed_away, false) && !is_to_come)
    raise(*of.waiting, resync_cause::checked);
}

void delivery::told_by_review(table& of) {
  of.reviewed_away = of.reviewed_away || !of.live;
}

delivery::record* delivery::find(const table& of, const object_key& key) const {
  auto& objects = const_cast<table&>(of).objects;
  const auto at = objects.find(k8s::to_string(key));
  return at == objects.end() ? nullptr : &at->second;
}

delivery::record& delivery::insert(table& of, std::string_view key) {
  const auto at = of.objects.try_emplace(std::string(key)).first;
  at->second.of = &of;
  at->second.key = &at->first;
  ++size_;
  return at->second;
}

delivery::records& delivery::records_of(record& object) {
  auto& of = *object.of;
  const std::size_t rank = object.place() == place::listed ? 1 : 0;
  return object.newest == absent_state ? of.deletions[rank] : of.waiting->changes[rank];
}

void delivery::set(record& object, place to, core::time_point now) {
  auto& of = *object.of;
  auto& waiting = *of.waiting;
  const auto from = object.place();
  const auto count = [&](std::size_t& number, bool before, bool after) {
    number = number + (after ? 1 : 0) - (before ? 1 : 0);
  };
  object.unlink();
  count(undelivered_, from != place::told, to != place::told);
  count(live_, from == place::live, to == place::live);
  count(waiting.size, waits(from), waits(to));
  count(waiting_, waits(from), waits(to));
  count(of.taken, is_taken(from), is_taken(to));
  object.at = static_cast<std::uint64_t>(to);
  if (!waits(to)) return;
  if (!waits(from)) object.since = ticks(now);
  records_of(object).push_back(object);
  wake(waiting);
}

void delivery::set_newest(record& object, state_hash state) {
  if (object.newest == absent_state) --absent_;
  if (state == absent_state) ++absent_;
  object.newest = state;
}

void delivery::change_to(record& object, state_hash state, core::time_point now) {
  const auto& of = *object.of;
  const auto& account = of.waiting->account;
  const auto from = object.place();
  const bool was_absent = object.newest == absent_state;
  const bool is_absent = state == absent_state;
  set_newest(object, state);
  object.fresh = account.in_flight() ? 1 : 0;
  if (is_taken(from)) return set(object, place::changed, now);
  auto to = of.is_listing && from != place::live ? place::listed : place::live;
  if (of.is_listing && !of.has_listed && !is_absent && account.holds()) to = place::held;
  // What waits already keeps its turn.
  if (to != from || was_absent != is_absent) set(object, to, now);
}

/// There is nothing to know of the object any more.
void delivery::forget(record& object) {
  set(object, place::told, {});
  auto& objects = object.of->objects;
  if (object.newest == absent_state) --absent_;
  --size_;
  objects.erase(objects.find(*object.key));
}

/// Makes room at the cost of the deletion that waits longest; false: none waits.
bool delivery::trim(table& of) {
  record* victim = nullptr;
  for (auto& each : of.deletions) {
    const bool older = !each.empty() && (victim == nullptr || each.front().since < victim->since);
    if (older) victim = &each.front();
  }
  if (victim == nullptr) return false;
  forget(*victim);
  raise(*of.waiting, resync_cause::overflow);
  return true;
}

/// Lists that did not end leave records of what is gone: forgets one of them. False: there is none.
/// O(1) on average over a list.
bool delivery::forget_unlisted(table& of) {
  for (; of.searched < of.objects.bucket_count(); ++of.searched) {
    for (auto at = of.objects.begin(of.searched); at != of.objects.end(of.searched); ++at) {
      auto& object = at->second;
      if (object.listing == of.listing || is_taken(object.place())) continue;
      forget(object);
      raise(*of.waiting, resync_cause::overflow);
      return true;
    }
  }
  return false;
}

void delivery::begin_listing(table& of, bool by_reviews, core::time_point now) {
  if (of.listing == last_listing) {
    for (auto& [key, object] : of.objects) object.listing = no_listing;
    of.listing = 0;
  }
  ++of.listing;
  of.listed = 0;
  of.searched = 0;
  if (!std::exchange(of.is_listing, true)) of.began = now;
  of.has_time = of.has_time || by_reviews;
}

void delivery::break_listing(table& of) {
  of.is_listing = false;
}

bool delivery::put(table& of, const object_key& key, state_hash state, core::time_point now) {
  auto* object = find(of, key);
  const bool is_new = object == nullptr;
  if (of.is_listing) {
    const bool counted = !is_new && object->listing == of.listing;
    of.has_time = of.has_time || (!counted && of.listed >= options_.objects);
    if (!counted && of.listed >= options_.objects) return false;
    of.listed += counted ? 0 : 1;
  } else if (is_new && of.objects.size() - of.taken >= options_.objects && !trim(of)) {
    of.has_time = true;
    return false;
  }
  if (is_new) {
    while (of.objects.size() - of.taken >= 2 * options_.objects && forget_unlisted(of)) {
    }
    object = &insert(of, k8s::to_string(key));
  }
  object->listing = of.listing;
  if (object->newest != state) change_to(*object, state, now);
  return true;
}

/// Whether its operator was told of the object or not: it may know it from a list of its own.
void delivery::erase(table& of, const object_key& key, core::time_point now) {
  auto* object = find(of, key);
  if (object != nullptr && object->newest != absent_state) change_to(*object, absent_state, now);
}

void delivery::end_listing(table& of, core::time_point now) {
  const bool was_away = std::exchange(of.told_away, false);
  // The list of a watch that comes back raises one anyway.
  if (of.has_listed) of.reviewed_away = false;
  const bool has_time = std::exchange(of.has_time, false);
  if (was_away || of.has_listed)
    raise(*of.waiting, has_time ? resync_cause::checked : resync_cause::watch_back);
  for (auto& [key, object] : of.objects) {
    const bool listed = object.listing == of.listing;
    object.listing = of.listing;
    if (!listed && object.newest != absent_state) change_to(object, absent_state, now);
  }
  of.is_listing = false;
  of.has_listed = true;
  of.since = now;
  while (of.objects.size() - of.taken > options_.objects && trim(of)) {
  }
}

state_hash delivery::state_of(const table& of, const object_key& key) const {
  const auto* object = find(of, key);
  return object == nullptr ? absent_state : object->newest;
}

void delivery::visit(const std::function<void(const table&)>& take) const {
  for (const auto& [watch, of] : tables_) take(*of);
}

}  // namespace rw::dispatch
