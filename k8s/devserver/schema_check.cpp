#include "rw/k8s/devserver/go_text.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/schema_node.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <re2/re2.h>
#include <set>
#include <utility>

// Findings are in the words of kube-apiserver, field for field and in its order, as far as those
// are intended: alternatives (anyOf and so on) have no field at all.

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Bounds the findings of a hostile object.
constexpr std::size_t most_findings = 1'000;

void add(std::vector<cause>& found, std::string field, std::string_view reason,
         std::string message) {
  if (found.size() >= most_findings) return;
  found.push_back({std::move(field), std::string(reason), std::move(message)});
}

/// "Invalid value: 11: spec.replicas in body …".
void add_invalid(std::vector<cause>& found, const value_path& at, std::string_view value,
                 const std::string& reason) {
  const auto path = at.text();
  add(found, path, "FieldValueInvalid",
      "Invalid value: " + std::string(value) + ": " + path + " in body " + reason);
}

/// Adds the finding of one alternative of several, or of all together.
void add_alternative(std::vector<cause>& found, const value_path& at, std::string_view reason) {
  add(found, "<nil>", "FieldValueInvalid",
      "Invalid value: \"\": \"" + at.text() + "\" must " + std::string(reason));
}

bool is_integer(const json::value& value) {
  auto read = value;
  return value.is_number() && normalize_numbers(read) && read.is_int64();
}

std::string_view kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "boolean";
    case json::kind::string:
      return "string";
    case json::kind::array:
      return "array";
    case json::kind::object:
      return "object";
    default:
      return is_integer(value) ? "integer" : "number";
  }
}

std::string_view name_of(value_type type) {
  switch (type) {
    case value_type::object:
      return "object";
    case value_type::array:
      return "array";
    case value_type::string:
      return "string";
    case value_type::integer:
      return "integer";
    case value_type::number:
      return "number";
    case value_type::boolean:
      return "boolean";
    case value_type::any:
      break;
  }
  return "";
}

double number_of(const json::value& value) {
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  return value.get_double();
}

bool is_multiple(const json::value& value, double of) {
  if (of == 0) return true;
  const auto quotient = number_of(value) / of;
  return std::trunc(quotient) == quotient;
}

/// Characters, not bytes.
std::size_t length_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

void check_number(const value_rules& rules, const json::value& value, const value_path& at,
                  std::vector<cause>& found) {
  const auto number = number_of(value);
  const auto wrong = [&](std::string_view reason, double bound) {
    add_invalid(found, at, go_text(value), std::string(reason) + " " + go_number(bound));
  };
  if (rules.multiple_of && !is_multiple(value, *rules.multiple_of)) {
    wrong("should be a multiple of", *rules.multiple_of);
  }
  if (rules.maximum) {
    const auto bound = *rules.maximum;
    if (rules.exclusive_maximum && number >= bound) wrong("should be less than", bound);
    if (!rules.exclusive_maximum && number > bound) wrong("should be less than or equal to", bound);
  }
  if (rules.minimum) {
    const auto bound = *rules.minimum;
    if (rules.exclusive_minimum && number <= bound) wrong("should be greater than", bound);
    if (!rules.exclusive_minimum && number < bound) {
      wrong("should be greater than or equal to", bound);
    }
  }
}

void check_string(const value_rules& rules, const json::value& value, const value_path& at,
                  std::vector<cause>& found) {
  const std::string_view text = value.get_string();
  const auto wrong = [&](const std::string& reason) {
    add_invalid(found, at, go_value(value), reason);
  };
  if (rules.max_length && length_of(text) > *rules.max_length) {
    wrong("should be at most " + std::to_string(*rules.max_length) + " chars long");
  }
  if (rules.min_length && length_of(text) < *rules.min_length) {
    wrong("should be at least " + std::to_string(*rules.min_length) + " chars long");
  }
  if (rules.pattern && !RE2::PartialMatch({text.data(), text.size()}, *rules.pattern)) {
    wrong("should match '" + rules.pattern->pattern() + "'");
  }
  if (rules.format != nullptr && !rules.format(text)) {
    wrong("must be of type " + rules.format_name + ": " + go_value(value));
  }
}

void check_array(const value_rules& rules, const json::array& value, const value_path& at,
                 std::vector<cause>& found) {
  const auto size = std::to_string(value.size());
  if (rules.min_items && value.size() < *rules.min_items) {
    add_invalid(found, at, size,
                "should have at least " + std::to_string(*rules.min_items) + " items");
  }
  if (rules.max_items && value.size() > *rules.max_items) {
    add_invalid(found, at, size,
                "should have at most " + std::to_string(*rules.max_items) + " items");
  }
}

/// The value in the message is the bound, as in kube-apiserver.
void check_object(const value_rules& rules, const json::object& value, const value_path& at,
                  std::vector<cause>& found) {
  for (const auto& name : rules.required) {
    if (!value.contains(name)) {
      add(found, value_path{&at, name}.text(), "FieldValueRequired", "Required value");
    }
  }
  if (rules.min_properties && value.size() < *rules.min_properties) {
    const auto bound = std::to_string(*rules.min_properties);
    add_invalid(found, at, bound, "should have at least " + bound + " properties");
  }
  if (rules.max_properties && value.size() > *rules.max_properties) {
    const auto bound = std::to_string(*rules.max_properties);
    add_invalid(found, at, bound, "should have at most " + bound + " properties");
  }
}

void check_enum(const value_rules& rules, const json::value& value, const value_path& at,
                std::vector<cause>& found) {
  if (rules.allowed.empty() || std::ranges::find(rules.allowed, value) != rules.allowed.end()) {
    return;
  }
  auto message = "Unsupported value: " + go_value(value) + ": supported values: ";
  for (const auto& allowed : rules.allowed) {
    if (!message.ends_with(": ")) message += ", ";
    message += json::serialize(json::string(go_text(allowed)));
  }
  add(found, at.text(), "FieldValueNotSupported", std::move(message));
}

using nodes = std::vector<std::unique_ptr<schema_node>>;

/// Returns the number of valid alternatives; adds the errors of the first to `wrong`.
std::size_t count_valid(const nodes& alternatives, const json::value& value, const value_path& at,
                        std::vector<cause>& wrong) {
  std::size_t valid = 0;
  for (const auto& alternative : alternatives) {
    std::vector<cause> here;
    alternative->check(value, nullptr, at, here);
    if (here.empty()) ++valid;
    if (&alternative == alternatives.data()) wrong = std::move(here);
  }
  return valid;
}

void append(std::vector<cause>& found, std::vector<cause> more) {
  for (auto& cause : more) {
    if (found.size() < most_findings) found.push_back(std::move(cause));
  }
}

void check_alternatives(const value_rules& rules, const json::value& value, const value_path& at,
                        std::vector<cause>& found) {
  std::vector<cause> first;
  if (!rules.any_of.empty() && count_valid(rules.any_of, value, at, first) == 0) {
    add_alternative(found, at, "validate at least one schema (anyOf)");
    append(found, std::move(first));
  }
  if (!rules.one_of.empty()) {
    first.clear();
    const auto valid = count_valid(rules.one_of, value, at, first);
    if (valid == 0) {
      add_alternative(found, at, "validate one and only one schema (oneOf). Found none valid");
      append(found, std::move(first));
    } else if (valid > 1) {
      add_alternative(found, at,
                      "validate one and only one schema (oneOf). Found " + std::to_string(valid) +
                          " valid alternatives");
    }
  }
  std::size_t valid = 0;
  for (const auto& schema : rules.all_of) {
    const auto before = found.size();
    schema->check(value, nullptr, at, found);
    if (found.size() == before) ++valid;
  }
  if (valid < rules.all_of.size() && found.size() < most_findings) {
    add_alternative(found, at,
                    valid > 0 ? "validate all the schemas (allOf)"
                              : "validate all the schemas (allOf). None validated");
  }
  if (rules.none_of == nullptr) return;
  std::vector<cause> wrong;
  rules.none_of->check(value, nullptr, at, wrong);
  if (wrong.empty()) add_alternative(found, at, "not validate the schema (not)");
}

}  // namespace

void schema_node::check_type(const json::value& value, const value_path& at,
                             std::vector<cause>& found) const {
  const auto kind = kind_of(value);
  std::string wanted(name_of(type));
  if (int_or_string) {
    if (kind == "integer" || kind == "string") return;
    wanted = "integer,string";
  } else if (type == value_type::any || kind == wanted ||
             (type == value_type::number && kind == "integer")) {
    return;
  }
  const auto shown = '"' + std::string(kind) + '"';
  add_invalid(found, at, shown, "must be of type " + wanted + ": " + shown);
  found.back().reason = "FieldValueTypeInvalid";
}

items_by_element schema_node::former_items(const json::value* before) const {
  return list == list_type::map ? index_items(before, *this) : items_by_element();
}

void schema_node::check_children(const json::value& value, const json::value* before,
                                 const value_path& at, std::vector<cause>& found) const {
  if (value.is_array()) {
    if (item() == nullptr) return;
    const auto former = former_items(before);
    const auto& entries = value.get_array();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const auto index = "[" + std::to_string(i) + "]";
      item()->check(entries[i], find_item(former, entries[i], *this), {&at, index}, found);
    }
  }
  if (!value.is_object()) return;
  const auto* const had = before != nullptr ? before->if_object() : nullptr;
  for (const auto& [name, field] : value.get_object()) {
    if (resource && name == "metadata" && !properties.contains(name)) continue;
    const value_path here{&at, name};
    if (const auto* const node = child(name)) {
      node->check(field, had != nullptr ? had->if_contains(name) : nullptr, here, found);
    } else if (no_property) {
      add(found, at.text(), "FieldValueInvalid",
          "Invalid value: " + json::serialize(json::string(name)) + ": " + here.text() +
              " in body is a forbidden property");
    }
  }
}

void schema_node::check(const json::value& value, const json::value* before, const value_path& at,
                        std::vector<cause>& found) const {
  if (value.is_null() && nullable) return;
  if (before != nullptr && *before == value) return;
  if (found.size() >= most_findings) return;
  check_type(value, at, found);
  if (rules != nullptr) {
    check_alternatives(*rules, value, at, found);
    check_enum(*rules, value, at, found);
    if (value.is_number()) check_number(*rules, value, at, found);
    if (value.is_string()) check_string(*rules, value, at, found);
    if (value.is_array()) check_array(*rules, value.get_array(), at, found);
    if (value.is_object()) check_object(*rules, value.get_object(), at, found);
  }
  check_children(value, before, at, found);
}

void schema_node::check_lists(const json::value& value, const std::string& path,
                              list_findings& found) const {
  const auto required = [&](const json::object& object, std::string_view name) {
    const auto* const there = object.if_contains(name);
    if (there != nullptr && there->is_string() && !there->get_string().empty()) return;
    add(found.embedded, path + "." + std::string(name), "FieldValueRequired",
        "Required value: must not be empty");
  };
  if (value.is_object()) {
    if (embedded) {
      required(value.get_object(), "apiVersion");
      required(value.get_object(), "kind");
    }
    for (const auto& [name, field] : value.get_object()) {
      const auto* const node = child(name);
      if (node == nullptr) continue;
      std::string below = path;
      if (!below.empty()) below += '.';
      node->check_lists(field, below.append(std::string_view(name)), found);
    }
  }
  if (!value.is_array() || item() == nullptr) return;
  const auto& items = value.get_array();
  std::set<std::string> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto at = path + "[" + std::to_string(i) + "]";
    const auto& entry = items[i];
    if (list == list_type::map && !entry.is_object()) {
      add(found.lists, at, "FieldValueInvalid",
          "Invalid value: " + go_value(entry) +
              ": must be an object for an array of list-type map");
    } else if (list != list_type::atomic) {
      json::object keys;
      for (const auto& name : map_keys) {
        const auto* const key = entry.get_object().if_contains(name);
        if (key != nullptr) keys.emplace(name, *key);
      }
      const auto shown = go_value(list == list_type::map ? json::value(std::move(keys)) : entry);
      if (!seen.insert(shown).second) {
        add(found.lists, at, "FieldValueDuplicate", "Duplicate value: " + shown);
      }
    }
    item()->check_lists(entry, at, found);
  }
}

void schema_node::validate(const json::value& value, const std::string& path,
                           std::vector<cause>& found) const {
  check(value, nullptr, {nullptr, path}, found);
  list_findings more;
  check_lists(value, path, more);
  std::ranges::move(more.embedded, std::back_inserter(found));
  std::ranges::move(more.lists, std::back_inserter(found));
}

}  // namespace rw::k8s::devserver
