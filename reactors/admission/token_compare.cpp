#include "reactors/admission/token_compare.hpp"

#include "reactors/admission/json_compare.hpp"

#include <string>

namespace rw::admission {

using core::token_list;
namespace {

using token = const std::uint32_t*;

bool has_escape(std::string_view text) noexcept {
  return text.find('\\') != std::string_view::npos;
}
bool opens(char c) noexcept {
  return c == '{' || c == '[';
}
bool closes(char c) noexcept {
  return c == '}' || c == ']';
}
bool begins_number(char c) noexcept {
  return c == '-' || (c >= '0' && c <= '9');
}

/// Walks two values in step, and remembers the way down to where it is.
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
    token name;  ///< of the member that the walk is in; null before the first
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

  /// The values here differ, unless spelling or duplicate names, here or above, explain it.
  relation differs(token a, token a_end, token b, token b_end) {
    const char left = tokens_.at(a);
    const char right = tokens_.at(b);
    if (left != right) {
      // One object has a member more: perhaps a duplicate, or another order.
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

  /// True if what follows `at` has, in an object that the walk is in, another member of the name
  /// that led here, or one that may be: the last one would count.
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
        const auto ours = text(path_[depth - 1].name);
        if (name == ours || has_escape(name) || has_escape(ours)) return true;
      }
    }
    return false;
  }

  const token_list& tokens_;
  std::size_t depth_ = 0;
  level path_[max_compare_depth];
};

}  // namespace

relation compare_tokens(const token_list& tokens, token a, token a_end, token b, token b_end) {
  return comparer(tokens).run(a, a_end, b, b_end);
}

}  // namespace rw::admission
