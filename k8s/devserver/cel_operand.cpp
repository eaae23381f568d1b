#include "rw/k8s/devserver/cel_operand.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include <algorithm>
#include <limits>

namespace rw::k8s::devserver::cel {

operand no_overload(const std::string& name) {
  return operand::failure("no such overload: " + name);
}

std::string_view text_in(const json::value& of) {
  return {of.get_string().data(), of.get_string().size()};
}

std::optional<double> real(const json::value& of) {
  if (!of.is_number()) return std::nullopt;
  return of.to_number<double>();
}

bool equal(const json::value& a, const json::value& b) {
  if (a.is_number() && b.is_number()) return a == b || real(a) == real(b);
  if (a.is_array() && b.is_array()) {
    return std::ranges::equal(a.get_array(), b.get_array(), equal);
  }
  if (a.is_object() && b.is_object()) {
    const auto& other = b.get_object();
    return a.get_object().size() == other.size() &&
           std::ranges::all_of(a.get_object(), [&](const auto& field) {
             const auto* const found = other.if_contains(field.key());
             return found != nullptr && equal(field.value(), *found);
           });
  }
  return a == b;
}

std::optional<int> order(const json::value& a, const json::value& b) {
  const auto sign = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_int64() && b.is_int64()) return sign(a.get_int64(), b.get_int64());
  if (a.is_number() && b.is_number()) return sign(*real(a), *real(b));
  if (a.is_string() && b.is_string()) return sign(text_in(a), text_in(b));
  if (a.is_bool() && b.is_bool()) return sign(a.get_bool(), b.get_bool());
  return std::nullopt;
}

std::int64_t length(std::string_view text) {
  return std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

operand whole_number(const std::string& name, std::int64_t a, std::int64_t b) {
  std::int64_t made = 0;
  bool over = false;
  if (name == "+") {
    over = __builtin_add_overflow(a, b, &made);
  } else if (name == "-") {
    over = __builtin_sub_overflow(a, b, &made);
  } else if (name == "*") {
    over = __builtin_mul_overflow(a, b, &made);
  } else if (b == 0) {
    return operand::failure(name == "/" ? "division by zero" : "modulus by zero");
  } else if (a == std::numeric_limits<std::int64_t>::min() && b == -1) {
    over = true;
  } else {
    made = name == "/" ? a / b : a % b;
  }
  if (over) return operand::failure("integer overflow");
  return json::value(made);
}

operand arithmetic(const std::string& name, const json::value& a, const json::value& b) {
  if (a.is_int64() && b.is_int64()) return whole_number(name, a.get_int64(), b.get_int64());
  if (a.is_number() && b.is_number() && name != "%") {
    const double x = *real(a);
    const double y = *real(b);
    return json::value(name == "+" ? x + y : name == "-" ? x - y : name == "*" ? x * y : x / y);
  }
  if (name == "+" && a.is_string() && b.is_string()) {
    std::string made(text_in(a));
    return json::value(json::string(made.append(text_in(b))));
  }
  if (name == "+" && a.is_array() && b.is_array()) {
    auto made = a.get_array();
    made.insert(made.end(), b.get_array().begin(), b.get_array().end());
    return json::value(std::move(made));
  }
  return no_overload(name);
}

}  // namespace rw::k8s::devserver::cel
