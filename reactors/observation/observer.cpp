#include "reactors/observation/observer.hpp"

#include "k8s/objects/types.hpp"

#include <algorithm>
#include <utility>

namespace rw::observation {
namespace {

constexpr int checks_until_sent = 3;  ///< times `confirm_wait`

/// Reviews come in any version of a kind.
watch_event without_version(watch_event event) {
  event.gvk.version.clear();
  return event;
}

bool matches(std::string_view pattern, std::string_view name) {
  return pattern == "*" || pattern == name;
}

}  // namespace

void observer::set_watches(const plan& from) {
  std::vector<view> next;
  for (const auto& resource : from.resources) {
    for (const auto& watch : resource.watches) {
      auto* known = find(watch);
      next.push_back(known != nullptr ? *known : view{watch, &objects_.add(watch)});
    }
  }
  std::vector<managed_watch> removed;
  for (const auto& old : views_) {
    const bool stays = std::ranges::find(next, old.watch, &view::watch) != next.end();
    if (!stays && old.objects != nullptr) removed.push_back(old.watch);
  }
  for (const auto& other : from.others) next.push_back(view{other.watch});
  views_.swap(next);
  for (const auto& watch : removed) objects_.remove(watch);
  release_uncovered();
}

observer::view* observer::find(const managed_watch& watch) {
  const auto at = std::ranges::find(views_, watch, &view::watch);
  return at == views_.end() || at->objects == nullptr ? nullptr : &*at;
}

void observer::set_type(const managed_watch& watch, const k8s::resource_type& type) {
  if (auto* known = find(watch)) known->type = type;
}

void observer::set_live(const managed_watch& watch, bool live) {
  auto* known = find(watch);
  if (known == nullptr) return;
  known->live = live;
  known->observed = known->observed || live;
  if (!live) release_uncovered();
}

void observer::give_up(const managed_watch& watch) {
  set_live(watch, false);
  if (auto* known = find(watch)) known->observed = false;
}

void observer::begin_listing(const managed_watch& watch) {
  if (auto* known = find(watch)) objects_.begin_listing(*known->objects);
}

bool observer::put(const managed_watch& watch, const k8s::object_key& key, mark now) {
  auto* known = find(watch);
  if (known == nullptr) return true;
  const bool full = objects_.existing() >= options_.objects;
  if (full && !objects_.knows(*known->objects, key)) return false;
  shown(*known, key);
  objects_.put(*known->objects, key, now);
  return true;
}

void observer::erase(const managed_watch& watch, const k8s::object_key& key) {
  auto* known = find(watch);
  if (known == nullptr) return;
  shown(*known, key);
  objects_.erase(*known->objects, key);
}

void observer::end_listing(const managed_watch& watch) {
  if (auto* known = find(watch)) objects_.end_listing(*known->objects);
}

/// A watch has shown the object, so it is alive: what is persisted it will show.
void observer::shown(const view& one, const k8s::object_key& key) {
  if (open_.empty() || !one.type) return;
  const auto& gvk = one.type->gvk;
  const auto at = open_by_event_.find({one.watch.manager, {gvk.group, "", gvk.kind}, key, {}});
  if (at != open_by_event_.end()) end(at->second);
}

bool observer::concerns(const view& one, const watch_event& event) const {
  return one.watch.manager == event.manager && one.type && one.type->gvk.group == event.gvk.group &&
         one.type->gvk.kind == event.gvk.kind;
}

observer::route observer::route_of(const watch_event& event) const {
  const auto found =
      std::ranges::find_if(views_, [&](const view& one) { return concerns(one, event); });
  if (found == views_.end()) return route::settle;
  const auto& plural = found->type->plural;
  bool live = true;
  bool observed = true;
  for (const auto& each : views_) {
    const auto& watched = each.watch.watched;
    const bool same = each.watch.manager == event.manager &&
                      matches(watched.group, event.gvk.group) && matches(watched.plural, plural);
    live = live && (!same || each.live);
    observed = observed && (!same || each.observed);
  }
  if (observed && options_.source == event_source::watch) return route::ignore;
  return live && options_.source == event_source::both ? route::confirm : route::settle;
}

void observer::accept(watch_event review, core::time_point now) {
  const auto to = route_of(review);
  if (to == route::ignore) return;
  if (to == route::settle || open_.size() >= options_.confirmations) {
    settle(std::move(review), cause::review, now + options_.settle);
    return;
  }
  auto key = without_version(review);
  const auto known = open_by_event_.find(key);
  if (known != open_by_event_.end()) {
    known->second->newest = now;
    return;
  }
  open_.push_back({std::move(review), now, now});
  open_by_event_.emplace(std::move(key), std::prev(open_.end()));
}

void observer::end(open_list::iterator open) {
  if (open->number != 0) --reading_;
  open_by_event_.erase(without_version(open->event));
  open_.erase(open);
}

void observer::settle(watch_event event, cause reason, core::time_point due) {
  settling_.push_back({std::move(event), reason, due});
}

/// Reviews whose objects are no longer covered by live watches are sent.
void observer::release_uncovered() {
  for (auto at = open_.begin(); at != open_.end();) {
    const auto open = at++;
    if (route_of(open->event) == route::confirm) continue;
    settle(open->event, cause::review, open->newest + options_.settle);
    end(open);
  }
}

observer::confirmed observer::confirm(const confirmation& read, const confirm_result& result,
                                      core::time_point now) {
  using kind = confirm_result::kind;
  confirmed outcome;
  const auto& review = read.review;
  const auto at = open_by_event_.find(without_version(review));
  if (at == open_by_event_.end() || at->second->number != read.number) return outcome;
  // What was admitted shortly before the read may have been stored after it.
  const auto newest = at->second->newest;
  const bool again = newest + options_.confirm_wait > at->second->read_at;
  end(at->second);
  // The path of an object of a cluster-scoped kind is the same with any namespace.
  const bool is_another =
      result.outcome == kind::found && k8s::key_of(result.object) != review.watched;
  if (is_another) return {.not_persisted = true};
  bool unverified = result.outcome == kind::failed;
  for (const auto& each : views_) {
    if (unverified || !concerns(each, review)) continue;
    // Another version of the object may differ where nothing has changed.
    unverified = *each.type != read.type;
    const bool exists =
        result.outcome == kind::found && has_labels(result.object, each.watch.labels);
    const auto stored = exists ? mark_of(result.object, each.watch.field) : absent_mark;
    if (unverified || objects_.state_of(*each.objects, review.watched) == stored) continue;
    outcome.lagging.push_back(each.watch);
    if (exists) objects_.put(*each.objects, review.watched, stored);
    if (!exists) objects_.erase(*each.objects, review.watched);
  }
  if (unverified) settle(review, cause::unverified, now);
  if (again) accept(review, newest);
  outcome.not_persisted = !unverified && !again && outcome.lagging.empty();
  return outcome;
}

void observer::delivered(const watch_event& event, std::uint64_t sequence) {
  for (const auto& each : views_) {
    if (concerns(each, event)) objects_.delivered(*each.objects, event.watched, sequence);
  }
}

void observer::lost(const watch_event& event, std::uint64_t sequence, core::time_point now) {
  const auto until = now + options_.loss_pause;
  for (const auto& each : views_) {
    if (concerns(each, event)) objects_.lost(*each.objects, event.watched, sequence, until);
  }
}

watch_event observer::event_of(const observed_objects::change& change) const {
  const auto at = std::ranges::find(views_, change.watch, &view::watch);
  watch_event event{change.watch.manager, at->type->gvk, change.key, {}};
  event.mark = change.sequence;
  return event;
}

observer::decision observer::poll(core::time_point now) {
  decision result;
  if (const auto change = objects_.next_live()) {
    result.send = event_of(*change);
    return result;
  }
  if (closed_) release_all(now);
  if (!settling_.empty()) {
    auto& first = settling_.front();
    if (closed_ || settling_.size() > options_.settling || first.due <= now) {
      result.send = std::move(first.event);
      result.reason = first.reason;
      settling_.pop_front();
      return result;
    }
    result.until = first.due;
  }
  if (next_open(result, now) || closed_) return result;
  if (const auto change = objects_.next_resync(options_.resyncs, now)) {
    result.send = event_of(*change);
    result.reason = cause::resync;
    return result;
  }
  result.until = std::min(result.until, objects_.resumes(options_.resyncs));
  return result;
}

/// Has the oldest open review checked, or sent if that takes too long. False: none is due.
bool observer::next_open(decision& result, core::time_point now) {
  const auto next = std::ranges::find(open_, 0U, &open_review::number);
  if (next == open_.end()) return false;
  const bool may_read = reading_ < options_.reads;
  const auto due = next->accepted + options_.confirm_wait * (may_read ? 1 : checks_until_sent);
  result.until = std::min(result.until, due);
  if (due > now) return false;
  if (may_read) {
    result.confirm = read(*next, now);
  } else {
    const auto newest = next->newest;
    result.send = std::move(next->event);
    result.reason = cause::unverified;
    open_by_event_.erase(without_version(*result.send));
    open_.erase(next);
    // What was admitted shortly before may be stored after the event.
    if (newest + options_.confirm_wait > now) accept(*result.send, newest);
  }
  return true;
}

void observer::release_all(core::time_point now) {
  for (auto& open : open_) settle(std::move(open.event), cause::review, now);
  open_.clear();
  open_by_event_.clear();
}

observer::confirmation observer::read(open_review& open, core::time_point now) {
  const auto of =
      std::ranges::find_if(views_, [&](const view& one) { return concerns(one, open.event); });
  open.number = ++reads_;
  open.read_at = now;
  ++reading_;
  return {open.event, *of->type, open.number};
}

bool observer::is_live(const managed_watch& watch) const {
  const auto at = std::ranges::find(views_, watch, &view::watch);
  return at != views_.end() && at->live;
}

std::size_t observer::live_watches() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(views_, true, &view::live));
}

std::size_t observer::unobserved_watches() const noexcept {
  return static_cast<std::size_t>(std::ranges::count(views_, false, &view::observed));
}

}  // namespace rw::observation
