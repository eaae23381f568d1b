#include "rw/k8s/devserver/managers.hpp"

#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::size_t most_updates = 10;
constexpr std::string_view ancient = "ancient-changes";

const json::value* entries_of(const json::value& object) {
  const auto* const fields = object.if_object();
  const auto* const metadata = fields != nullptr ? fields->if_contains("metadata") : nullptr;
  if (metadata == nullptr || !metadata->is_object()) return nullptr;
  return metadata->get_object().if_contains("managedFields");
}

std::optional<field_manager> parse(const json::value& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto& object = entry.get_object();
  const auto operation = text_of(object, "operation");
  const auto* const fields = object.if_contains("fieldsV1");
  if (operation != "Apply" && operation != "Update") return std::nullopt;
  if (text_of(object, "fieldsType") != "FieldsV1" || fields == nullptr) return std::nullopt;
  auto set = field_set::parse(*fields);
  if (!set) return std::nullopt;
  return field_manager{text_of(object, "manager"),    operation == "Apply",
                       text_of(object, "apiVersion"), text_of(object, "subresource"),
                       text_of(object, "time"),       std::move(*set)};
}

json::value to_json(const field_manager& field_manager) {
  json::object entry = {{"manager", field_manager.name},
                        {"operation", field_manager.applies ? "Apply" : "Update"},
                        {"apiVersion", field_manager.api_version}};
  if (!field_manager.time.empty()) entry["time"] = field_manager.time;
  entry["fieldsType"] = "FieldsV1";
  entry["fieldsV1"] = field_manager.fields.to_json();
  if (!field_manager.subresource.empty()) entry["subresource"] = field_manager.subresource;
  return entry;
}

}  // namespace

bool field_manager::same(const field_manager& other) const noexcept {
  return name == other.name && applies == other.applies && subresource == other.subresource &&
         (applies || api_version == other.api_version);
}

std::string field_manager::printed() const {
  auto out = '"' + name + '"';
  if (!subresource.empty()) out += " with subresource \"" + subresource + '"';
  if (!applies) out += " using " + api_version;
  return out;
}

field_managers field_managers::of(const json::value& object) {
  field_managers made;
  const auto* const entries = entries_of(object);
  if (entries == nullptr || !entries->is_array()) return made;
  for (const auto& entry : entries->get_array()) {
    auto parsed = parse(entry);
    if (!parsed) return {};
    if (made.find(*parsed) == nullptr) made.all_.push_back(std::move(*parsed));
  }
  return made;
}

bool field_managers::reset_by(const json::value& object) {
  const auto* const entries = entries_of(object);
  const auto* const list = entries != nullptr ? entries->if_array() : nullptr;
  if (list == nullptr) return false;
  if (list->empty()) return true;
  return list->size() == 1 && list->front().is_object() && list->front().get_object().empty();
}

field_manager* field_managers::find(const field_manager& like) {
  const auto found =
      std::ranges::find_if(all_, [&like](const auto& manager) { return manager.same(like); });
  return found != all_.end() ? &*found : nullptr;
}

field_manager& field_managers::set(const field_manager& like, field_set fields) {
  auto* at = find(like);
  if (at == nullptr) at = &all_.emplace_back(like);
  at->fields = std::move(fields);
  at->api_version = like.api_version;
  return *at;
}

void field_managers::remove_empty() {
  std::erase_if(all_, [](const auto& manager) { return manager.fields.empty(); });
}

void field_managers::merge_ancient() {
  auto updates = std::ranges::count(all_, false, &field_manager::applies);
  if (static_cast<std::size_t>(updates) <= most_updates) return;
  std::ranges::sort(all_, {}, [](const auto& manager) {
    return std::tie(manager.applies, manager.time, manager.name, manager.api_version,
                    manager.subresource);
  });
  // The first update of each version is merged only with a second one: alone it keeps its name.
  std::map<std::string, field_manager> first;
  std::vector<field_manager> kept;
  for (auto& manager : all_) {
    if (manager.applies || static_cast<std::size_t>(updates) <= most_updates) {
      kept.push_back(std::move(manager));
      continue;
    }
    const auto [met, added] = first.try_emplace(manager.api_version, manager);
    if (added) continue;
    met->second.fields.unite(manager.fields);
    met->second.name = ancient;
    met->second.subresource.clear();
    met->second.time = manager.time;
    --updates;
  }
  for (auto& [version, manager] : first) {
    const auto there =
        std::ranges::find_if(kept, [&manager](const auto& other) { return other.same(manager); });
    if (there != kept.end()) {
      there->fields.unite(manager.fields);
    } else {
      kept.push_back(std::move(manager));
    }
  }
  all_ = std::move(kept);
}

void field_managers::write_to(json::value& object) {
  std::ranges::sort(all_, {}, [](const auto& manager) {
    return std::tuple(!manager.applies, std::tie(manager.time, manager.name, manager.api_version,
                                                 manager.subresource));
  });
  auto& fields = object.is_object() ? object.get_object() : object.emplace_object();
  auto& metadata = fields["metadata"];
  if (all_.empty()) {
    if (metadata.is_object()) metadata.get_object().stable_erase("managedFields");
    return;
  }
  if (!metadata.is_object()) metadata.emplace_object();
  json::array list;
  for (const auto& manager : all_) list.push_back(to_json(manager));
  metadata.get_object()["managedFields"] = std::move(list);
}

}  // namespace rw::k8s::devserver
