#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// How server-side apply merges a list, and what identifies its items.
enum class list_type : std::uint8_t { atomic, set, map };

/// What server-side apply takes for a value (structured-merge-diff, schema/elements.go). `any`:
/// what may be of several types, and texts with a format, such as quantities and times.
enum class value_form : std::uint8_t { any, text, number, boolean, list, map };

/// One node of a structural schema (Kubernetes API concepts, "CustomResourceDefinition": structural
/// schemas), compiled once. Immutable, shared, thread-safe.
///
/// Built-in kinds have schemas too, as far as patches and applies need them: list types, merge
/// keys, atomic maps.
class schema {
 public:
  virtual ~schema() = default;

  /// Returns the schema of a field of an object; null if it is unknown.
  virtual const schema* property(std::string_view name) const = 0;
  /// Returns true if the type itself has the field: it is neither a key of a map nor unknown.
  virtual bool declares(std::string_view field) const { return property(field) != nullptr; }
  /// Returns false if an object with the field can't be applied: "field not declared in schema".
  virtual bool allows(std::string_view) const { return true; }
  /// Returns true if the field is present, empty, before any write (as structs in Go are).
  virtual bool always_present(std::string_view) const { return false; }
  /// Returns the schema of the elements of a list, or of the values of a map; null if it is
  /// unknown.
  virtual const schema* items() const = 0;

  virtual value_form form() const = 0;
  virtual list_type merge() const = 0;
  virtual const std::vector<std::string>& list_map_keys() const = 0;
  /// Returns true if an object is replaced as a whole (x-kubernetes-map-type: atomic).
  virtual bool atomic_object() const = 0;
  /// Returns the key by which a strategic merge patch merges items of a list; empty: it replaces
  /// the list. A list of primitives that is merged as a set returns "".
  virtual std::string_view patch_merge_key() const = 0;
  virtual bool patch_merges() const = 0;
  /// Returns false if a strategic merge patch can't merge two lists in the field, whose Go type is
  /// neither a list nor a pointer (apimachinery, strategicpatch/meta.go).
  virtual bool may_merge_lists(std::string_view) const { return true; }
  /// Returns true if a strategic merge patch replaces the object instead of merging it.
  virtual bool patch_replaces() const { return false; }

  /// Removes nulls that are not allowed and that no default replaces, in place: they count as
  /// absent in what is sent as a whole, but not in what is applied.
  virtual void drop_nulls(boost::json::value&) const {}
  /// Fills in defaults, in place (idempotent).
  virtual void fill_defaults(boost::json::value& object) const = 0;
  /// Removes unknown fields, in place. Adds their paths to `removed`.
  virtual void prune(boost::json::value& object, std::vector<std::string>& removed) const = 0;
  /// Adds all errors, in the words of kube-apiserver; `path` is that of `object`.
  virtual void validate(const boost::json::value& object, const std::string& path,
                        std::vector<cause>& found) const = 0;
  /// Validates an object that is written, rules in CEL included. Errors of values that an update
  /// does not touch are none. `before` is null for a new object.
  virtual void validate_object(const boost::json::value& before, const boost::json::value& object,
                               std::vector<cause>& found) const {
    static_cast<void>(before);
    validate(object, {}, found);
  }
  /// Returns the rules that are not evaluated, for people.
  virtual const std::vector<std::string>& gaps() const {
    static const std::vector<std::string> none;
    return none;
  }
};

/// Returns the schema of a field: of that name, or of the map's values. Null if it is unknown.
inline const schema* child_of(const schema* type, std::string_view field) {
  if (type == nullptr) return nullptr;
  const auto* const own = type->property(field);
  return own != nullptr ? own : type->items();
}

/// Compiles the `openAPIV3Schema` of a CustomResourceDefinition, whose root is a whole object. The
/// problem (422) names the parts that are not structural, or not supported; its causes' fields
/// begin with "openAPIV3Schema".
///
/// Checked: type, nullable, required, enum, minimum and maximum, multipleOf, lengths, pattern (RE2,
/// whose syntax is Go's), sizes of lists and maps, the usual formats, allOf, anyOf, oneOf, not,
/// duplicates in lists that are sets or maps, embedded resources, and x-kubernetes-validations as
/// far as cel.hpp goes: `gaps()` has the others.
outcome<std::shared_ptr<const schema>> compile_schema(const boost::json::value& open_api);

/// Returns the schema of a built-in kind, such as "apps/v1", "Deployment"; never null: types
/// without a table are free-form.
std::shared_ptr<const schema> builtin_schema(std::string_view api_version, std::string_view kind);

}  // namespace rw::k8s::devserver
