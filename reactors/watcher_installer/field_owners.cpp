#include "reactors/watcher_installer/field_owners.hpp"

#include "k8s/objects/rfc3339.hpp"
#include "k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw {
namespace {

namespace json = boost::json;
using k8s::find_string;

const json::array& entries_of(const json::value& object) {
  static const json::array none;
  const auto* const found = k8s::find(object, {"metadata", "managedFields"});
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

bool is_of(const json::value& entry, std::string_view manager) {
  return find_string(entry, {"manager"}) == manager && find_string(entry, {"subresource"}).empty();
}

bool applies(const json::value& entry, std::string_view manager) {
  return is_of(entry, manager) && find_string(entry, {"operation"}) == "Apply";
}

/// A set of fields is a tree of objects (FieldsV1).
void unite(json::object& into, const json::object& more) {
  for (const auto& [name, below] : more) {
    auto& here = into[name];
    if (!here.is_object()) here.emplace_object();
    if (below.is_object()) unite(here.get_object(), below.get_object());
  }
}

}  // namespace

std::optional<json::value> take_over_fields(const json::value& object, std::string_view own,
                                            std::string_view former) {
  json::array kept;
  json::object fields;
  const json::value* like = nullptr;
  bool any = false;
  for (const auto& entry : entries_of(object)) {
    const bool before = is_of(entry, former);
    any = any || before;
    if (!before && !applies(entry, own)) {
      kept.push_back(entry);
      continue;
    }
    // Entries of several versions can't be united; the newest API version is that of our own.
    if (like == nullptr || applies(entry, own)) like = &entry;
    const auto* const set = k8s::find(entry, {"fieldsV1"});
    if (set != nullptr && set->is_object()) unite(fields, set->get_object());
  }
  if (!any) return std::nullopt;
  auto entry = *like;
  entry.as_object()["manager"] = own;
  entry.as_object()["operation"] = "Apply";
  entry.as_object()["fieldsV1"] = std::move(fields);
  kept.push_back(std::move(entry));
  return json::value{{"metadata",
                      {{"managedFields", std::move(kept)},
                       {"resourceVersion", k8s::resource_version_of(object)}}}};
}

bool applies_fields(const json::value& object, std::string_view manager) {
  return std::ranges::any_of(entries_of(object),
                             [&](const auto& entry) { return applies(entry, manager); });
}

std::optional<std::chrono::system_clock::time_point> written_after(const json::value& object,
                                                                   std::string_view own,
                                                                   std::string_view other) {
  std::optional<std::chrono::system_clock::time_point> ours;
  std::optional<std::chrono::system_clock::time_point> theirs;
  for (const auto& entry : entries_of(object)) {
    const auto time = k8s::parse_rfc3339(find_string(entry, {"time"}));
    if (!time) continue;
    if (applies(entry, own)) ours = time;
    if (is_of(entry, other)) theirs = std::max(theirs.value_or(*time), *time);
  }
  return ours && theirs && *theirs > *ours ? theirs : std::nullopt;
}

}  // namespace rw
