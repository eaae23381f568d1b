#include "reactors/observation/observed_objects.hpp"

#include "core/hash.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rw::observation {
namespace {

struct key_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view key) const noexcept {
    return core::string_hash().add(key).value();
  }
};

k8s::object_key split(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

}  // namespace

class observed_objects::table {
 public:
  table(managed_watch of, backlog& into) : watch(std::move(of)), resyncs(into) {}

  const managed_watch watch;
  backlog& resyncs;
  std::unordered_map<std::string, record, key_hash, std::equal_to<>> records;
  std::uint32_t listing = 0;
  bool is_listing = false;
};

observed_objects::observed_objects() = default;
observed_objects::~observed_objects() = default;

observed_objects::table& observed_objects::add(const managed_watch& watch) {
  auto& entry = tables_[watch];
  if (entry) return *entry;
  auto& resyncs = backlogs_[watch.manager];
  ++resyncs.tables;
  entry = std::make_unique<table>(watch, resyncs);
  return *entry;
}

void observed_objects::remove(const managed_watch& watch) {
  const auto at = tables_.find(watch);
  if (at == tables_.end()) return;
  for (auto& [key, object] : at->second->records) {
    set(object, state::delivered);
    if (object.newest == absent_mark) --absent_;
  }
  size_ -= at->second->records.size();
  const bool last = --at->second->resyncs.tables == 0;
  tables_.erase(at);
  if (last) backlogs_.erase(watch.manager);
}

void observed_objects::remember(table& of, std::string_view key, mark delivered) {
  if (!of.records.contains(key)) insert(of, key).newest = delivered;
}

observed_objects::record& observed_objects::insert(table& of, std::string_view key) {
  const auto at = of.records.try_emplace(std::string(key)).first;
  at->second.of = &of;
  at->second.key = &at->first;
  ++size_;
  ++version_;
  return at->second;
}

void observed_objects::set(record& object, state to) {
  object.unlink();
  undelivered_ =
      undelivered_ + (to != state::delivered ? 1 : 0) - (object.state != state::delivered ? 1 : 0);
  auto& resyncs = object.of->resyncs;
  const std::size_t opened = to == state::sent_resync ? 1 : 0;
  const std::size_t ended = object.state == state::sent_resync ? 1 : 0;
  resyncs.open = resyncs.open + opened - ended;
  open_resyncs_ = open_resyncs_ + opened - ended;
  object.state = to;
  if (to == state::live) live_.push_back(object);
  if (to == state::resync) resyncs.waiting.push_back(object);
  ++version_;
}

void observed_objects::change_to(table& of, record& object, mark now) {
  absent_ = absent_ + (now == absent_mark ? 1 : 0) - (object.newest == absent_mark ? 1 : 0);
  object.newest = now;
  const bool queued = object.state == state::live || object.state == state::resync;
  if (!of.is_listing && object.state != state::live) set(object, state::live);
  if (of.is_listing && !queued) set(object, state::resync);
}

void observed_objects::begin_listing(table& of) {
  ++of.listing;
  of.is_listing = true;
}

void observed_objects::put(table& of, const k8s::object_key& key, mark now) {
  const auto name = k8s::to_string(key);
  const auto at = of.records.find(name);
  auto& object = at == of.records.end() ? insert(of, name) : at->second;
  object.listing = of.listing;
  if (object.newest != now) change_to(of, object, now);
}

void observed_objects::erase(table& of, const k8s::object_key& key) {
  const auto at = of.records.find(k8s::to_string(key));
  if (at == of.records.end() || at->second.newest == absent_mark) return;
  change_to(of, at->second, absent_mark);
}

void observed_objects::end_listing(table& of) {
  for (auto& [key, object] : of.records) {
    const bool listed = object.listing == of.listing || object.newest == absent_mark;
    if (!listed) change_to(of, object, absent_mark);
  }
  of.is_listing = false;
}

mark observed_objects::state_of(const table& of, const k8s::object_key& key) const {
  const auto at = of.records.find(k8s::to_string(key));
  return at == of.records.end() ? absent_mark : at->second.newest;
}

bool observed_objects::knows(const table& of, const k8s::object_key& key) const {
  return of.records.contains(k8s::to_string(key));
}

observed_objects::change observed_objects::hand_out(record& object, state as) {
  set(object, as);
  object.sequence = ++sequence_;
  return change{object.of->watch, split(*object.key), object.sequence};
}

std::optional<observed_objects::change> observed_objects::next_live() {
  if (live_.empty()) return std::nullopt;
  return hand_out(live_.front(), state::sent);
}

std::optional<observed_objects::change> observed_objects::next_resync(std::size_t window,
                                                                      core::time_point now) {
  auto at = backlogs_.upper_bound(turn_);
  for (std::size_t tried = 0; tried < backlogs_.size(); ++tried, ++at) {
    if (at == backlogs_.end()) at = backlogs_.begin();
    auto& [manager, resyncs] = *at;
    if (!resyncs.may_send(window) || resyncs.from > now) continue;
    turn_ = manager;
    return hand_out(resyncs.waiting.front(), state::sent_resync);
  }
  return std::nullopt;
}

core::time_point observed_objects::resumes(std::size_t window) const {
  auto first = core::time_point::max();
  for (const auto& [manager, resyncs] : backlogs_) {
    if (resyncs.may_send(window)) first = std::min(first, resyncs.from);
  }
  return first;
}

/// Returns the object if its newest state is covered by the event with this sequence.
observed_objects::record* observed_objects::sent_as(table& of, const k8s::object_key& key,
                                                    std::uint64_t sequence) {
  const auto at = of.records.find(k8s::to_string(key));
  if (at == of.records.end()) return nullptr;
  auto& object = at->second;
  const bool sent = object.state == state::sent || object.state == state::sent_resync;
  return sent && object.sequence <= sequence ? &object : nullptr;
}

void observed_objects::delivered(table& of, const k8s::object_key& key, std::uint64_t sequence) {
  auto* object = sent_as(of, key, sequence);
  if (object == nullptr) return;
  set(*object, state::delivered);
  if (object->newest != absent_mark) return;
  of.records.erase(of.records.find(*object->key));
  --size_;
  --absent_;
}

void observed_objects::lost(table& of, const k8s::object_key& key, std::uint64_t sequence,
                            core::time_point until) {
  of.resyncs.from = until;
  auto* object = sent_as(of, key, sequence);
  if (object != nullptr) set(*object, state::resync);
}

bool observed_objects::visit(position& from, std::size_t count, const watch_visitor& watch,
                             const object_visitor& object) const {
  auto at = from.watch ? tables_.lower_bound(*from.watch) : tables_.begin();
  for (; at != tables_.end(); ++at) {
    const auto& [of, entry] = *at;
    const auto& records = entry->records;
    // A table that has grown has its objects in other buckets.
    const bool continues = from.watch == of && from.buckets == records.bucket_count();
    if (!continues) from = {of, 0, records.bucket_count()};
    watch(of);
    for (; from.bucket < from.buckets; ++from.bucket) {
      if (count-- == 0) return true;
      for (auto each = records.begin(from.bucket); each != records.end(from.bucket); ++each) {
        const auto& [key, known] = *each;
        object(key, known.state == state::delivered ? known.newest : unknown_mark);
      }
    }
  }
  return false;
}

}  // namespace rw::observation
