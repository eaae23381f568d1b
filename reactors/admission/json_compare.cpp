#include "rw/reactors/admission/json_compare.hpp"

#include <boost/json/error.hpp>
#include <boost/json/monotonic_resource.hpp>
#include <boost/json/parse.hpp>

#include <algorithm>

namespace rw::admission {
namespace {

namespace json = boost::json;
using core::token_list;
using token = const std::uint32_t*;

constexpr char number_mark = '\xFF';

bool begins_number(char c) noexcept {
  return c == '-' || (c >= '0' && c <= '9');
}

bool is_nonzero_digit(char c) {
  return c >= '1' && c <= '9';
}

/// Parses the exponent after the `e`. A value beyond 32 bits stays far outside of them.
std::int64_t parse_exponent(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    value = std::min<std::int64_t>(value * 10 + (c - '0'), std::int64_t{1} << 40);
  }
  return negative ? -value : value;
}

/// Returns a valid JSON text with its numbers as strings of `number_mark` and their canonical
/// spelling.
std::string with_numbers_as_strings(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    auto end = i + 1;
    if (text[i] == '"') {
      while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      out += text.substr(i, ++end - i);
    } else if (begins_number(text[i])) {
      end = std::min(text.find_first_not_of("0123456789+-.eE", i), text.size());
      (out += '"') += number_mark;
      append_canonical_number(out, text.substr(i, end - i));
      out += '"';
    } else {
      out += text[i];
    }
    i = end;
  }
  return out;
}

bool has_escape(std::string_view text) noexcept {
  return text.find('\\') != std::string_view::npos;
}
bool opens(char c) noexcept {
  return c == '{' || c == '[';
}
bool closes(char c) noexcept {
  return c == '}' || c == ']';
}
/// Walks two values in step, and records the path to its position.
class comparer {
 public:
  explicit comparer(const token_list& tokens) noexcept : tokens_(tokens) {}

  relation run(token a, token a_end, token b, token b_end) {
    while (a != a_end && b != b_end) {
      const char c = tokens_.at(a);
      if (c != tokens_.at(b)) return differs(a, a_end, b, b_end);
      if (opens(c)) {
        if (depth_ == max_compare_depth) return relation::unclear;
        path_[depth_++] = {c == '{', nullptr};
      } else if (closes(c)) {
        --depth_;
      } else if (c == '"' && is_name(a)) {
        if (text(a) != text(b)) return relation::unclear;
        path_[depth_ - 1].name = a;
      } else if (c != ',' && c != ':' && !same_scalar(a, b)) {
        return differs(a, a_end, b, b_end);
      }
      ++a;
      ++b;
    }
    return a == a_end && b == b_end ? relation::equal : relation::unclear;
  }

 private:
  struct level {
    bool is_object;
    token name;  ///< of the current member; null before the first
  };

  std::string_view text(token at) const noexcept { return tokens_.span(at, at + 1); }
  bool is_name(token at) const noexcept { return tokens_.at(at + 1) == ':'; }

  bool same_scalar(token a, token b) const {
    const auto left = text(a);
    const auto right = text(b);
    if (left == right) return true;
    if (!begins_number(left.front()) || !begins_number(right.front())) return false;
    std::string canonical_left;
    std::string canonical_right;
    append_canonical_number(canonical_left, left);
    append_canonical_number(canonical_right, right);
    return canonical_left == canonical_right;
  }

  /// Records a difference, unless spelling or duplicate names, here or above, may explain it.
  relation differs(token a, token a_end, token b, token b_end) {
    const char left = tokens_.at(a);
    const char right = tokens_.at(b);
    if (left != right) {
      // One object has one more member: perhaps a duplicate, or another order.
      const bool object_ends = (left == '}' && right == ',') || (left == ',' && right == '}');
      if (object_ends) return relation::unclear;
      if (begins_number(left) && begins_number(right) && same_scalar(a, b))
        return relation::unclear;
    }
    if (left == '"' && right == '"' && (has_escape(text(a)) || has_escape(text(b)))) {
      return relation::unclear;
    }
    const bool overridden = repeats_path(a, a_end) || repeats_path(b, b_end);
    return overridden ? relation::unclear : relation::different;
  }

  /// Returns true if the rest of an object on the path, from `at` on, repeats the member name of
  /// the path, or may repeat it: of duplicates the last counts.
  bool repeats_path(token at, token end) const {
    std::size_t depth = depth_;
    std::size_t inner = 0;
    for (; at != end && depth > 0; ++at) {
      const char c = tokens_.at(at);
      if (opens(c)) {
        ++inner;
      } else if (closes(c)) {
        if (inner > 0) {
          --inner;
        } else {
          --depth;
        }
      } else if (c == '"' && inner == 0 && path_[depth - 1].name != nullptr && is_name(at)) {
        const auto name = text(at);
        const auto own = text(path_[depth - 1].name);
        if (name == own || has_escape(name) || has_escape(own)) return true;
      }
    }
    return false;
  }

  const token_list& tokens_;
  std::size_t depth_ = 0;
  level path_[max_compare_depth];
};

}  // namespace

void append_canonical_number(std::string& out, std::string_view number) {
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  const auto e = number.find_first_of("eE");
  const auto mantissa = number.substr(0, e);
  std::int64_t exponent = e == std::string_view::npos ? 0 : parse_exponent(number.substr(e + 1));

  const auto first = std::find_if(mantissa.begin(), mantissa.end(), is_nonzero_digit);
  if (first == mantissa.end()) {
    out += '0';
    return;
  }
  const auto last = mantissa.find_last_of("123456789");
  const auto point = std::min(mantissa.find('.'), mantissa.size());
  exponent += last < point ? static_cast<std::int64_t>(point - 1 - last)
                           : -static_cast<std::int64_t>(last - point);
  if (negative) out += '-';
  for (auto i = static_cast<std::size_t>(first - mantissa.begin()); i <= last; ++i) {
    if (mantissa[i] != '.') out += mantissa[i];
  }
  out += 'e';
  out += std::to_string(exponent);
}

json::value parse_exact(std::string_view text, std::size_t max_depth, json::storage_ptr storage,
                        boost::system::error_code& error) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::monotonic_resource unused;
  json::parse(text, error, &unused, options);
  if (error) return nullptr;
  options.allow_invalid_utf8 = true;  // the mark
  return json::parse(with_numbers_as_strings(text), error, std::move(storage), options);
}

const json::string* exact_string(const json::value& value) noexcept {
  const auto* text = value.if_string();
  if (text != nullptr && !text->empty() && text->front() == number_mark) return nullptr;
  return text;
}

bool json_equal(std::string_view a, std::string_view b) {
  if (a == b) return true;
  unsigned char memory[8192];
  boost::json::monotonic_resource resource(memory, sizeof memory);
  boost::system::error_code error;
  const auto left = parse_exact(a, max_compare_depth, &resource, error);
  if (error) return false;
  const auto right = parse_exact(b, max_compare_depth, &resource, error);
  if (error) return false;
  return left == right;
}

relation compare_tokens(const token_list& tokens, token a, token a_end, token b, token b_end) {
  return comparer(tokens).run(a, a_end, b, b_end);
}

}  // namespace rw::admission
