#include "reactors/observation/observed_objects.hpp"

#include "core/hash.hpp"

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
  explicit table(managed_watch of) : watch(std::move(of)) {}

  const managed_watch watch;
  std::unordered_map<std::string, record, key_hash, std::equal_to<>> records;
  std::uint32_t listing = 0;
  bool is_listing = false;
};

observed_objects::observed_objects() = default;
observed_objects::~observed_objects() = default;

observed_objects::table& observed_objects::add(const managed_watch& watch) {
  auto& entry = tables_[watch];
  if (!entry) entry = std::make_unique<table>(watch);
  return *entry;
}

void observed_objects::remove(const managed_watch& watch) {
  const auto at = tables_.find(watch);
  if (at == tables_.end()) return;
  for (auto& [key, object] : at->second->records) set(object, state::delivered);
  size_ -= at->second->records.size();
  tables_.erase(at);
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
  open_resyncs_ = open_resyncs_ + (to == state::sent_resync ? 1 : 0) -
                  (object.state == state::sent_resync ? 1 : 0);
  object.state = to;
  if (to == state::live) live_.push_back(object);
  if (to == state::resync) resyncs_.push_back(object);
  ++version_;
}

void observed_objects::change_to(table& of, record& object, mark now) {
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

std::optional<observed_objects::change> observed_objects::next(bool resyncs) {
  const bool live = !live_.empty();
  if (!live && (!resyncs || resyncs_.empty())) return std::nullopt;
  auto& object = live ? live_.front() : resyncs_.front();
  set(object, live ? state::sent : state::sent_resync);
  object.sequence = ++sequence_;
  return change{object.of->watch, split(*object.key), object.sequence};
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
}

void observed_objects::lost(table& of, const k8s::object_key& key, std::uint64_t sequence) {
  auto* object = sent_as(of, key, sequence);
  if (object != nullptr) set(*object, state::resync);
}

void observed_objects::visit(const watch_visitor& watch, const object_visitor& object) const {
  for (const auto& [of, entry] : tables_) {
    watch(of, entry->records.size());
    for (const auto& [key, each] : entry->records) {
      object(key, each.state == state::delivered ? each.newest : unknown_mark);
    }
  }
}

}  // namespace rw::observation
