#include "rw/k8s/devserver/schema_findings.hpp"
#include "rw/k8s/devserver/schema_node.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {
namespace {

constexpr double rule_budget = 10'000'000;
constexpr double schema_budget = 100'000'000;
constexpr std::size_t most_named = 4;

struct rule_cost {
  std::string path;
  double cost;
};

std::string exceeds(double factor) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1fx", factor);
  return "exceeds budget by factor of " +
         (factor > 100 ? "more than 100x" : std::string(text.data())) +
         " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where "
         "arrays, maps, and strings are declared)";
}

/// Adds the rules of the node and those below; `times`: how often the node can be in an object, or
/// nothing if a list or map above it has no limit.
void add_costs(const schema_node& node, const std::string& path, std::optional<double> times,
               std::vector<rule_cost>& into, schema_findings& found) {
  if (!node.has_validations) return;
  const auto add = [&](const cel_expression& expression, const std::string& at,
                       std::string_view kind) {
    const auto cost = expression.most_cost(node) * times.value_or(most_times(node));
    if (cost > rule_budget) {
      found.forbidden(at,
                      "estimated " + std::string(kind) + " cost " + exceeds(cost / rule_budget));
    }
    into.push_back({at, cost});
  };
  std::size_t index = 0;
  for (const auto& rule : node.validations) {
    const auto at = path + ".x-kubernetes-validations[" + std::to_string(index++) + "]";
    add(rule.expression, at + ".rule", "rule");
    if (rule.has_message_expression) {
      add(rule.message_expression, at + ".messageExpression", "messageExpression");
    }
  }
  for (const auto& [name, child] : node.properties) {
    add_costs(*child, path + ".properties[" + name + "]", times, into, found);
  }
  if (node.element == nullptr) return;
  const auto* const rules = node.rules.get();
  const auto most = rules == nullptr ? std::nullopt
                    : node.of_items  ? rules->max_items
                                     : rules->max_properties;
  if (times && most) {
    times = *times * static_cast<double>(*most);
  } else {
    times.reset();
  }
  add_costs(*node.element, path + (node.of_items ? ".items" : ".additionalProperties"), times, into,
            found);
}

}  // namespace

void check_costs(const schema_node& root, const std::string& path, schema_findings& found) {
  std::vector<rule_cost> all;
  add_costs(root, path, 1, all, found);
  double total = 0;
  for (const auto& rule : all) total += rule.cost;
  if (total <= schema_budget) return;
  std::ranges::sort(all, std::ranges::greater(), &rule_cost::cost);
  for (std::size_t i = 0; i < std::min(all.size(), most_named); ++i) {
    found.forbidden(all[i].path,
                    "contributed to estimated rule & messageExpression cost total exceeding cost "
                    "limit for entire OpenAPIv3 schema");
  }
  found.forbidden(path,
                  "x-kubernetes-validations estimated rule & messageExpression cost total for "
                  "entire OpenAPIv3 schema " +
                      exceeds(total / schema_budget));
}

}  // namespace rw::k8s::devserver
