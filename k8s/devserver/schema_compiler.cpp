#include "rw/k8s/devserver/schema_findings.hpp"
#include "rw/k8s/devserver/schema_node.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <re2/re2.h>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::int64_t regex_memory = 1 << 20;  // bytes, of each pattern

constexpr std::pair<std::string_view, value_type> types[] = {
    {"array", value_type::array},     {"boolean", value_type::boolean},
    {"integer", value_type::integer}, {"number", value_type::number},
    {"object", value_type::object},   {"string", value_type::string}};

/// Keywords of JSON Schema that CustomResourceDefinitions may not use.
constexpr std::string_view unsupported[] = {"$ref",         "definitions", "patternProperties",
                                            "dependencies", "id",          "additionalItems"};

/// Keywords that only the structure may use, not the schemas in allOf, anyOf, oneOf and not; with
/// the requirement in kube-apiserver's message.
constexpr std::pair<std::string_view, std::string_view> structural_only[] = {
    {"type", "empty"},
    {"title", "empty"},
    {"description", "empty"},
    {"default", "undefined"},
    {"additionalProperties", "undefined"},
    {"nullable", "false"},
    {"x-kubernetes-preserve-unknown-fields", "false"},
    {"x-kubernetes-embedded-resource", "false"},
    {"x-kubernetes-int-or-string", "false"},
    {"x-kubernetes-list-type", "undefined"},
    {"x-kubernetes-list-map-keys", "empty"},
    {"x-kubernetes-map-type", "undefined"}};

/// How messages name a node whose type is missing.
enum class role : std::uint8_t { root, field, item };

/// Returns the error of a pattern, in Go's words.
std::string regex_error(const re2::RE2& pattern) {
  static constexpr std::pair<re2::RE2::ErrorCode, std::string_view> known[] = {
      {re2::RE2::ErrorBadEscape, "invalid escape sequence"},
      {re2::RE2::ErrorBadCharClass, "invalid character class"},
      {re2::RE2::ErrorBadCharRange, "invalid character class range"},
      {re2::RE2::ErrorMissingBracket, "missing closing ]"},
      {re2::RE2::ErrorMissingParen, "missing closing )"},
      {re2::RE2::ErrorUnexpectedParen, "unexpected )"},
      {re2::RE2::ErrorTrailingBackslash, "trailing backslash at end of expression"},
      {re2::RE2::ErrorRepeatArgument, "missing argument to repetition operator"},
      {re2::RE2::ErrorRepeatSize, "invalid repeat count"},
      {re2::RE2::ErrorRepeatOp, "invalid nested repetition operator"},
      {re2::RE2::ErrorBadPerlOp, "invalid or unsupported Perl syntax"},
      {re2::RE2::ErrorBadNamedCapture, "invalid named capture"}};
  const auto* const found =
      std::ranges::find(known, pattern.error_code(), [](const auto& text) { return text.first; });
  if (found == std::end(known)) return pattern.error();
  return std::string(found->second) + ": `" + pattern.error_arg() + "`";
}

/// Makes nodes of a structural schema, and collects its errors.
class schema_compiler : public schema_findings {
 public:
  std::unique_ptr<schema_node> structure(const json::value& source, const std::string& path,
                                         role as) {
    auto made = std::make_unique<schema_node>();
    if (!source.is_object()) {
      invalid(path, source, "must be a schema object");
      return made;
    }
    const auto& object = source.get_object();
    made->resource = as == role::root || flag(object, "x-kubernetes-embedded-resource");
    made->embedded = as != role::root && made->resource;
    made->nullable = flag(object, "nullable");
    made->int_or_string = flag(object, "x-kubernetes-int-or-string");
    made->atomic = text(object, "x-kubernetes-map-type") == "atomic";
    if (made->resource) made->object_meta = object_meta_;
    read_preservation(*made, object, path);
    read_type(*made, object, path, as);
    read_children(*made, object, path);
    read_rules(*made, object, path);
    read_list_type(*made, object, path, *this);
    check_kind(*made, object, path, as);
    read_default(*made, object, path);
    read_validations(*made, object, path);
    return made;
  }

  std::vector<std::string> gaps;  ///< rules that are not evaluated

 private:
  void read_preservation(schema_node& made, const json::object& object, const std::string& path) {
    static constexpr std::string_view name = "x-kubernetes-preserve-unknown-fields";
    const auto* const preserve = member(object, name);
    if (preserve == nullptr) return;
    made.preserves_unknown = *preserve == json::value(true);
    if (!made.preserves_unknown) {
      invalid(path + "." + std::string(name), *preserve, "must be true or undefined");
    }
  }

  void read_type(schema_node& made, const json::object& object, const std::string& path, role as) {
    const auto name = text(object, "type");
    if (name.empty()) {
      if (as != role::root && (made.int_or_string || made.preserves_unknown)) return;
      static constexpr std::array<std::string_view, 3> keywords{
          "at the root", "for specified object fields", "for specified array items"};
      required(path + ".type",
               "must not be empty " + std::string(keywords[static_cast<std::size_t>(as)]));
      return;
    }
    const auto* const found =
        std::ranges::find(types, name, [](const auto& type) { return type.first; });
    if (found == std::end(types)) {
      not_supported(path + ".type", object.at("type"),
                    R"("array", "boolean", "integer", "number", "object", "string")");
      return;
    }
    made.type = found->second;
    if (as == role::root && made.type != value_type::object) {
      invalid(path + ".type", object.at("type"), "must be object at the root");
    }
  }

  void read_children(schema_node& made, const json::object& object, const std::string& path) {
    for (const auto name : unsupported) {
      if (member(object, name) != nullptr) {
        forbidden(path + "." + std::string(name), std::string(name) + " is not supported");
      }
    }
    if (const auto* const properties = member(object, "properties")) {
      read_properties(made, *properties, path);
    }
    if (const auto* const additional = member(object, "additionalProperties")) {
      if (!made.properties.empty()) {
        forbidden(path + ".additionalProperties",
                  "additionalProperties and properties are mutual exclusive");
      } else if (additional->is_bool()) {
        (additional->get_bool() ? made.any_property : made.no_property) = true;
      } else {
        made.element = structure(*additional, path + ".additionalProperties", role::field);
      }
    }
    const auto* const items = member(object, "items");
    if (items != nullptr && items->is_array()) {
      forbidden(path + ".items", "items must be a schema object and not an array");
    } else if (items != nullptr) {
      made.element = structure(*items, path + ".items", role::item);
      made.of_items = true;
    } else if (made.type == value_type::array) {
      required(path + ".items", "must be specified");
    }
  }

  void read_properties(schema_node& made, const json::value& properties, const std::string& path) {
    if (!properties.is_object()) return invalid(path + ".properties", properties, "must be a map");
    for (const auto& [name, source] : properties.get_object()) {
      const auto at = path + ".properties[" + std::string(name) + "]";
      auto child = structure(source, at, role::field);
      if (made.resource) check_hidden(name, source, *child, at);
      made.properties.emplace(name, std::move(child));
    }
  }

  /// apiVersion, kind and metadata have a type already.
  void check_hidden(std::string_view name, const json::value& source, const schema_node& node,
                    const std::string& at) {
    if (!source.is_object()) return;
    const auto* const type = source.get_object().if_contains("type");
    if (type == nullptr) return;
    if ((name == "apiVersion" || name == "kind") && node.type != value_type::string) {
      invalid(at + ".type", *type, "must be string");
    }
    if (name != "metadata") return;
    if (node.type != value_type::object) invalid(at + ".type", *type, "must be object");
    for (const auto& [field, child] : node.properties) {
      if (field == "name" || field == "generateName") continue;
      forbidden(at,
                "must not specify anything other than name and generateName, but metadata is "
                "implicitly specified");
      return;
    }
  }

  /// Adds the rules of a node. A node outside the structure has rules only.
  void read_rules(schema_node& made, const json::object& object, const std::string& path) {
    value_rules rules;
    bool any = false;
    any |= read_number(rules.minimum, object, "minimum", path);
    any |= read_number(rules.maximum, object, "maximum", path);
    any |= read_number(rules.multiple_of, object, "multipleOf", path);
    any |= read_count(rules.min_length, object, "minLength", path);
    any |= read_count(rules.max_length, object, "maxLength", path);
    any |= read_count(rules.min_items, object, "minItems", path);
    any |= read_count(rules.max_items, object, "maxItems", path);
    any |= read_count(rules.min_properties, object, "minProperties", path);
    any |= read_count(rules.max_properties, object, "maxProperties", path);
    rules.exclusive_minimum = flag(object, "exclusiveMinimum");
    rules.exclusive_maximum = flag(object, "exclusiveMaximum");
    any |= read_pattern(rules, object, path);
    rules.format_name = text(object, "format");
    rules.format = find_format(rules.format_name);
    any |= rules.format != nullptr;
    if (const auto* const allowed = member(object, "enum"); allowed && allowed->is_array()) {
      rules.allowed.assign(allowed->get_array().begin(), allowed->get_array().end());
      any = true;
    }
    if (const auto* const names = member(object, "required"); names && names->is_array()) {
      for (const auto& name : names->get_array()) {
        if (name.is_string()) rules.required.emplace_back(name.get_string());
      }
      any = true;
    }
    if (flag(object, "uniqueItems")) {
      forbidden(path + ".uniqueItems",
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    }
    any |= read_alternatives(rules.any_of, object, "anyOf", path, made.int_or_string);
    any |= read_alternatives(rules.one_of, object, "oneOf", path, false);
    any |= read_alternatives(rules.all_of, object, "allOf", path, made.int_or_string);
    if (const auto* const source = member(object, "not")) {
      rules.none_of = validation(*source, path + ".not");
      any = true;
    }
    if (any) made.rules = std::make_unique<value_rules>(std::move(rules));
  }

  bool read_number(std::optional<double>& into, const json::object& object, std::string_view name,
                   const std::string& path) {
    const auto* const value = member(object, name);
    if (value == nullptr) return false;
    if (!value->is_number()) {
      invalid(path + "." + std::string(name), *value, "must be a number");
      return false;
    }
    into = value->to_number<double>();
    return true;
  }

  bool read_count(std::optional<std::uint64_t>& into, const json::object& object,
                  std::string_view name, const std::string& path) {
    const auto* const value = member(object, name);
    if (value == nullptr) return false;
    boost::system::error_code error;
    const auto number = value->is_number() ? value->to_number<std::int64_t>(error) : 0;
    if (error || !value->is_number()) {
      invalid(path + "." + std::string(name), *value, "must be an integer");
      return false;
    }
    into = number < 0 ? 0 : static_cast<std::uint64_t>(number);
    return true;
  }

  bool read_pattern(value_rules& rules, const json::object& object, const std::string& path) {
    const auto pattern = text(object, "pattern");
    if (pattern.empty()) return false;
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(regex_memory);
    rules.pattern =
        std::make_unique<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
    if (rules.pattern->ok()) return true;
    invalid(path + ".pattern", json::value(pattern),
            "must be a valid regular expression, but isn't: error parsing regexp: " +
                regex_error(*rules.pattern));
    rules.pattern.reset();
    return false;
  }

  /// Returns true for `[{"type": "integer"}, {"type": "string"}]`, which int-or-string may state
  /// and implies anyway.
  static bool is_int_or_string(const json::value& alternatives) {
    static const json::value meant = {{{"type", "integer"}}, {{"type", "string"}}};
    static const json::value turned = {{{"type", "string"}}, {{"type", "integer"}}};
    return alternatives == meant || alternatives == turned;
  }

  bool read_alternatives(std::vector<std::unique_ptr<schema_node>>& into,
                         const json::object& object, std::string_view name, const std::string& path,
                         bool int_or_string) {
    const auto* const source = member(object, name);
    if (source == nullptr || !source->is_array()) return false;
    if (int_or_string && name == "anyOf" && is_int_or_string(*source)) return false;
    const auto& all = source->get_array();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto* const types_only = int_or_string && i == 0 && all[i].is_object()
                                         ? member(all[i].get_object(), "anyOf")
                                         : nullptr;
      if (types_only != nullptr && is_int_or_string(*types_only)) continue;
      into.push_back(
          validation(all[i], path + "." + std::string(name) + "[" + std::to_string(i) + "]"));
    }
    return !into.empty();
  }

  std::unique_ptr<schema_node> validation(const json::value& source, const std::string& path) {
    auto made = std::make_unique<schema_node>();
    if (!source.is_object()) {
      invalid(path, source, "must be a schema object");
      return made;
    }
    const auto& object = source.get_object();
    for (const auto& [name, must] : structural_only) {
      const auto* const value = member(object, name);
      if (value == nullptr || *value == json::value(false)) continue;
      forbidden(path + "." + std::string(name),
                "must be " + std::string(must) + " to be structural");
    }
    for (const auto name : unsupported) {
      if (member(object, name) != nullptr) {
        forbidden(path + "." + std::string(name), std::string(name) + " is not supported");
      }
    }
    if (const auto* const properties = member(object, "properties");
        properties != nullptr && properties->is_object()) {
      for (const auto& [name, child] : properties->get_object()) {
        made->properties.emplace(
            name, validation(child, path + ".properties[" + std::string(name) + "]"));
      }
    }
    if (const auto* const items = member(object, "items"); items && items->is_object()) {
      made->element = validation(*items, path + ".items");
      made->of_items = true;
    }
    read_rules(*made, object, path);
    // The structure rejects null.
    made->nullable = true;
    return made;
  }

  void check_kind(const schema_node& made, const json::object& object, const std::string& path,
                  role as) {
    const json::value type(text(object, "type"));
    if (const auto* const map = member(object, "x-kubernetes-map-type")) {
      if (*map != json::value("atomic") && *map != json::value("granular")) {
        not_supported(path + ".x-kubernetes-map-type", *map, R"("atomic", "granular")");
      }
      if (made.type != value_type::object) {
        invalid(path + ".type", type, "must be object if x-kubernetes-map-type is specified");
      }
    }
    if (made.embedded) {
      if (made.properties.empty() && !made.preserves_unknown) {
        required(path + ".properties",
                 "must not be empty if x-kubernetes-embedded-resource is true without "
                 "x-kubernetes-preserve-unknown-fields");
      }
      if (member(object, "type") == nullptr) {
        required(path + ".type", "must be object if x-kubernetes-embedded-resource is true");
      } else if (made.type != value_type::object) {
        invalid(path + ".type", type, "must be object if x-kubernetes-embedded-resource is true");
      }
    }
    if (as != role::root) return;
    if (made.nullable) forbidden(path + ".nullable", "nullable cannot be true at the root");
    if (member(object, "additionalProperties") != nullptr) {
      forbidden(path + ".additionalProperties", "must not be used at the root");
    }
  }

  /// Reads a default, which must be valid, and have nothing that would be pruned.
  void read_default(schema_node& made, const json::object& object, const std::string& path) {
    const auto* const value = member(object, "default");
    if (value == nullptr) return;
    std::vector<std::string> removed;
    auto pruned = *value;
    made.prune(pruned, removed);
    if (!removed.empty()) {
      return invalid(path + ".default", *value, "must not have unknown fields");
    }
    std::vector<cause> found;
    made.validate(*value, "", found);
    for (auto& rule : found) {
      rule.field = path + ".default" + (rule.field.empty() ? "" : "." + rule.field);
      errors.push_back(std::move(rule));
    }
    made.by_default = *value;
  }

  /// Reads the rules in CEL, which see the node and what is below it.
  void read_validations(schema_node& made, const json::object& object, const std::string& path) {
    made.has_validations = made.element != nullptr && made.element->has_validations;
    for (const auto& [name, property] : made.properties) {
      made.has_validations = made.has_validations || property->has_validations;
    }
    static constexpr std::string_view keyword = "x-kubernetes-validations";
    const auto* const list = member(object, keyword);
    if (list == nullptr || !list->is_array()) return;
    std::size_t index = 0;
    for (const auto& source : list->get_array()) {
      const auto at = path + "." + std::string(keyword) + "[" + std::to_string(index++) + "]";
      if (!source.is_object()) {
        invalid(at, source, "must be an object");
        continue;
      }
      made.validations.push_back(read_rule(made, source.get_object(), at));
      made.has_validations = true;
    }
  }

  cel_rule read_rule(const schema_node& of, const json::object& source, const std::string& at) {
    cel_rule made;
    made.text = text(source, "rule");
    made.message = text(source, "message");
    made.reason = text(source, "reason");
    made.field_path = text(source, "fieldPath");
    if (made.text.empty()) {
      required(at + ".rule", "rule is not specified");
      return made;
    }
    made.expression = cel_expression::parse(made.text);
    made.expression.check(of, "bool");
    note(made.expression, source.at("rule"), at + ".rule");
    if (flag(source, "optionalOldSelf")) made.expression.unsupported = "optionalOldSelf";
    const auto* const words = member(source, "messageExpression");
    if (words != nullptr && words->is_string()) {
      made.has_message_expression = true;
      made.message_expression = cel_expression::parse(text(source, "messageExpression"));
      made.message_expression.check(of, "string");
      note(made.message_expression, *words, at + ".messageExpression");
    }
    if (!made.expression.unsupported.empty()) {
      gaps.push_back(at + ".rule: this API server does not know " + made.expression.unsupported +
                     "; the rule is not evaluated");
    }
    if (!made.reason.empty() && made.reason != "FieldValueInvalid" &&
        made.reason != "FieldValueForbidden" && made.reason != "FieldValueRequired" &&
        made.reason != "FieldValueDuplicate") {
      not_supported(at + ".reason", source.at("reason"),
                    R"("FieldValueRequired", "FieldValueInvalid", "FieldValueDuplicate", )"
                    R"("FieldValueForbidden")");
    }
    return made;
  }

  void note(const cel_expression& made, const json::value& shown, const std::string& at) {
    if (!made.error.empty()) invalid(at, shown, "compilation failed: " + made.error);
  }

  /// The type of `metadata`, independent of the schema.
  const std::shared_ptr<const schema> object_meta_ = [] {
    const auto any = builtin_schema("", "");
    return std::shared_ptr<const schema>(any, any->property("metadata"));
  }();
};

}  // namespace

outcome<std::shared_ptr<const schema>> compile_schema(const json::value& open_api) {
  schema_compiler compiler;
  auto root = compiler.structure(open_api, "openAPIV3Schema", role::root);
  if (compiler.errors.empty()) check_costs(*root, "openAPIV3Schema", compiler);
  root->unsupported = std::move(compiler.gaps);
  if (compiler.errors.empty()) return std::shared_ptr<const schema>(std::move(root));
  problem found{.code = 422, .reason = "Invalid", .message = {}};
  for (const auto& error : compiler.errors) {
    if (!found.message.empty()) found.message += ", ";
    found.message += error.field + ": " + error.message;
  }
  if (compiler.errors.size() > 1) found.message = "[" + found.message + "]";
  found.causes = std::move(compiler.errors);
  return found;
}

}  // namespace rw::k8s::devserver
