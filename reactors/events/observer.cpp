#include "rw/reactors/events/observer.hpp"

#include "rw/k8s/objects/types.hpp"

#include <algorithm>
#include <utility>

namespace rw::observation {
namespace {

constexpr int waits_until_listed = 3;  ///< times `confirm_wait`

/// Reviews come in any version of a kind.
watch_event without_version(watch_event event) {
  event.gvk.version.clear();
  return event;
}

bool matches(std::string_view pattern, std::string_view name) {
  return pattern == "*" || pattern == name;
}

}  // namespace

void observer::set_watches(const observation_plan& from, core::time_point now) {
  std::vector<view> next;
  std::vector<managed_watch> added;
  const auto keep = [&](const managed_watch& watch, bool observed) {
    const auto known = std::ranges::find(views_, watch, &view::watch);
    const bool stays = known != views_.end() && (known->objects != nullptr) == observed;
    if (!stays) added.push_back(watch);
    next.push_back(stays ? *known : view{watch});
    if (observed && !stays) next.back().objects = &objects_.add(watch, now);
  };
  for (const auto& resource : from.resources) {
    for (const auto& watch : resource.watches) keep(watch, true);
  }
  for (const auto& other : from.unobserved) keep(other.watch, false);
  views_.swap(next);
  std::vector<std::string> managers;
  for (const auto& each : views_) managers.push_back(each.watch.manager);
  std::ranges::sort(managers);
  managers.erase(std::ranges::unique(managers).begin(), managers.end());
  objects_.set_managers(managers, now);
  if (!std::exchange(is_first_plan_, false)) {
    for (const auto& each : added)
      objects_.raise(each.manager, dispatch::resync_cause::watcher_changed);
  }
  for (const auto& old : next) {
    const bool stays = std::ranges::find(views_, old.watch, &view::watch) != views_.end();
    if (stays || old.objects == nullptr) continue;
    const bool is_replaced = std::ranges::any_of(
        added, [&](const managed_watch& each) { return is_same_resource(each, old.watch); });
    if (!is_replaced) raise_undecided(old);
    objects_.remove(old.watch, is_replaced, now);
  }
  release_uncovered();
}

/// The reviews that only a list could decide are not known one by one.
void observer::raise_undecided(const view& of) {
  if (of.list_for > of.listed) objects_.raise(of.watch.manager, dispatch::resync_cause::undecided);
}

observer::view* observer::find(const managed_watch& watch) {
  const auto at = std::ranges::find(views_, watch, &view::watch);
  return at == views_.end() || at->objects == nullptr ? nullptr : &*at;
}

void observer::set_type(const managed_watch& watch, const k8s::resource_type& type,
                        bool has_status) {
  auto* known = find(watch);
  if (known == nullptr) return;
  known->type = type;
  known->has_status = has_status;
  objects_.set_kind(*known->objects, type.gvk);
}

void observer::set_live(const managed_watch& watch, bool live, core::time_point now) {
  auto* known = find(watch);
  if (known == nullptr) return;
  known->live = live;
  known->observed = known->observed || live;
  objects_.set_live(*known->objects, live, now);
  if (live) return;
  known->list_at = core::time_point::max();
  known->by_reviews = false;
  release_uncovered();
}

void observer::give_up(const managed_watch& watch, core::time_point now) {
  set_live(watch, false, now);
  auto* known = find(watch);
  if (known == nullptr) return;
  known->observed = known->listing = false;
  dispatch::delivery::break_listing(*known->objects);
  raise_undecided(*known);
  known->list_for = core::time_point::min();
}

void observer::begin_listing(const managed_watch& watch, core::time_point now) {
  auto* known = find(watch);
  if (known == nullptr) return;
  known->began = now;
  known->listing = true;
  known->list_at = core::time_point::max();
  objects_.begin_listing(*known->objects, std::exchange(known->by_reviews, false), now);
}

bool observer::put(const managed_watch& watch, const k8s::object_key& key, state_hash state,
                   core::time_point now) {
  auto* known = find(watch);
  if (known == nullptr) return true;
  if (!objects_.put(*known->objects, key, state, now)) return false;
  if (!known->listing) shown(*known, key);
  return true;
}

void observer::erase(const managed_watch& watch, const k8s::object_key& key, core::time_point now) {
  auto* known = find(watch);
  if (known == nullptr) return;
  shown(*known, key);
  objects_.erase(*known->objects, key, now);
}

void observer::end_listing(const managed_watch& watch, core::time_point now) {
  auto* known = find(watch);
  if (known == nullptr) return;
  objects_.end_listing(*known->objects, now);
  known->listing = false;
  known->listed = known->began;
  if (known->live && known->list_for > known->began) known->list_at = known->list_for;
  for (auto at = open_.begin(); at != open_.end();) {
    const auto open = at++;
    if (concerns(*known, open->event) && list_decides(*open)) end(open);
  }
}

/// What was admitted shortly before a list may have been stored after it.
bool observer::list_decides(const open_review& open) const {
  return std::ranges::none_of(views_, [&](const view& view) {
    return concerns(view, open.event) && view.listed < open.newest + wait();
  });
}

/// A watch has shown the object, so it is alive: what is persisted it will show.
void observer::shown(const view& view, const k8s::object_key& key) {
  if (open_.empty() || !view.type) return;
  const auto& gvk = view.type->gvk;
  const auto at = open_by_event_.find({view.watch.manager, {gvk.group, "", gvk.kind}, key});
  if (at != open_by_event_.end()) end(at->second);
}

bool observer::concerns(const view& view, const watch_event& event) const {
  return view.watch.manager == event.manager && view.type &&
         view.type->gvk.group == event.gvk.group && view.type->gvk.kind == event.gvk.kind;
}

/// Returns true if live watches show all changes that the event may be of.
bool observer::is_covered(const watch_event& event) const {
  const auto found =
      std::ranges::find_if(views_, [&](const view& view) { return concerns(view, event); });
  if (found == views_.end()) return false;
  return std::ranges::all_of(views_, [&](const view& each) {
    const auto& watched = each.watch.watched;
    const bool same = each.watch.manager == event.manager &&
                      matches(watched.group, event.gvk.group) &&
                      matches(watched.plural, found->type->plural);
    return !same || each.live;
  });
}

void observer::accept(watch_event review, core::time_point now) {
  if (!is_covered(review)) {
    settle(std::move(review), now + options_.settle);
    return;
  }
  auto key = without_version(review);
  const auto known = open_by_event_.find(key);
  if (known != open_by_event_.end()) {
    known->second->newest = now;
  } else if (open_.size() >= options_.confirmations) {
    want_list(review, now, now + options_.confirm_wait);
  } else {
    open_.push_back({std::move(review), now, now});
    open_by_event_.emplace(std::move(key), std::prev(open_.end()));
  }
}

bool observer::missed(const watch_event& review, core::time_point now) {
  if (!is_covered(review)) return false;
  want_list(review, now, now + options_.confirm_wait);
  return true;
}

void observer::end(open_list::iterator open) {
  if (open->number != 0) --reading_;
  open_by_event_.erase(without_version(open->event));
  open_.erase(open);
}

void observer::settle(watch_event event, core::time_point due) {
  settling_.push_back({std::move(event), due});
}

/// Reviews whose objects are no longer covered by live watches are sent.
void observer::release_uncovered() {
  for (auto at = open_.begin(); at != open_.end();) {
    const auto open = at++;
    if (is_covered(open->event)) continue;
    settle(open->event, open->newest + options_.settle);
    end(open);
  }
}

void observer::want_list(const watch_event& event, core::time_point at, core::time_point covering) {
  for (auto& each : views_) {
    if (!concerns(each, event)) continue;
    each.list_at = std::min(each.list_at, at);
    each.list_for = std::max(each.list_for, covering);
  }
}

observer::confirmed observer::confirm(const confirmation& read, const confirm_result& result,
                                      core::time_point now) {
  using kind = confirm_result::kind;
  const auto& review = read.review;
  const auto at = open_by_event_.find(without_version(review));
  if (at == open_by_event_.end() || at->second->number != read.number) return confirmed::nothing;
  const auto open = at->second;
  open->number = 0;
  --reading_;
  // Another version of the object may differ where nothing has changed.
  const bool unknown =
      result.result == kind::failed || std::ranges::any_of(views_, [&](const view& view) {
        return concerns(view, review) && *view.type != read.type;
      });
  if (unknown) {
    if (!closed_) {
      want_list(review, now, open->newest + wait());
      return confirmed::nothing;
    }
    settle(review, now);
    end(open);
    return confirmed::nothing;
  }
  // The path of an object of a cluster-scoped kind is the same with any namespace.
  const bool is_another =
      result.result == kind::found && k8s::key_of(result.object) != review.watched;
  bool missed = false;
  for (auto& each : views_) {
    if (is_another || !concerns(each, review)) continue;
    const bool exists =
        result.result == kind::found && has_labels(result.object, each.watch.labels);
    const auto stored =
        exists ? state_of(result.object, each.watch.field, each.has_status) : absent_state;
    if (objects_.state_of(*each.objects, review.watched) == stored) continue;
    missed = true;
    each.list_at = std::min(each.list_at, now);
    if (exists) objects_.put(*each.objects, review.watched, stored, now);
    if (!exists) objects_.erase(*each.objects, review.watched, now);
  }
  // What was admitted shortly before the read may have been stored after it.
  const bool again = !is_another && open->newest + wait() > open->read_at;
  if (again) {
    open->accepted = open->newest;
    open->read_at = core::time_point::min();
    open_.splice(open_.end(), open_, open);
  } else {
    end(open);
  }
  if (missed) return confirmed::missed;
  return again ? confirmed::nothing : confirmed::not_persisted;
}

observer::decision observer::poll(core::time_point now) {
  decision result;
  if (next_settled(result, now) || next_open(result, now)) return result;
  next_list(result, now);
  return result;
}

/// By now a watch may be live that shows what became of the write.
bool observer::next_settled(decision& result, core::time_point now) {
  while (!settling_.empty()) {
    auto& first = settling_.front();
    const bool due = settling_.size() > options_.settling || first.due <= now;
    if (!due) {
      result.until = first.due;
      return false;
    }
    auto event = std::move(first.event);
    settling_.pop_front();
    if (!closed_ && is_covered(event)) {
      accept(std::move(event), now);
      continue;
    }
    sending(event);
    result.send = std::move(event);
    return true;
  }
  return false;
}

void observer::sending(const watch_event& review) const {
  for (const auto& each : views_) {
    const bool watches = each.objects != nullptr && concerns(each, review);
    if (watches) dispatch::delivery::told_by_review(*each.objects);
  }
}

/// Has the oldest open review checked. False: none is due.
bool observer::next_open(decision& result, core::time_point now) {
  const auto next = std::ranges::find(open_, 0U, &open_review::number);
  if (next == open_.end()) return false;
  if (reading_ < options_.reads) {
    const auto due = std::max(closed_ ? next->newest : next->accepted, next->read_at) + wait();
    result.until = std::min(result.until, due);
    if (due > now) return false;
    result.confirm = read(*next, now);
    return true;
  }
  if (now >= overdue_at_) check_overdue(now);
  result.until = std::min(result.until, overdue_at_);
  return false;
}

/// Has a list decide about reviews that could not be read in time.
void observer::check_overdue(core::time_point now) {
  overdue_at_ = now + options_.confirm_wait;
  const auto limit = now - waits_until_listed * options_.confirm_wait;
  for (const auto& open : open_) {
    if (open.accepted > limit) break;
    want_list(open.event, now, open.newest + wait());
  }
}

bool observer::next_list(decision& result, core::time_point now) {
  for (auto& each : views_) {
    if (each.list_at == core::time_point::max()) continue;
    const auto due = std::max(each.list_at, each.began + options_.list_pause);
    result.until = std::min(result.until, due);
    if (due > now) continue;
    each.list_at = now + options_.list_pause;  // unless it begins
    // One list is that of all who share its watch.
    for (auto& other : views_) {
      const bool shares =
          other.watch.watched == each.watch.watched && other.watch.labels == each.watch.labels;
      other.by_reviews = other.by_reviews || shares;
    }
    result.list = each.watch;
    return true;
  }
  return false;
}

observer::confirmation observer::read(open_review& open, core::time_point now) {
  const auto of =
      std::ranges::find_if(views_, [&](const view& view) { return concerns(view, open.event); });
  open.number = ++reads_;
  open.read_at = now;
  ++reading_;
  return {open.event, *of->type, open.number};
}

bool observer::wants_list() const noexcept {
  return std::ranges::any_of(
      views_, [](const view& each) { return each.list_at != core::time_point::max(); });
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
