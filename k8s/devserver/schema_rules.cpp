#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/schema_node.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <iterator>

// x-kubernetes-validations and ratcheting (Kubernetes, "Validation rules", "Validation
// ratcheting").

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

bool blocks_rules(const cause& cause) {
  return cause.reason == "FieldValueRequired" || cause.reason == "FieldValueTooLong" ||
         cause.reason == "FieldValueTooMany" || cause.reason == "FieldValueTypeInvalid";
}

std::string shown_type(const json::value& value) {
  if (value.is_object()) return "\"object\"";
  if (value.is_array()) return "\"array\"";
  if (value.is_string()) return "\"string\"";
  if (value.is_bool()) return "\"boolean\"";
  return value.is_int64() ? "\"integer\"" : "\"number\"";
}

std::string message_of(const cel_rule& rule, const json::value& value, const json::value* before) {
  if (rule.has_message_expression && rule.message_expression.error.empty() &&
      rule.message_expression.unsupported.empty()) {
    const auto made = rule.message_expression.evaluate(value, before);
    if (made.error.empty() && made.value.is_string() && !made.value.get_string().empty()) {
      return std::string(made.value.get_string());
    }
  }
  return rule.message.empty() ? "failed rule: " + rule.text : rule.message;
}

void run_rule(const cel_rule& rule, const json::value& value, const json::value* before,
              const std::string& path, std::vector<cause>& found) {
  if (!rule.expression.unsupported.empty()) return;  // the client is warned
  const bool transition = rule.expression.uses_old_self();
  if (transition ? before == nullptr : before != nullptr && *before == value) return;
  const auto made = rule.expression.evaluate(value, transition ? before : nullptr);
  if (made.is_true()) return;
  auto field = made.error.empty() ? path + rule.field_path : path;
  if (field.starts_with('.')) field.erase(0, 1);
  const auto text = made.error.empty()
                        ? message_of(rule, value, before)
                        : "rule evaluation error: " + made.error + " evaluating rule: " + rule.text;
  const auto reason =
      made.error.empty() && !rule.reason.empty() ? rule.reason : std::string("FieldValueInvalid");
  const auto begin = reason == "FieldValueForbidden"   ? std::string("Forbidden")
                     : reason == "FieldValueRequired"  ? std::string("Required value")
                     : reason == "FieldValueDuplicate" ? "Duplicate value: " + shown_type(value)
                                                       : "Invalid value: " + shown_type(value);
  found.push_back({field.empty() ? "<nil>" : field, reason, begin + ": " + text});
}

}  // namespace

void schema_node::check_rules(const json::value& value, const json::value* before,
                              const std::string& path, std::vector<cause>& found) const {
  if (!has_validations || value.is_null()) return;
  if (before != nullptr && before->is_null()) before = nullptr;
  for (const auto& rule : validations) run_rule(rule, value, before, path, found);
  if (value.is_object()) {
    for (const auto& [name, field] : value.get_object()) {
      const auto* const node = child(name);
      if (node == nullptr) continue;
      const auto* const had = before != nullptr ? find(*before, {name}) : nullptr;
      const auto at = path.empty()                      ? std::string(name)
                      : element != nullptr && !of_items ? path + "[" + std::string(name) + "]"
                                                        : path + "." + std::string(name);
      node->check_rules(field, had, at, found);
    }
  }
  if (!value.is_array() || item() == nullptr) return;
  const bool has_old = before != nullptr && before->is_array();
  const bool unchanged = has_old && *before == value;
  const auto former = former_items(before);
  std::size_t index = 0;
  for (const auto& entry : value.get_array()) {
    const auto* had = find_item(former, entry, *this);
    if (unchanged && had == nullptr) had = &before->get_array()[index];
    item()->check_rules(entry, had, path + "[" + std::to_string(index++) + "]", found);
  }
}

void schema_node::validate_object(const json::value& before, const json::value& object,
                                  std::vector<cause>& found) const {
  std::vector<cause> here;
  check(object, before.is_null() ? nullptr : &before, {nullptr, {}}, here);
  list_findings more;
  check_lists(object, {}, more);
  if (!before.is_null()) {
    // Lists that were wrong may be wrong in another way (registry/customresource/strategy.go).
    list_findings had;
    check_lists(before, {}, had);
    if (!had.lists.empty()) more.lists.clear();
  }
  std::ranges::move(more.embedded, std::back_inserter(here));
  std::ranges::move(more.lists, std::back_inserter(here));
  const bool blocked = std::ranges::any_of(here, blocks_rules);
  std::ranges::move(here, std::back_inserter(found));
  if (!has_validations) return;
  if (blocked) {
    found.push_back({"<nil>", "FieldValueInvalid",
                     "Invalid value: null: some validation rules were not checked because the "
                     "object was invalid; correct the existing errors to complete validation"});
  } else {
    check_rules(object, before.is_null() ? nullptr : &before, {}, found);
  }
}

}  // namespace rw::k8s::devserver
