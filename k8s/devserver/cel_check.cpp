#include "rw/k8s/devserver/cel.hpp"
#include "rw/k8s/devserver/schema_node.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rw::k8s::devserver {
namespace cel {
namespace {

using kind = cel_node::kind;

enum class base : std::uint8_t { dyn, boolean, number, text, list, map, object };

/// The type of an expression; `of` is the schema of an object, or of a list's or map's values, if
/// it is known.
struct type {
  base is = base::dyn;
  const schema_node* of = nullptr;
  std::string_view format = {};  ///< of a text that CEL has a type of its own for
};

/// Returns true for a format whose texts are timestamps, durations or bytes in CEL.
bool own_type(std::string_view format) {
  return format == "date" || format == "date-time" || format == "duration" || format == "byte";
}

type type_of(const schema_node* of) {
  if (of == nullptr || of->int_or_string) return {};
  switch (of->type) {
    case value_type::boolean:
      return {base::boolean};
    case value_type::integer:
    case value_type::number:
      return {base::number};
    case value_type::string: {
      const auto format =
          of->rules != nullptr ? std::string_view(of->rules->format_name) : std::string_view();
      return {base::text, nullptr, own_type(format) ? format : std::string_view()};
    }
    case value_type::array:
      return {base::list, of->element.get()};
    case value_type::object:
      if (of->element != nullptr) return {base::map, of->element.get()};
      if (of->any_property || (of->properties.empty() && of->preserves_unknown)) return {};
      return {base::object, of};
    case value_type::any:
      break;
  }
  return {};
}

std::string_view name_of(base is) {
  static constexpr std::array<std::string_view, 7> names{"dyn",  "bool", "number", "string",
                                                         "list", "map",  "object"};
  return names[static_cast<std::size_t>(is)];
}

/// Infers types as far as the schema gives them. `error` is the first error.
class checker {
 public:
  explicit checker(const schema_node& self) : self_(type_of(&self)) {}

  type infer(const cel_node& node) {
    const auto made = infer_kind(node);
    // Whether there is such a text can be asked.
    if (!made.format.empty() && node.is != kind::has) format = made.format;
    return made;
  }

  std::string error;
  std::string_view format;  ///< of a text that the expression reads, and that is no text in CEL

 private:
  type infer_kind(const cel_node& node) {
    switch (node.is) {
      case kind::literal:
        return literal(node);
      case kind::name:
        return variable(node.text);
      case kind::select:
        return field(infer(*node.args[0]), node.text);
      case kind::has:
        field(infer(*node.args[0]), node.text);
        return {base::boolean};
      case kind::index:
        return item(node);
      case kind::call:
        for (const auto& arg : node.args) infer(*arg);
        return function(node.text);
      case kind::method:
        for (const auto& arg : node.args) infer(*arg);
        return function(node.text);
      case kind::unary:
        return need(infer(*node.args[0]), node.text == "!" ? base::boolean : base::number,
                    node.text);
      case kind::binary:
        return binary(node);
      case kind::ternary: {
        need(infer(*node.args[0]), base::boolean, "?");
        const auto yes = infer(*node.args[1]);
        const auto no = infer(*node.args[2]);
        return yes.is == no.is ? yes : type{};
      }
      case kind::list:
        for (const auto& arg : node.args) infer(*arg);
        return {base::list};
      case kind::map:
        for (const auto& arg : node.args) infer(*arg);
        return {base::map};
      case kind::macro:
        return macro(node);
    }
    return {};
  }

  void fail(std::string reason) {
    if (error.empty()) error = std::move(reason);
  }

  static type literal(const cel_node& node) {
    if (node.value.is_bool()) return {base::boolean};
    if (node.value.is_string()) return {base::text};
    return node.value.is_null() ? type{} : type{base::number};
  }

  type variable(const std::string& name) {
    for (auto at = scope_.rbegin(); at != scope_.rend(); ++at) {
      if (at->first == name) return at->second;
    }
    if (name == "self" || name == "oldSelf") return self_;
    fail("undeclared reference to '" + name + "'");
    return {};
  }

  type field(type of, const std::string& name) {
    if (of.is == base::dyn) return {};
    if (of.is == base::map) return type_of(of.of);
    if (of.is != base::object) {
      fail("type '" + std::string(name_of(of.is)) + "' does not support field selection");
      return {};
    }
    const auto found = of.of->properties.find(name);
    if (of.of->resource && (name == "apiVersion" || name == "kind")) return {base::text};
    if (of.of->resource && name == "metadata") return {};
    if (found == of.of->properties.end()) {
      fail("undefined field '" + name + "'");
      return {};
    }
    return type_of(found->second.get());
  }

  type item(const cel_node& node) {
    const auto of = infer(*node.args[0]);
    infer(*node.args[1]);
    if (of.is == base::list || of.is == base::map) return type_of(of.of);
    if (of.is != base::dyn && of.is != base::object) fail("found no matching overload for '_[_]'");
    return {};
  }

  static type function(std::string_view name) {
    if (name == "size" || name == "int" || name == "uint" || name == "double" ||
        name == "indexOf") {
      return {base::number};
    }
    if (name == "startsWith" || name == "endsWith" || name == "contains" || name == "matches" ||
        name == "bool" || name == "isSorted") {
      return {base::boolean};
    }
    if (name == "string" || name == "lowerAscii" || name == "upperAscii" || name == "trim" ||
        name == "join" || name == "replace") {
      return {base::text};
    }
    return {};
  }

  type need(type is, base wanted, const std::string& operation) {
    if (is.is != base::dyn && is.is != wanted) {
      fail("found no matching overload for '" + operation + "' applied to '" +
           std::string(name_of(is.is)) + "'");
    }
    return {wanted};
  }

  type binary(const cel_node& node) {
    const auto left = infer(*node.args[0]);
    const auto right = infer(*node.args[1]);
    const auto& name = node.text;
    if (name == "&&" || name == "||") {
      need(left, base::boolean, name);
      return need(right, base::boolean, name);
    }
    const bool differ =
        left.is != base::dyn && right.is != base::dyn && left.is != right.is && name != "in";
    // A literal map may be compared with an object.
    const bool maps = (left.is == base::map && right.is == base::object) ||
                      (left.is == base::object && right.is == base::map);
    if (differ && !maps) {
      fail("found no matching overload for '" + name + "' applied to '" +
           std::string(name_of(left.is)) + ", " + std::string(name_of(right.is)) + "'");
    }
    if (name == "+") return left.is != base::dyn ? left : right;
    if (name == "-" || name == "*" || name == "/" || name == "%") return {base::number};
    return {base::boolean};
  }

  type macro(const cel_node& node) {
    const auto of = infer(*node.args[0]);
    if (of.is != base::dyn && of.is != base::list && of.is != base::map && of.is != base::object) {
      fail("expression of type '" + std::string(name_of(of.is)) + "' cannot be range of a macro");
    }
    const auto each = of.is == base::list  ? type_of(of.of)
                      : of.is == base::map ? type{base::text}
                                           : type{};
    scope_.emplace_back(node.variable, each);
    for (std::size_t i = 1; i < node.args.size(); ++i) {
      const auto made = infer(*node.args[i]);
      const bool condition = node.text != "map" || i + 1 < node.args.size();
      if (condition) need(made, base::boolean, node.text);
    }
    scope_.pop_back();
    if (node.text == "map") return {base::list};
    return node.text == "filter" ? of : type{base::boolean};
  }

  const type self_;
  std::vector<std::pair<std::string, type>> scope_;
};

}  // namespace
}  // namespace cel

void cel_expression::check(const schema_node& self, std::string_view wanted) {
  if (!error.empty() || !unsupported.empty()) return;
  cel::checker types(self);
  const auto made = types.infer(*root_);
  error = types.error;
  if (!types.format.empty()) {
    unsupported = "the type of format " + std::string(types.format);
    error.clear();
    return;
  }
  if (!error.empty() || made.is == cel::base::dyn || cel::name_of(made.is) == wanted) return;
  error = "must evaluate to " + std::string(wanted);
}

}  // namespace rw::k8s::devserver
