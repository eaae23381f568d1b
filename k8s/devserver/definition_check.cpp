#include "rw/core/text.hpp"
#include "rw/k8s/devserver/definitions.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/objects/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <set>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;
using path = std::initializer_list<std::string_view>;

std::string dotted(path at) {
  std::string text;
  for (const auto name : at) {
    if (!text.empty()) text += '.';
    text += name;
  }
  return text;
}

class definition_checker {
 public:
  definition_checker(const json::value& before, const json::value& now, std::vector<cause>& found)
      : before_(before), now_(now), found_(found) {}

  void run() {
    for (const auto field :
         {path{"spec", "group"}, path{"spec", "names", "plural"}, path{"spec", "names", "kind"}}) {
      if (find_string(now_, field).empty()) required(dotted(field));
    }
    check_name();
    check_scope();
    check_conversion();
    check_versions();
    check_unchanged();
  }

 private:
  void required(std::string field, std::string_view reason = {}) {
    found_.push_back({std::move(field), "FieldValueRequired",
                      "Required value" + (reason.empty() ? "" : ": " + std::string(reason))});
  }

  void invalid(std::string field, const json::value& value, std::string_view reason) {
    found_.push_back({std::move(field), "FieldValueInvalid",
                      "Invalid value: " + json::serialize(value) + ": " + std::string(reason)});
  }

  void check_name() {
    const auto name = find_string(now_, {"metadata", "name"});
    const auto wanted = std::string(find_string(now_, {"spec", "names", "plural"})) + "." +
                        std::string(find_string(now_, {"spec", "group"}));
    if (name != wanted) {
      invalid("metadata.name", json::string(name), "must be spec.names.plural+\".\"+spec.group");
    }
    const auto group = find_string(now_, {"spec", "group"});
    if (!group.empty() && group.find('.') == std::string_view::npos) {
      invalid("spec.group", json::string(group), "should be a domain with at least one dot");
    }
    const std::string names = "spec.names.";
    for (const std::string field : {"plural", "singular", "kind", "listKind"}) {
      const std::string text(find_string(now_, {"spec", "names", field}));
      if (text.empty()) continue;
      const bool mixed = field == "kind" || field == "listKind";
      check_label(names + field, mixed ? core::lower(text) : text, json::string(text),
                  mixed ? "may have mixed case, but should otherwise match: " : "");
    }
    for (const std::string field : {"shortNames", "categories"}) {
      const auto* const all = find(now_, {"spec", "names", field});
      if (all == nullptr || !all->is_array()) continue;
      std::size_t at = 0;
      for (const auto& entry : all->get_array()) {
        const auto where = names + field + "[" + std::to_string(at++) + "]";
        if (entry.is_string()) check_label(where, view(entry.get_string()), entry);
      }
    }
    const auto kind = find_string(now_, {"spec", "names", "kind"});
    if (!kind.empty() && kind == find_string(now_, {"spec", "names", "listKind"})) {
      invalid(names + "listKind", json::string(kind), "kind and listKind may not be the same");
    }
  }

  void check_label(const std::string& field, std::string_view text, const json::value& value,
                   const std::string& but = {}) {
    for (const auto& error : dns_1035_label_errors(text)) invalid(field, value, but + error);
  }

  void check_scope() {
    const auto scope = find_string(now_, {"spec", "scope"});
    if (scope.empty()) return required("spec.scope");
    if (scope == "Namespaced" || scope == "Cluster") return;
    found_.push_back({"spec.scope", "FieldValueNotSupported",
                      "Unsupported value: \"" + std::string(scope) +
                          "\": supported values: \"Cluster\", \"Namespaced\""});
  }

  void check_conversion() {
    const auto strategy = find_string(now_, {"spec", "conversion", "strategy"});
    if (strategy.empty() || strategy == "None") return;
    found_.push_back({"spec.conversion.strategy", "FieldValueNotSupported",
                      "Unsupported value: \"" + std::string(strategy) +
                          "\": supported values: \"None\", \"Webhook\""});
  }

  void check_versions() {
    const auto* versions = find(now_, {"spec", "versions"});
    if (versions == nullptr || !versions->is_array() || versions->get_array().empty()) {
      return required("spec.versions", "must have at least one version");
    }
    if (true_at(now_, {"spec", "preserveUnknownFields"})) {
      invalid("spec.preserveUnknownFields", true,
              "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
              "spec.versions[*].schema instead");
    }
    const bool shared = same_schemas(versions->get_array());
    std::size_t stored = 0;
    std::size_t index = 0;
    std::set<std::string_view> names;
    for (const auto& version : versions->get_array()) {
      const auto at = "spec.versions[" + std::to_string(index++) + "]";
      const auto name = find_string(version, {"name"});
      check_label(at + ".name", name, json::string(name));
      if (!names.insert(name).second) {
        found_.push_back({at + ".name", "FieldValueDuplicate",
                          "Duplicate value: \"" + std::string(name) + "\""});
      }
      if (true_at(version, {"storage"})) ++stored;
      // What all versions share is told once, where kube-apiserver keeps it.
      if (!shared || index == 1)
        check_schema(version, shared ? "spec.validation." : at + ".schema.");
    }
    if (stored != 1) {
      invalid("spec.versions", *versions,
              "must have exactly one version marked as storage version");
      if (before_.is_null()) {
        invalid("status.storedVersions", json::array(), "must have one stored version");
      }
    }
    std::size_t at = 0;
    const auto* const kept = find(now_, {"status", "storedVersions"});
    if (before_.is_null() || kept == nullptr || !kept->is_array()) return;
    for (const auto& entry : kept->get_array()) {
      const auto field = "status.storedVersions[" + std::to_string(at++) + "]";
      if (entry.is_string() && !names.contains(view(entry.get_string()))) {
        invalid(field, entry, "must appear in spec.versions");
      }
    }
  }

  /// Returns true if all versions have the same schema.
  static bool same_schemas(const json::array& versions) {
    const auto* const first = find(versions.front(), {"schema"});
    return std::ranges::all_of(versions, [&](const json::value& version) {
      const auto* const other = find(version, {"schema"});
      return first != nullptr && other != nullptr && *first == *other;
    });
  }

  void check_schema(const json::value& version, const std::string& at) {
    const auto* schema = find(version, {"schema", "openAPIV3Schema"});
    if (schema == nullptr) return required(at + "openAPIV3Schema", "schemas are required");
    const auto compiled = compile_schema(*schema);
    if (compiled.has_value()) return;
    for (auto cause : compiled.error().causes) {
      cause.field = at + cause.field;
      found_.push_back(std::move(cause));
    }
  }

  /// Checks the names that an established resource can't change.
  void check_unchanged() {
    if (before_.is_null()) return;
    for (const auto field : {path{"spec", "group"}, path{"spec", "names", "plural"},
                             path{"spec", "names", "kind"}, path{"spec", "scope"}}) {
      const auto now = find_string(now_, field);
      if (find_string(before_, field) != now) {
        invalid(dotted(field), json::string(now), "field is immutable");
      }
    }
  }

  const json::value& before_;
  const json::value& now_;
  std::vector<cause>& found_;
};

}  // namespace

std::vector<std::string> unsupported_parts(const json::value& definition) {
  std::vector<std::string> parts;
  const auto* const versions = find(definition, {"spec", "versions"});
  if (versions == nullptr) return parts;
  if (!versions->is_array()) return parts;
  for (const auto& version : versions->get_array()) {
    const auto* const source = find(version, {"schema", "openAPIV3Schema"});
    if (source == nullptr) continue;
    const auto compiled = compile_schema(*source);
    if (compiled.has_error()) continue;
    const auto& gaps = (*compiled)->gaps();
    parts.insert(parts.end(), gaps.begin(), gaps.end());
  }
  return parts;
}

void check_definition(const json::value& before, const json::value& definition,
                      std::vector<cause>& found) {
  definition_checker(before, definition, found).run();
}

}  // namespace rw::k8s::devserver
