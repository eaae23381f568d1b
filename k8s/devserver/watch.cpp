#include "rw/k8s/devserver/watch.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/refusals.hpp"

#include <algorithm>

namespace rw::k8s::devserver {

watch_counters::watch_counters(core::metrics& registry, const std::string& server)
    : open(core::make_gauge(registry, "rw_devserver_watches", "Number of open watches",
                            {{"server", server}})),
      events(core::make_counter(registry, "rw_devserver_watch_events_total",
                                "Number of events sent to watches", {{"server", server}})),
      expired(core::make_counter(
          registry, "rw_devserver_watches_expired_total",
          "Number of watches ended with 410: their version is no longer in the history",
          {{"server", server}})) {}

watch::watch(watch_request wanted, watch_schedule& schedule, watch_counters& counters)
    : wanted_(std::move(wanted)),
      schedule_(schedule),
      counters_(counters),
      seen_(wanted_.from_state ? wanted_.in->objects.version() : wanted_.version),
      ends_at_(schedule.now() + wanted_.timeout),
      too_old_(!wanted_.from_state && !wanted_.objects->reaches_back_to(wanted_.version)) {
  if (wanted_.from_state) {
    initial_ = wanted_.objects->all(wanted_.selected.ns());
    std::reverse(initial_.begin(), initial_.end());
  }
  wanted_.objects->add(this);
  counters_.open.Increment();
  sleep();
}

watch::~watch() {
  wanted_.objects->remove(this);
  schedule_.remove(wakes_at_);
  counters_.open.Decrement();
}

void watch::sleep() {
  auto wake_time = ends_at_;
  if (wanted_.bookmarks)
    wake_time = std::min(wake_time, schedule_.now() + wanted_.bookmark_interval);
  schedule_.set(*this, wakes_at_, wake_time);
}

void watch::due() {
  if (wanted_.silent) return;
  if (schedule_.now() >= ends_at_) {
    ended_ = true;
  } else {
    sleep();
  }
  bookmark_due_ = wanted_.bookmarks;
  wake();
}

bool watch::drain() {
  ended_ = true;
  wake();
  return true;
}

void watch::wake() {
  if (ready_) ready_();
}

http::body_source::state watch::read(std::string& into, std::size_t room) {
  room += into.size();
  if (wanted_.silent) return ended_ ? state::end : state::pending;
  if (broken()) return wanted_.ends ? state::end : state::broken;
  if (!read_initial(into, room)) return state::more;
  if (wanted_.objects->closed()) return state::end;
  if (too_old_ || !wanted_.objects->holds_all_since(seen_)) {
    append_error(into,
                 expired("too old resource version: " + std::to_string(seen_) + " (" +
                         std::to_string(wanted_.objects->forgotten()) + ")"),
                 wanted_.show);
    counters_.expired.Increment();
    return state::end;
  }
  if (!read_changes(into, room)) return state::more;
  seen_ = std::max(seen_, wanted_.in->objects.version());
  if (bookmark_due_) append_bookmark(into, seen_, false);
  bookmark_due_ = false;
  return ended_ ? state::end : state::pending;
}

/// Returns true once all initial objects were sent.
bool watch::read_initial(std::string& into, std::size_t room) {
  while (!initial_.empty()) {
    if (into.size() >= room || broken()) return false;
    const auto change = std::move(initial_.back());
    initial_.pop_back();
    if (wanted_.selected.matches(*change)) append_plain(into, "ADDED", *change);
  }
  if (wanted_.initial_bookmark) {
    wanted_.initial_bookmark = false;
    append_bookmark(into, seen_, true);
  }
  return !broken();
}

/// Returns true once all changes so far were sent.
bool watch::read_changes(std::string& into, std::size_t room) {
  const auto& history = *wanted_.objects;
  for (auto at = history.since(seen_); at != history.end(); ++at) {
    if (into.size() >= room || broken()) return false;
    append(into, *at);
    seen_ = at->version();
  }
  return !broken();
}

void watch::append(std::string& into, const change& change) {
  const bool before = change.before && wanted_.selected.matches(*change.before);
  const bool after = !change.deleted && wanted_.selected.matches(*change.after);
  if (after) {
    append_plain(into, before ? "MODIFIED" : "ADDED", *change.after);
  } else if (before && change.deleted) {
    append_plain(into, "DELETED", *change.after);
  } else if (before) {
    append_departure(into, change);
  }
}

/// Appends the DELETED event of an object that left the selection: its last state within it, under
/// the version of the change.
void watch::append_departure(std::string& into, const change& change) {
  auto object = change.before->parse();
  object_in(object.as_object(), "metadata")["resourceVersion"] = std::to_string(change.version());
  append_plain(into, "DELETED", record(change.before->key(), change.version(), std::move(object)));
}

void watch::append_plain(std::string& into, std::string_view type, const record& record) {
  const auto begin = into.size();
  append_event(into, type, record, wanted_.view, wanted_.show);
  counters_.events.Increment();
  if (wanted_.break_after) --*wanted_.break_after;
  if (broken() && wanted_.torn) into.resize(begin + (into.size() - begin) / 2);
}

void watch::append_bookmark(std::string& into, std::uint64_t version, bool ends_initial_events) {
  devserver::append_bookmark(into, version, wanted_.view, wanted_.show, ends_initial_events);
}

}  // namespace rw::k8s::devserver
