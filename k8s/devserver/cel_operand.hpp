#pragma once

#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// The values of CEL and their operators (cel-spec, "Language Definition": standard functions).

namespace rw::k8s::devserver::cel {

namespace json = boost::json;

/// A value that is part of another one or its own, or an error.
class operand {
 public:
  operand(json::value owned) : own_(std::move(owned)) {}
  static operand of(const json::value& part) {
    operand made{json::value()};
    made.part_ = &part;
    return made;
  }
  static operand failure(std::string reason) {
    operand made{json::value()};
    made.error = std::move(reason);
    return made;
  }

  const json::value& get() const noexcept { return part_ != nullptr ? *part_ : own_; }
  bool is_borrowed() const noexcept { return part_ != nullptr; }
  bool failed() const noexcept { return !error.empty(); }
  bool is(bool wanted) const noexcept {
    return !failed() && get().is_bool() && get().get_bool() == wanted;
  }

  std::string error;

 private:
  const json::value* part_ = nullptr;
  json::value own_;
};

operand no_overload(const std::string& name);

/// `of` must be a text.
std::string_view text_in(const json::value& of);

std::optional<double> real(const json::value& of);

/// Compares numbers of all types by value.
bool equal(const json::value& a, const json::value& b);

/// Returns -1, 0 or 1; nothing for values without an order.
std::optional<int> order(const json::value& a, const json::value& b);

/// Returns the number of characters, not of bytes.
std::int64_t length(std::string_view text);

/// Applies +, -, *, / or % to whole numbers; overflow is an error.
operand whole_number(const std::string& name, std::int64_t a, std::int64_t b);

/// Applies +, -, *, / or %.
operand arithmetic(const std::string& name, const json::value& a, const json::value& b);

}  // namespace rw::k8s::devserver::cel
