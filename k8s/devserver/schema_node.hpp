#pragma once

#include "rw/k8s/devserver/cel.hpp"
#include "rw/k8s/devserver/schema.hpp"
#include "rw/k8s/devserver/typed_access.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <re2/re2.h>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace rw::k8s::devserver {

enum class value_type : std::uint8_t { any, object, array, string, integer, number, boolean };

/// The check of a string format, or null: other formats mean nothing, as in kube-apiserver.
using format_check = bool (*)(std::string_view);
format_check find_format(std::string_view name) noexcept;

class schema_node;

/// The rules of a schema for values, in addition to their structure. Most nodes have none.
struct value_rules {
  value_rules();
  ~value_rules();
  value_rules(value_rules&&) noexcept;

  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  bool exclusive_minimum = false;
  bool exclusive_maximum = false;
  std::optional<double> multiple_of = {};
  std::optional<std::uint64_t> min_length = {};
  std::optional<std::uint64_t> max_length = {};
  std::optional<std::uint64_t> min_items = {};
  std::optional<std::uint64_t> max_items = {};
  std::optional<std::uint64_t> min_properties = {};
  std::optional<std::uint64_t> max_properties = {};
  /// Go's regular expressions are RE2's: linear in time, bounded in memory.
  std::unique_ptr<const re2::RE2> pattern = {};
  std::string format_name = {};
  format_check format = nullptr;
  std::vector<boost::json::value> allowed = {};  ///< enum
  std::vector<std::string> required = {};
  std::vector<std::unique_ptr<schema_node>> all_of = {};
  std::vector<std::unique_ptr<schema_node>> any_of = {};
  std::vector<std::unique_ptr<schema_node>> one_of = {};
  std::unique_ptr<schema_node> none_of = {};
};

/// A rule of x-kubernetes-validations.
struct cel_rule {
  cel_expression expression;
  std::string text;
  std::string message;
  cel_expression message_expression;  ///< `has_message_expression`
  bool has_message_expression = false;
  std::string reason;
  std::string field_path;  ///< such as ".spec.x"
};

/// The path of a value, for messages: names from the root on, joined only when they are needed.
struct value_path {
  const value_path* parent = nullptr;
  std::string_view name;  ///< of a field, or the index of an item: "[0]"

  std::string text() const;
};

/// What schema_node::check_lists finds.
struct list_findings {
  std::vector<cause> embedded;  ///< in resources within the resource
  std::vector<cause> lists;     ///< in lists that are sets or maps
};

/// A compiled node of a CustomResourceDefinition's schema. Filled in by the compiler, then
/// immutable.
class schema_node final : public schema {
 public:
  const schema* property(std::string_view name) const override;
  const schema* items() const override;
  bool declares(std::string_view field) const override;
  bool allows(std::string_view field) const override;
  value_form form() const override;
  list_type merge() const override { return list; }
  const std::vector<std::string>& list_map_keys() const override { return map_keys; }
  bool atomic_object() const override { return atomic; }
  std::string_view patch_merge_key() const override { return {}; }
  bool patch_merges() const override { return false; }
  void drop_nulls(boost::json::value& value) const override;
  void fill_defaults(boost::json::value& value) const override;
  void prune(boost::json::value& value, std::vector<std::string>& removed) const override;
  void validate(const boost::json::value& value, const std::string& path,
                std::vector<cause>& found) const override;

  void validate_object(const boost::json::value& before, const boost::json::value& object,
                       std::vector<cause>& found) const override;
  const std::vector<std::string>& gaps() const override { return unsupported; }
  /// Evaluates the rules of this node and those below; `before` is null if there is no former value
  /// that this one takes the place of.
  void check_rules(const boost::json::value& value, const boost::json::value* before,
                   const std::string& path, std::vector<cause>& found) const;

  /// Validates a value that is part of an object. What is as it was may be wrong; `before` as
  /// above.
  void check(const boost::json::value& value, const boost::json::value* before,
             const value_path& at, std::vector<cause>& found) const;
  /// Checks, for validate, duplicates in lists that are sets or maps, and resources in resources.
  void check_lists(const boost::json::value& value, const std::string& path,
                   list_findings& found) const;

  value_type type = value_type::any;
  list_type list = list_type::atomic;
  bool nullable = false;
  bool int_or_string = false;
  bool preserves_unknown = false;
  bool resource = false;  ///< with apiVersion, kind and metadata: the root, or embedded
  bool embedded = false;  ///< the latter
  bool atomic = false;
  bool of_items = false;
  bool any_property = false;  ///< additionalProperties: true
  bool no_property = false;   ///< additionalProperties: false
  std::map<std::string, std::unique_ptr<schema_node>, std::less<>> properties;
  std::unique_ptr<schema_node> element;  ///< items (`of_items`), or additionalProperties
  std::vector<std::string> map_keys;
  std::optional<boost::json::value> by_default;
  std::unique_ptr<value_rules> rules;
  std::vector<cel_rule> validations;
  bool has_validations = false;               ///< of its own, or below
  std::vector<std::string> unsupported;       ///< at the root: rules that are not evaluated
  std::shared_ptr<const schema> object_meta;  ///< of `metadata` in a resource

 private:
  /// The schema of a field, or of an item of a list; null if there is none.
  const schema_node* child(std::string_view name) const;
  const schema_node* item() const { return of_items ? element.get() : nullptr; }
  bool is_hidden(std::string_view name) const;
  void prune_fields(boost::json::value& value, const std::string& path, bool keep,
                    std::vector<std::string>& removed) const;
  void check_type(const boost::json::value& value, const value_path& at,
                  std::vector<cause>& found) const;
  void check_children(const boost::json::value& value, const boost::json::value* before,
                      const value_path& at, std::vector<cause>& found) const;
  /// Returns the items of a former list whose place others may take: only those of lists of type
  /// map are told apart (apiserver, cel/common/equality.go).
  items_by_element former_items(const boost::json::value* before) const;
};

}  // namespace rw::k8s::devserver
