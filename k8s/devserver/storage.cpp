#include "rw/k8s/devserver/storage.hpp"

#include "rw/core/json_text.hpp"
#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

std::string_view namespace_prefix(std::string& space, std::string_view ns) {
  space = ns;
  space += '/';
  return space;
}

std::unique_ptr<const std::vector<std::string>> owners_of(const json::value& metadata) {
  const auto* references = devserver::find(metadata, {"ownerReferences"});
  if (references == nullptr || !references->is_array()) return nullptr;
  std::vector<std::string> uids;
  for (const auto& reference : references->get_array())
    uids.emplace_back(find_string(reference, {"uid"}));
  if (uids.empty()) return nullptr;
  return std::make_unique<const std::vector<std::string>>(std::move(uids));
}

}  // namespace

record::record(object_key key, std::uint64_t version, json::value object)
    : path_(storage_path(key.ns, key.name)),
      version_(version),
      ns_length_(static_cast<std::uint32_t>(key.ns.size())) {
  const auto& fields = object.as_object();
  text_ = "{\"apiVersion\":";
  core::append_json_string(text_, find_string(object, {"apiVersion"}));
  text_ += ",\"kind\":";
  core::append_json_string(text_, find_string(object, {"kind"}));
  text_ += ',';
  rest_ = static_cast<std::uint32_t>(text_.size());
  text_ += "\"metadata\":";
  const auto& metadata = fields.at("metadata");
  text_ += json::serialize(metadata);
  metadata_end_ = static_cast<std::uint32_t>(text_.size());
  for (const auto& [name, value] : fields) {
    if (name == "apiVersion" || name == "kind" || name == "metadata") continue;
    text_ += ',';
    core::append_json_string(text_, {name.data(), name.size()});
    text_ += ':';
    text_ += json::serialize(value);
  }
  text_ += '}';
  text_.shrink_to_fit();
  const auto* labels = devserver::find(metadata, {"labels"});
  if (labels != nullptr && labels->is_object() && !labels->get_object().empty()) {
    labels_ = std::make_unique<const json::value>(*labels, json::storage_ptr());
  }
  owners_ = owners_of(metadata);
  deleted_ = !find_string(metadata, {"deletionTimestamp"}).empty();
}

std::string_view record::metadata() const noexcept {
  constexpr auto name = std::string_view("\"metadata\":").size();
  return std::string_view(text_).substr(rest_ + name, metadata_end_ - rest_ - name);
}

json::value record::parse() const {
  std::string reason;
  auto value = parse_json(text_, reason);
  if (!value) throw std::logic_error("a stored object is no JSON: " + reason);
  return std::move(*value);
}

std::string storage_path(std::string_view ns, std::string_view name) {
  std::string path(ns);
  if (!ns.empty()) path += '/';
  path += name;
  return path;
}

record_ptr collection::find(std::string_view path) const {
  const auto at = objects_.find(path);
  return at == objects_.end() ? nullptr : *at;
}

void collection::visit(std::string_view from,
                       const std::function<bool(const record_ptr&)>& visit) const {
  for (auto at = objects_.lower_bound(from); at != objects_.end(); ++at) {
    if (!visit(*at)) return;
  }
}

std::vector<record_ptr> collection::all(std::string_view ns) const {
  std::vector<record_ptr> result;
  std::string space;
  if (ns.empty()) result.reserve(objects_.size());
  visit(ns.empty() ? ns : namespace_prefix(space, ns), [&](const record_ptr& record) {
    if (!ns.empty() && record->ns() != ns) return false;
    result.push_back(record);
    return true;
  });
  return result;
}

bool collection::all_at(std::uint64_t version, std::string_view ns,
                        std::vector<record_ptr>& into) const {
  if (!reaches_back_to(version)) return false;
  // The state of each path before its first change after `version`; null: absent.
  std::map<std::string_view, record_ptr> undone;
  for (auto at = since(version); at != history_.end(); ++at) {
    undone.emplace(at->after->path(), at->before);
  }
  for (auto& record : all(ns)) {
    if (!undone.contains(record->path())) into.push_back(std::move(record));
  }
  for (const auto& [path, record] : undone) {
    if (record && (ns.empty() || record->ns() == ns)) into.push_back(record);
  }
  std::sort(into.begin(), into.end(), by_path());
  return true;
}

std::deque<change>::const_iterator collection::since(std::uint64_t version) const {
  return std::upper_bound(
      history_.begin(), history_.end(), version,
      [](std::uint64_t v, const change& change) { return v < change.version(); });
}

void collection::forget(std::uint64_t version) {
  const auto first_kept = since(version);
  if (first_kept != history_.begin()) lost_ = std::prev(first_kept)->version();
  history_.erase(history_.begin(), first_kept);
  forgotten_ = std::max(forgotten_, version);
}

void collection::close() {
  closed_ = true;
  tell();
}

void collection::remove(follower* follower) noexcept {
  const auto at = std::find(followers_.begin(), followers_.end(), follower);
  if (at == followers_.end()) return;
  *at = followers_.back();
  followers_.pop_back();
}

void collection::keep(change change) {
  history_.push_back(std::move(change));
  if (history_.size() > most_) {
    forgotten_ = lost_ = history_.front().version();
    history_.pop_front();
  }
  tell();
}

void collection::tell() {
  // Backwards, since a follower may leave from within `changed`: the last one, already notified,
  // takes its place.
  for (auto i = followers_.size(); i-- > 0;) {
    if (i < followers_.size()) followers_[i]->changed();
  }
}

void storage::close() {
  for (const auto& [key, collection] : collections_) collection->close();
}

std::shared_ptr<collection> storage::open(std::string_view key) {
  auto found = find(key);
  return found ? found : make(key);
}

std::shared_ptr<collection> storage::make(std::string_view key) const {
  auto made = std::make_shared<collection>(history_);
  made->forget(forgotten_);
  if (const auto from = base_ ? base_->find(key) : nullptr) made->objects_ = from->objects_;
  collections_.emplace(key, made);
  return made;
}

std::shared_ptr<collection> storage::find(std::string_view key) const {
  const auto at = collections_.find(key);
  if (at != collections_.end()) return at->second;
  return base_ && base_->find(key) ? make(key) : nullptr;
}

void storage::drop(std::string_view key) {
  const auto at = collections_.find(key);
  if (at == collections_.end()) return;
  const auto found = at->second;
  collections_.erase(at);
  // If the collection is made again, no watch may resume from before.
  forgotten_ = version_;
  found->close();
}

record_ptr storage::next(object_key key, json::value object) const {
  const auto version = version_ + 1;
  object_in(object.as_object(), "metadata")["resourceVersion"] = std::to_string(version);
  return std::make_shared<const record>(std::move(key), version, std::move(object));
}

void storage::advance_to(const record& record) {
  if (record.version() != version_ + 1) throw std::logic_error("a write overtook another");
  version_ = record.version();
}

void storage::put(collection& in, record_ptr record) {
  advance_to(*record);
  auto before = in.find(record->path());
  if (before) in.objects_.erase(before);
  in.objects_.insert(record);
  in.keep({std::move(before), std::move(record), false});
}

void storage::remove(collection& in, record_ptr last) {
  advance_to(*last);
  auto present = in.find(last->path());
  in.objects_.erase(present);
  in.keep({std::move(present), std::move(last), true});
}

void storage::restate(collection& in, record_ptr record) {
  const auto at = in.objects_.find(record->path());
  if (at == in.objects_.end()) return;
  in.objects_.insert(in.objects_.erase(at), std::move(record));
}

void storage::compact() {
  forgotten_ = version_;
  for (const auto& [key, collection] : collections_) collection->forget(version_);
}

storage::contents storage::save() const {
  auto out = base_ ? base_->save() : contents();
  for (const auto& [key, collection] : collections_) out[key] = collection->all("");
  return out;
}

void storage::restore(const contents& from, bool reuse_versions) {
  const auto before = std::exchange(collections_, {});
  base_.reset();
  if (reuse_versions) {
    version_ = 0;
    for (const auto& [key, objects] : from) {
      for (const auto& object : objects) version_ = std::max(version_, object->version());
    }
  }
  forgotten_ = ++version_;
  for (const auto& [key, objects] : from) {
    open(key)->objects_.insert(objects.begin(), objects.end());
  }
  for (const auto& [key, collection] : before) collection->close();
}

void storage::for_each(
    const std::function<void(const std::string& key, collection& collection)>& visit) const {
  for (const auto& [key, collection] : collections_) visit(key, *collection);
}

}  // namespace rw::k8s::devserver
