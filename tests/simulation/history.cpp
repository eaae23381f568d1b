#include "tests/simulation/history.hpp"

#include <algorithm>
#include <utility>

namespace rw::simulation {
namespace {

/// As a Watcher sees it: `reactors/events/digest.hpp` says what counts.
std::string digest_of(const managed_watch& watch, const model_kind& kind,
                      const model_object* object) {
  if (object == nullptr || (!watch.labels.empty() && !object->labelled)) return {};
  const auto part = watch.field == "status" ? object->status : object->spec;
  const bool has_generation = watch.field != "status" && kind.has_status;
  return object->uid + (object->deleting ? " deleting " : " ") + std::to_string(part) +
         (has_generation ? " of " + std::to_string(object->generation) : "");
}

}  // namespace

void history::violate(const std::string& what) {
  in_.note("VIOLATION: " + what);
  violations_.push_back(what);
}

bool history::is_excused(const managed_watch& watch, const k8s::object_key& key, const name& of,
                         const view& seen) const {
  if (limits.reviews_only) {
    const auto review = reviews_.find(of);
    return review == reviews_.end() || in_.now() > review->second + limits.settle;
  }
  const bool is_told_all = !limits.without_resyncs.contains(watch.manager);
  const bool is_known =
      std::ranges::any_of(pods, [&](const observer& each) { return each.knows(watch, key); });
  return !is_told_all && seen.digest.empty() && !is_known;
}

void history::persisted(const model_kind& kind, const k8s::object_key& key, const model_object* now,
                        bool restored) {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    const auto& watch = watches_[i];
    if (watch.watched.plural != kind.plural || watch.watched.group != kind.group) continue;
    const name of{watch.manager, kind.kind + " " + key.name};
    auto& seen = objects_[of][i];
    auto digest = digest_of(watch, kind, now);
    if (digest == seen.digest) continue;
    seen.digest = std::move(digest);
    seen.changed = restored && seen.digest == seen.known ? 0 : ++order_;
    seen.since = in_.now();
    seen.excused = is_excused(watch, key, of, seen);
    ++changes_;
  }
}

void history::reviewed(const watch_event& review) {
  reviews_[{review.manager, review.gvk.kind + " " + review.watched.name}] = in_.now();
}

void history::told(const watch_event& event) {
  for (const auto& each : pods) each.on_event();
  const auto what = event.gvk.kind + " " + event.watched.name;
  in_.note("told " + event.manager + " " + what);
  ++told_;
  ++order_;
  for (auto& [index, seen] : objects_[{event.manager, what}]) read(seen);
}

void history::read(view& seen) const {
  seen.read = order_;
  seen.known = seen.digest;
}

void history::told(const std::string& manager, resync_reason why) {
  in_.note("resync of " + manager + ": " + std::string(to_string(why)));
  ++resyncs_[to_string(why)];
  read_all(manager);
}

void history::started(const std::string& manager) {
  in_.note(manager + " starts");
  read_all(manager);
}

void history::read_all(const std::string& manager) {
  ++order_;
  for (auto& [of, views] : objects_) {
    if (of.first != manager) continue;
    for (auto& [index, seen] : views) read(seen);
  }
}

void history::want(const std::vector<managed_watch>& watches) {
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    wanted_[i] = std::ranges::find(watches, watches_[i]) != watches.end();
  }
  forgotten();
}

void history::excuse(const std::function<bool(const name&, const view&)>& which) {
  for (auto& [of, views] : objects_) {
    for (auto& [index, seen] : views) {
      if (seen.changed > seen.read && which(of, seen)) seen.excused = true;
    }
  }
}

void history::forgotten(std::string_view manager) {
  ended();
  if (!limits.reviews_only) return;
  // Their writes may be stored yet.
  if (manager.empty()) reviews_.clear();
  excuse([&](const name& of, const view&) { return manager.empty() || of.first == manager; });
}

void history::ended() {
  excuse([this](const name& of, const view& seen) {
    return seen.digest.empty() && limits.without_resyncs.contains(of.first);
  });
}

std::vector<std::string> history::list(const std::function<bool(const view&)>& which) const {
  std::vector<std::string> names;
  for (const auto& [of, views] : objects_) {
    for (const auto& [index, seen] : views) {
      if (!wanted_[index] || seen.excused || seen.read > seen.changed || !which(seen)) continue;
      names.push_back(of.first + " " + of.second + " (" + watches_[index].field + ")");
    }
  }
  return names;
}

std::vector<std::string> history::missing() const {
  return list([](const view&) { return true; });
}

std::vector<std::string> history::late(time_point since) const {
  return list(
      [since](const view& seen) { return seen.since <= since && seen.known != seen.digest; });
}

}  // namespace rw::simulation
