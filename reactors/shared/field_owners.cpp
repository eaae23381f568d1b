#include "rw/reactors/shared/field_owners.hpp"

#include "rw/k8s/objects/difference.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw {
namespace {

namespace json = boost::json;
using k8s::find_string;

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

/// What an element of FieldsV1 selects of a value: "f:name" a field, "k:{...}" and "v:..." elements
/// of a list by their keys or by their value, "i:0" one by its index. Null: it is not there.
const json::value* select(const json::value* from, std::string_view element) {
  if (from == nullptr || element.size() < 2) return nullptr;
  const auto rest = element.substr(2);
  if (element.front() == 'f')
    return from->is_object() ? from->get_object().if_contains(rest) : nullptr;
  if (!from->is_array()) return nullptr;
  const auto read = k8s::read_json(rest);
  if (!read) return nullptr;
  const auto& wanted = *read;
  const auto& all = from->get_array();
  if (element.front() == 'i') {
    const auto index = wanted.is_int64() ? wanted.get_int64() : -1;
    return index >= 0 && std::cmp_less(index, all.size()) ? &all[static_cast<std::size_t>(index)]
                                                          : nullptr;
  }
  const auto found = std::ranges::find_if(all, [&](const json::value& each) {
    if (element.front() == 'v') return each == wanted;
    return wanted.is_object() && std::ranges::all_of(wanted.get_object(), [&](const auto& key) {
             const auto* const value =
                 each.is_object() ? each.get_object().if_contains(key.key()) : nullptr;
             return value != nullptr && *value == key.value();
           });
  });
  return found == all.end() ? nullptr : &*found;
}

/// True if `live` has what `wanted` asks for; what is asked for by nobody must not be there.
bool is_as(const json::value* wanted, const json::value* live) {
  if (wanted == nullptr || live == nullptr) return wanted == live;
  return !k8s::find_difference(*wanted, *live);
}

bool any_newer(const json::value& fields, const json::value* live, const json::value* older,
               const json::value* newer) {
  if (!fields.is_object() || fields.get_object().empty())
    return !is_as(older, live) && is_as(newer, live);
  return std::ranges::any_of(fields.get_object(), [&](const auto& each) {
    const std::string_view element = each.key();
    if (element == ".") return false;
    return any_newer(each.value(), select(live, element), select(older, element),
                     select(newer, element));
  });
}

}  // namespace

const json::array& managed_fields(const json::value& object) {
  static const json::array none;
  const auto* const found = k8s::find_array(object, {"metadata", "managedFields"});
  return found != nullptr ? *found : none;
}

json::value applied_fields(const json::value& object, std::string_view manager) {
  for (const auto& entry : managed_fields(object)) {
    const auto* const fields = k8s::find(entry, {"fieldsV1"});
    if (applies(entry, manager) && fields != nullptr) return *fields;
  }
  return nullptr;
}

json::value subtract_fields(const json::value& fields, const json::value& own) {
  if (!fields.is_object() || !own.is_object()) return fields;
  json::object rest;
  for (const auto& [name, below] : fields.get_object()) {
    const auto* const other = own.get_object().if_contains(name);
    if (other == nullptr) {
      rest[name] = below;
      continue;
    }
    auto left = subtract_fields(below, *other);
    if (left.is_object() && !left.get_object().empty()) rest[name] = std::move(left);
  }
  // A map without any of its entries would be taken for all that are there now.
  const bool nothing = rest.empty() || (rest.size() == 1 && rest.contains("."));
  return nothing ? json::value() : json::value(std::move(rest));
}

std::optional<json::value> take_over_fields(const json::value& object, std::string_view own,
                                            std::string_view former) {
  json::array kept;
  json::object fields;
  const json::value* like = nullptr;
  bool any = false;
  for (const auto& entry : managed_fields(object)) {
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

json::value fields_of_others(const json::value& object, std::span<const std::string> managers,
                             std::string_view own) {
  json::object all;
  for (const auto& entry : managed_fields(object)) {
    const auto* const fields = k8s::find(entry, {"fieldsV1"});
    const bool is_foreign =
        std::ranges::any_of(managers, [&](const std::string& each) { return is_of(entry, each); });
    if (is_foreign && fields != nullptr && fields->is_object()) unite(all, fields->get_object());
  }
  return subtract_fields(all, applied_fields(object, own));
}

bool has_newer_field(const json::value& fields, const json::value& object, const json::value& older,
                     const json::value& newer) {
  return fields.is_object() && any_newer(fields, &object, &older, &newer);
}

bool applies_fields(const json::value& object, std::string_view manager) {
  return std::ranges::any_of(managed_fields(object),
                             [&](const auto& entry) { return applies(entry, manager); });
}

std::optional<std::chrono::system_clock::time_point> written_after(const json::value& object,
                                                                   std::string_view own,
                                                                   std::string_view other) {
  std::optional<std::chrono::system_clock::time_point> own_time;
  std::optional<std::chrono::system_clock::time_point> foreign_time;
  for (const auto& entry : managed_fields(object)) {
    const auto time = k8s::parse_rfc3339(find_string(entry, {"time"}));
    if (!time) continue;
    if (applies(entry, own)) own_time = time;
    if (is_of(entry, other)) foreign_time = std::max(foreign_time.value_or(*time), *time);
  }
  return own_time && foreign_time && *foreign_time > *own_time ? foreign_time : std::nullopt;
}

}  // namespace rw
