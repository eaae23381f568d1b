#include "rw/reactors/events/json_compare.hpp"

#include "rw/core/json/canonical_number.hpp"
#include "rw/core/json/json_fold.hpp"
#include "rw/core/sip_hash.hpp"

#include <cstdint>
#include <string>

namespace rw::admission {
namespace {

using core::json_view;
using core::token_list;
using token = const std::uint32_t*;

bool begins_number(char c) noexcept {
  return c == '-' || (c >= '0' && c <= '9');
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

constexpr std::size_t max_depth = 512;  // of what a token_walk reads

/// Relation of two values, by the rules of json_equal.
enum class relation : std::uint8_t { equal, different, unclear };

/// Walks two values in step, and records the path to its position.
class comparer {
 public:
  comparer(const token_list& a, const token_list& b) noexcept : a_(a), b_(b) {}

  relation run() {
    const auto* a = a_.begin;
    const auto* b = b_.begin;
    while (a != a_.end && b != b_.end) {
      const char c = a_.at(a);
      if (c != b_.at(b)) return differs(a, b);
      if (opens(c)) {
        if (depth_ == max_depth) return relation::unclear;
        path_[depth_++] = {c == '{', nullptr};
      } else if (closes(c)) {
        --depth_;
      } else if (c == '"' && a_.at(a + 1) == ':') {
        if (text(a_, a) != text(b_, b)) return relation::unclear;
        path_[depth_ - 1].name = a;
      } else if (c != ',' && c != ':' && !same_scalar(a, b)) {
        return differs(a, b);
      }
      ++a;
      ++b;
    }
    return a == a_.end && b == b_.end ? relation::equal : relation::unclear;
  }

 private:
  struct level {
    bool is_object;
    token name;  ///< of the current member; null before the first
  };

  static std::string_view text(const token_list& in, token at) noexcept {
    return in.span(at, at + 1);
  }

  bool same_scalar(token a, token b) const {
    const auto left = text(a_, a);
    const auto right = text(b_, b);
    if (left == right) return true;
    if (!begins_number(left.front()) || !begins_number(right.front())) return false;
    std::string canonical_left;
    std::string canonical_right;
    core::append_canonical_number(canonical_left, left);
    core::append_canonical_number(canonical_right, right);
    return canonical_left == canonical_right;
  }

  /// Records a difference, unless spelling or duplicate names, here or above, may explain it.
  relation differs(token a, token b) const {
    const char left = a_.at(a);
    const char right = b_.at(b);
    if (left != right) {
      // One object has one more member: perhaps a duplicate, or another order.
      const bool object_ends = (left == '}' && right == ',') || (left == ',' && right == '}');
      if (object_ends) return relation::unclear;
      if (begins_number(left) && begins_number(right) && same_scalar(a, b))
        return relation::unclear;
    }
    if (left == '"' && right == '"' && (has_escape(text(a_, a)) || has_escape(text(b_, b)))) {
      return relation::unclear;
    }
    const bool overridden = repeats_path(a_, a) || repeats_path(b_, b);
    return overridden ? relation::unclear : relation::different;
  }

  /// Returns true if the rest of an object on the path, from `at` on, repeats the member name of
  /// the path, or may repeat it: of duplicates the last counts.
  bool repeats_path(const token_list& in, token at) const {
    std::size_t depth = depth_;
    std::size_t inner = 0;
    auto own = own_name(depth);
    for (; at != in.end && depth > 0; ++at) {
      const char c = in.at(at);
      if (opens(c)) {
        ++inner;
      } else if (closes(c)) {
        if (inner > 0) {
          --inner;
        } else {
          own = own_name(--depth);
        }
      } else if (c == '"' && inner == 0 && !own.text.empty() && in.at(at + 1) == ':') {
        const auto name = text(in, at);
        if (own.has_escape || name == own.text || has_escape(name)) return true;
      }
    }
    return false;
  }

  /// The member name of the path at a depth, with its quotes; empty if there is none.
  struct path_name {
    std::string_view text;
    bool has_escape = false;
  };
  path_name own_name(std::size_t depth) const {
    if (depth == 0 || path_[depth - 1].name == nullptr) return {};
    const auto name = text(a_, path_[depth - 1].name);
    return {name, has_escape(name)};
  }

  const token_list& a_;
  const token_list& b_;
  std::size_t depth_ = 0;
  level path_[max_depth];
};

/// Makes numbers that are equal if two values are, and otherwise with a probability of 2^-64 that
/// no sender can raise: the key is the process's.
class exact_hash {
 public:
  std::uint64_t text(std::string_view content) const { return hash(of_text, content); }
  std::uint64_t scalar(std::string_view text) {
    if (!begins_number(text.front())) return hash(of_word, text);
    number_.clear();
    core::append_canonical_number(number_, text);
    return hash(of_number, number_);
  }
  static std::uint64_t begin_array() { return of_array; }
  std::uint64_t add_element(std::uint64_t array, std::uint64_t element) const {
    return hash(of_array, array, element);
  }
  std::uint64_t member(std::string_view name, std::uint64_t value) const {
    core::sip_state<1, 3> made(key_of(of_member));
    const auto last = made.add_words(name);
    made.add(last);
    made.add(name.size());
    made.add(value);
    return made.finish();
  }
  std::uint64_t object(std::uint64_t sum) const { return hash(of_object, sum, 0); }

 private:
  enum kind : std::uint64_t { of_text = 1, of_word, of_number, of_array, of_member, of_object };

  core::sip_key key_of(kind of) const { return {key_.k0 ^ of, key_.k1}; }
  std::uint64_t hash(kind of, std::string_view text) const {
    return core::sip_hash<1, 3>(key_of(of), text);
  }
  std::uint64_t hash(kind of, std::uint64_t first, std::uint64_t second) const {
    core::sip_state<1, 3> made(key_of(of));
    made.add(first);
    made.add(second);
    return made.finish();
  }

  core::sip_key key_ = core::sip_key::of_process();
  std::string number_;
};

}  // namespace

bool json_equal(json_view a, json_view b) {
  if (a.text() == b.text()) return true;
  switch (comparer(a.tokens(), b.tokens()).run()) {
    case relation::equal:
      return true;
    case relation::different:
      return false;
    case relation::unclear:
      break;
  }
  core::json_fold<exact_hash> digest;
  return digest(a) == digest(b);
}

}  // namespace rw::admission
