#include "rw/k8s/devserver/cel.hpp"
#include "rw/k8s/devserver/schema_node.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

// What an expression can cost at most, by its schema, as kube-apiserver estimates it before it
// accepts a definition: cel-go's checker/cost.go, and in apiserver/pkg/cel the sizes of values and
// costs of functions. Where those depend on more than is known here, this takes the least.

namespace rw::k8s::devserver {
namespace cel {
namespace {

using kind = cel_node::kind;

constexpr double request_size = 3.0 * 1024 * 1024;  // bytes
constexpr double per_byte = 0.1;                    // of a text that is read
constexpr double per_pattern_byte = 0.25;
constexpr double list_literal = 10;
constexpr double map_literal = 30;

/// Returns the least size of a value in JSON.
double least_size(const schema_node& of) {
  switch (of.type) {
    case value_type::boolean:
      return 4;
    case value_type::string:
    case value_type::array:
      return 2;
    case value_type::object: {
      double size = 2;
      if (of.rules == nullptr) return size;
      for (const auto& name : of.rules->required) {
        const auto found = of.properties.find(name);
        if (found == of.properties.end() || found->second->by_default) continue;
        size += static_cast<double>(name.size()) + 4 + least_size(*found->second);
      }
      return size;
    }
    case value_type::integer:
    case value_type::number:
    case value_type::any:
      break;
  }
  return 1;
}

double text_size(const schema_node& of) {
  if (of.rules == nullptr) return request_size - 2;
  double longest = 0;
  for (const auto& value : of.rules->allowed) {
    if (value.is_string())
      longest = std::max(longest, static_cast<double>(value.get_string().size()));
  }
  if (longest > 0) return longest;
  // A character has four bytes at most.
  if (of.rules->max_length) return 4.0 * static_cast<double>(*of.rules->max_length);
  const auto& format = of.rules->format_name;
  if (format == "duration" || format == "date" || format == "date-time") return 32;
  return request_size - 2;
}

/// Returns how many elements or bytes a value has at most.
double most_elements(const schema_node& of) {
  if (of.type == value_type::string) return text_size(of);
  if (of.element == nullptr) return 1;
  const auto* const rules = of.rules.get();
  if (of.of_items) {
    if (rules != nullptr && rules->max_items) return static_cast<double>(*rules->max_items);
    return (request_size - 2) / (least_size(*of.element) + 1);
  }
  if (rules != nullptr && rules->max_properties) return static_cast<double>(*rules->max_properties);
  return (request_size - 2) / (least_size(*of.element) + 6);
}

/// What an expression costs, and yields: `of` is its schema, if it is known, `size` its elements.
struct estimate {
  double cost = 0;
  const schema_node* of = nullptr;
  double size = 1;
};

estimate yields(double cost, const schema_node* of) {
  return {cost, of, of != nullptr ? most_elements(*of) : 1};
}

class estimator {
 public:
  explicit estimator(const schema_node& self) : self_(self) {}

  estimate of(const cel_node& node) {
    switch (node.is) {
      case kind::literal:
        return {0, nullptr,
                node.value.is_string() ? static_cast<double>(node.value.get_string().size()) : 1};
      case kind::name:
        return variable(node.text);
      case kind::select: {
        const auto whole = of(*node.args[0]);
        return yields(whole.cost + 1, field_of(whole.of, node.text));
      }
      case kind::has:
        return {of(*node.args[0]).cost};
      case kind::index: {
        const auto whole = of(*node.args[0]);
        return yields(whole.cost + of(*node.args[1]).cost + 1, element_of(whole.of));
      }
      case kind::unary:
        return {of(*node.args[0]).cost + 1};
      case kind::binary:
        return binary(node);
      case kind::ternary: {
        const auto yes = of(*node.args[1]);
        const auto no = of(*node.args[2]);
        const auto& larger = yes.size < no.size ? no : yes;
        return {of(*node.args[0]).cost + std::max(yes.cost, no.cost), larger.of, larger.size};
      }
      case kind::list:
        return {sum_of(node) + list_literal, nullptr, static_cast<double>(node.args.size())};
      case kind::map:
        return {sum_of(node) + map_literal, nullptr, static_cast<double>(node.args.size() / 2)};
      case kind::call:
      case kind::method:
        return function(node);
      case kind::macro:
        return macro(node);
    }
    return {};
  }

 private:
  double sum_of(const cel_node& node) {
    double sum = 0;
    for (const auto& arg : node.args) sum += of(*arg).cost;
    return sum;
  }

  estimate variable(const std::string& name) const {
    for (auto at = scope_.rbegin(); at != scope_.rend(); ++at) {
      if (at->first == name) return yields(1, at->second);
    }
    return yields(1, name == "self" || name == "oldSelf" ? &self_ : nullptr);
  }

  static const schema_node* field_of(const schema_node* of, const std::string& name) {
    if (of == nullptr) return nullptr;
    const auto found = of->properties.find(name);
    if (found != of->properties.end()) return found->second.get();
    return of->of_items ? nullptr : of->element.get();
  }
  static const schema_node* element_of(const schema_node* of) {
    return of != nullptr ? of->element.get() : nullptr;
  }

  estimate binary(const cel_node& node) {
    const auto left = of(*node.args[0]);
    const auto right = of(*node.args[1]);
    const auto both = left.cost + right.cost;
    if (node.text == "&&" || node.text == "||") return {both};
    if (node.text == "in") {
      const bool keys = right.of != nullptr && right.of->type == value_type::object;
      return {both + (keys ? 1 : right.size)};
    }
    // What is compared are at most the bytes of the shorter one.
    const auto compared = std::max(1.0, std::min(left.size, right.size) * per_byte);
    if (node.text == "+") return {both + 1, nullptr, left.size + right.size};
    const bool compares = node.text == "==" || node.text == "!=" || node.text.front() == '<' ||
                          node.text.front() == '>';
    return {both + (compares ? compared : 1)};
  }

  estimate function(const cel_node& node) {
    std::vector<estimate> args;
    double sum = 0;
    for (const auto& arg : node.args) {
      args.push_back(of(*arg));
      sum += args.back().cost;
    }
    const auto& name = node.text;
    const auto read = [&](std::size_t index) {
      return index < args.size() ? args[index].size * per_byte : 0;
    };
    double own = 1;
    if (name == "contains") {
      own = read(0) * read(1);
    } else if (name == "startsWith" || name == "endsWith") {
      own = read(1);
    } else if (name == "matches" && args.size() == 2) {
      own = (args[0].size + 1) * per_byte * args[1].size * per_pattern_byte;
    } else if (name == "lowerAscii" || name == "upperAscii" || name == "trim" ||
               name == "replace") {
      own = read(0);
    } else if (name == "isSorted" || name == "sum" || name == "min" || name == "max") {
      own = args.empty() ? 1 : args[0].size;
    }
    const bool same =
        name == "lowerAscii" || name == "upperAscii" || name == "trim" || name == "dyn";
    return {sum + std::max(own, 1.0), nullptr, same && !args.empty() ? args[0].size : 1};
  }

  estimate macro(const cel_node& node) {
    const auto range = of(*node.args[0]);
    const bool list = range.of == nullptr || range.of->of_items;
    scope_.emplace_back(node.variable, list ? element_of(range.of) : nullptr);
    double body = 0;
    for (std::size_t i = 1; i < node.args.size(); ++i) body += of(*node.args[i]).cost;
    scope_.pop_back();
    // What the loop that the macro stands for does in addition, each time and at its ends.
    const auto& name = node.text;
    const double each = name == "all"          ? 3
                        : name == "exists"     ? 4
                        : name == "exists_one" ? 2
                                               : 3 + list_literal;
    const double ends = name == "map" || name == "filter" ? 1 + list_literal : 1;
    const auto cost = range.cost + range.size * (body + each) + ends;
    return {cost, name == "filter" ? range.of : nullptr, range.size};
  }

  const schema_node& self_;
  std::vector<std::pair<std::string, const schema_node*>> scope_;
};

}  // namespace
}  // namespace cel

double most_times(const schema_node& of) {
  return cel::request_size / (cel::least_size(of) + 1);
}

double cel_expression::most_cost(const schema_node& self) const {
  if (!error.empty() || !unsupported.empty()) return 0;
  return cel::estimator(self).of(*root_).cost;
}

}  // namespace rw::k8s::devserver
