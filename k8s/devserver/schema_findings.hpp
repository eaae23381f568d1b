#pragma once

#include "rw/k8s/devserver/go_text.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/object.hpp>
#include <boost/json/string.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s::devserver {

class schema_node;

/// Returns a keyword's value; null if it is missing.
inline const boost::json::value* member(const boost::json::object& of, std::string_view name) {
  const auto* const found = of.if_contains(name);
  return found != nullptr && !found->is_null() ? found : nullptr;
}

/// Returns a keyword's text; empty if there is none.
inline std::string_view text(const boost::json::object& of, std::string_view name) {
  const auto* const found = member(of, name);
  return found != nullptr && found->is_string() ? std::string_view(found->get_string())
                                                : std::string_view();
}

inline bool flag(const boost::json::object& of, std::string_view name) {
  const auto* const found = member(of, name);
  return found != nullptr && found->is_bool() && found->get_bool();
}

/// The errors of a schema, in the words of kube-apiserver.
class schema_findings {
 public:
  void add(const std::string& field, std::string_view reason, std::string message) {
    errors.push_back({field, std::string(reason), std::move(message)});
  }
  void forbidden(const std::string& field, std::string_view reason) {
    add(field, "FieldValueForbidden", "Forbidden: " + std::string(reason));
  }
  void required(const std::string& field, std::string_view reason) {
    add(field, "FieldValueRequired", "Required value: " + std::string(reason));
  }
  void invalid(const std::string& field, const boost::json::value& value, std::string_view reason) {
    add(field, "FieldValueInvalid",
        "Invalid value: " + go_value(value) + ": " + std::string(reason));
  }
  void not_supported(const std::string& field, const boost::json::value& value,
                     std::string_view known) {
    add(field, "FieldValueNotSupported",
        "Unsupported value: " + go_value(value) + ": supported values: " + std::string(known));
  }

  std::vector<cause> errors;
};

/// Reads x-kubernetes-list-type and x-kubernetes-list-map-keys of a node that is otherwise
/// complete.
void read_list_type(schema_node& made, const boost::json::object& object, const std::string& path,
                    schema_findings& found);

/// Checks what the rules in CEL can cost, each and together (apiextensions-apiserver,
/// "ValidateCustomResourceDefinitionOpenAPISchema"). For a schema without other errors.
void check_costs(const schema_node& root, const std::string& path, schema_findings& found);

}  // namespace rw::k8s::devserver
