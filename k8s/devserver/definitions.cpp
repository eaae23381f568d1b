#include "rw/k8s/devserver/definitions.hpp"

#include "rw/k8s/devserver/custom_kinds.hpp"
#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <tuple>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;
using path = std::initializer_list<std::string_view>;

std::string string_at(const json::value& from, path at) {
  return std::string(find_string(from, at));
}

std::vector<std::string> strings_at(const json::value& from, path at) {
  std::vector<std::string> result;
  for (const auto& value : array_at(from, at)) {
    if (value.is_string()) result.emplace_back(view(value.get_string()));
  }
  return result;
}

std::vector<printer_column> columns_of(const json::value& version) {
  std::vector<printer_column> result;
  for (const auto& column : array_at(version, {"additionalPrinterColumns"})) {
    result.push_back({string_at(column, {"name"}), string_at(column, {"type"}),
                      string_at(column, {"jsonPath"}), string_at(column, {"format"}),
                      string_at(column, {"description"}),
                      integer_at(column, {"priority"}).value_or(0)});
  }
  return result;
}

std::optional<scale_paths> scale_of(const json::value& version) {
  if (find(version, {"subresources", "scale"}) == nullptr) return {};
  return scale_paths{string_at(version, {"subresources", "scale", "specReplicasPath"}),
                     string_at(version, {"subresources", "scale", "statusReplicasPath"}),
                     string_at(version, {"subresources", "scale", "labelSelectorPath"})};
}

served_version version_of(const json::value& definition, const json::value& version) {
  served_version made;
  made.name = string_at(version, {"name"});
  made.served = true_at(version, {"served"});
  made.status = find(version, {"subresources", "status"}) != nullptr;
  made.scale = scale_of(version);
  made.columns = columns_of(version);
  if (const auto* schema = find(version, {"schema", "openAPIV3Schema"})) {
    made.open_api = *schema;
    auto compiled = compile_schema(*schema);
    if (compiled.has_value()) made.type = std::move(*compiled);
  }
  for (const auto& field : array_at(version, {"selectableFields"})) {
    const auto path = find_string(field, {"jsonPath"});
    if (path.starts_with('.')) made.selectable.emplace_back(path.substr(1));
  }
  if (true_at(version, {"deprecated"})) {
    made.warning = string_at(version, {"deprecationWarning"});
    if (made.warning.empty()) {
      made.warning = string_at(definition, {"spec", "group"}) + "/" + made.name + " " +
                     string_at(definition, {"spec", "names", "kind"}) + " is deprecated";
    }
  }
  return made;
}

bool condition_is_true(const json::value& definition, std::string_view type) {
  for (const auto& version : array_at(definition, {"status", "conditions"})) {
    if (find_string(version, {"type"}) == type) return find_string(version, {"status"}) == "True";
  }
  return false;
}

void set_condition(json::value& definition, std::string_view type, bool status,
                   std::string_view reason, std::string_view message, const std::string& now) {
  auto& conditions = object_in(definition.as_object(), "status")["conditions"];
  if (!conditions.is_array()) conditions = json::array();
  auto& all = conditions.get_array();
  auto at = std::find_if(all.begin(), all.end(), [&](const json::value& condition) {
    return find_string(condition, {"type"}) == type;
  });
  const auto* text = status ? "True" : "False";
  const bool same = at != all.end() && find_string(*at, {"status"}) == text;
  const auto since = same ? string_at(*at, {"lastTransitionTime"}) : now;
  json::value made{{"type", type},
                   {"status", text},
                   {"lastTransitionTime", since},
                   {"reason", reason},
                   {"message", message}};
  if (at == all.end()) {
    all.push_back(std::move(made));
  } else {
    *at = std::move(made);
  }
}

/// Returns a name that another resource of the group has already; empty if there is none.
std::string taken_name(const custom_kinds& among, const json::value& definition) {
  const auto group = find_string(definition, {"spec", "group"});
  const auto plural = find_string(definition, {"spec", "names", "plural"});
  const auto kind = find_string(definition, {"spec", "names", "kind"});
  std::string taken;
  among.for_each([&](const std::shared_ptr<const resource>& other) {
    if (other->group == group && other->plural != plural && other->kind == kind)
      taken = other->kind;
  });
  return taken;
}

void note_stored_version(json::value& definition) {
  std::string stored;
  for (const auto& version : array_at(definition, {"spec", "versions"})) {
    if (true_at(version, {"storage"})) stored = string_at(version, {"name"});
  }
  auto& versions = object_in(definition.as_object(), "status")["storedVersions"];
  if (!versions.is_array()) versions = json::array();
  auto& all = versions.get_array();
  const json::value name(stored);
  if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
}

/// Parses "v1beta2" as (2 for beta, 1, 2); returns nothing for other forms.
std::optional<std::tuple<int, int, int>> parse_version_name(std::string_view name) {
  int major = 0;
  int minor = 0;
  if (!name.starts_with('v')) return {};
  const auto* end = name.data() + name.size();
  auto at = std::from_chars(name.data() + 1, end, major);
  if (at.ec != std::errc()) return {};
  std::string_view rest(at.ptr, static_cast<std::size_t>(end - at.ptr));
  if (rest.empty()) return std::tuple(3, major, 0);
  const int stability = rest.starts_with("beta") ? 2 : rest.starts_with("alpha") ? 1 : 0;
  if (stability == 0) return {};
  rest.remove_prefix(stability == 2 ? 4 : 5);
  at = std::from_chars(rest.data(), end, minor);
  if (at.ec != std::errc() || at.ptr != end) return {};
  return std::tuple(stability, major, minor);
}

}  // namespace

bool version_before(std::string_view a, std::string_view b) {
  const auto x = parse_version_name(a);
  const auto y = parse_version_name(b);
  if (x && y) return *x > *y;
  if (x || y) return x.has_value();
  return a < b;
}

void establish_definition(const custom_kinds& among, json::value& definition,
                          const std::string& now) {
  const auto taken = taken_name(among, definition);
  auto& status = object_in(definition.as_object(), "status");
  if (!taken.empty()) {
    set_condition(definition, "NamesAccepted", false, "KindConflict",
                  "\"" + taken + "\" is already in use", now);
    set_condition(definition, "Established", false, "NotAccepted", "not all names are accepted",
                  now);
    return;
  }
  status["acceptedNames"] = *find(definition, {"spec", "names"});
  set_condition(definition, "NamesAccepted", true, "NoConflicts", "no conflicts found", now);
  set_condition(definition, "Established", true, "InitialNamesAccepted",
                "the initial names have been accepted", now);
  note_stored_version(definition);
}

std::shared_ptr<const resource> make_resource(const json::value& definition) {
  if (!condition_is_true(definition, "Established")) return nullptr;
  auto made = std::make_shared<resource>();
  made->custom = true;
  made->generation = true;
  made->needs_version = true;
  made->group = string_at(definition, {"spec", "group"});
  made->plural = string_at(definition, {"spec", "names", "plural"});
  made->singular = string_at(definition, {"spec", "names", "singular"});
  made->kind = string_at(definition, {"spec", "names", "kind"});
  made->list_kind = string_at(definition, {"spec", "names", "listKind"});
  made->short_names = strings_at(definition, {"spec", "names", "shortNames"});
  made->categories = strings_at(definition, {"spec", "names", "categories"});
  made->namespaced = find_string(definition, {"spec", "scope"}) == "Namespaced";
  made->storage_key = resource_name(made->plural, made->group);
  made->terminating = !find_string(definition, {"metadata", "deletionTimestamp"}).empty();
  std::string stored;
  for (const auto& version : array_at(definition, {"spec", "versions"})) {
    if (true_at(version, {"storage"})) stored = string_at(version, {"name"});
    made->versions.push_back(version_of(definition, version));
  }
  std::sort(made->versions.begin(), made->versions.end(),
            [](const served_version& a, const served_version& b) {
              return version_before(a.name, b.name);
            });
  for (std::size_t i = 0; i < made->versions.size(); ++i) {
    if (made->versions[i].name == stored) made->stored = i;
  }
  return made;
}

}  // namespace rw::k8s::devserver
