#pragma once

#include <boost/json/value.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// A bounded part of the Common Expression Language (github.com/google/cel-spec), for
// x-kubernetes-validations: self, oldSelf, comparisons, arithmetic, strings, in, has(), size(),
// matches() and the macros over lists and maps.

namespace rw::k8s::devserver {

class schema_node;

/// A node of a parsed expression.
struct cel_node {
  enum class kind : std::uint8_t {
    literal,  ///< `value`
    name,     ///< `text`: a variable
    select,   ///< args[0].text
    has,      ///< has(args[0].text)
    index,    ///< args[0][args[1]]
    call,     ///< text(args...)
    method,   ///< args[0].text(args[1]...)
    unary,    ///< text args[0]
    binary,   ///< args[0] text args[1]
    ternary,  ///< args[0] ? args[1] : args[2]
    list,     ///< [args...]
    map,      ///< {args[0]: args[1], ...}
    macro,    ///< args[0].text(variable, args[1]...)
  };

  kind is = kind::literal;
  std::string text = {};
  std::string variable = {};
  boost::json::value value = {};
  std::vector<std::unique_ptr<cel_node>> args = {};
};

/// What an expression yields: a value, or the error that ended it.
struct cel_result {
  boost::json::value value = {};
  std::string error = {};  ///< empty: there is a value

  bool is_true() const noexcept { return error.empty() && value.is_bool() && value.get_bool(); }
};

/// A compiled expression. Immutable.
class cel_expression {
 public:
  /// Parses. Sets `error` if the text is no expression, and `unsupported` if it needs a function
  /// that is not known here; then it must not be evaluated.
  static cel_expression parse(std::string_view text);

  /// Adds to `error` what is wrong for a `self` of that schema: fields that it does not have, and a
  /// result other than of type `wanted` ("bool" or "string").
  void check(const schema_node& self, std::string_view wanted);

  /// Returns what it costs at most for a `self` of that schema, in the units of kube-apiserver. An
  /// expression that is not evaluated costs nothing.
  double most_cost(const schema_node& self) const;

  /// Evaluates, in a bounded number of steps. `old_self` is null if there is none.
  cel_result evaluate(const boost::json::value& self, const boost::json::value* old_self) const;

  bool uses_old_self() const noexcept { return uses_old_self_; }

  std::string error = {};
  std::string unsupported = {};

 private:
  std::shared_ptr<const cel_node> root_;
  bool uses_old_self_ = false;
};

/// Returns how often a value of that schema can be in a request.
double most_times(const schema_node& of);

/// Returns the name of a schema's property for an expression's identifier ("__dash__" is "-").
std::string cel_property(std::string_view identifier);

}  // namespace rw::k8s::devserver
