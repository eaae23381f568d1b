#pragma once

#include "rw/core/json/token_index.hpp"
#include "rw/core/json/token_walk.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/k8s/objects/object_builder.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace rw::k8s {

/// Walks compact JSON by its tokens, and knows its position in the text. Like token_walk it checks
/// the grammar on the way, and returns false at an error or at unusual input.
class compact_walk {
 public:
  compact_walk(const core::token_list& tokens, std::size_t max_depth) noexcept
      : text_(tokens.text), walk_(tokens, max_depth) {}

  char peek() const noexcept { return walk_.peek(); }
  const char* here() const noexcept { return text_ + *walk_.position(); }
  bool at_end() const noexcept { return walk_.at_end(); }

  bool skip() noexcept { return walk_.skip(); }
  bool string(std::string_view& text) noexcept { return walk_.string(text); }

  /// Calls `member(name, begin)` with the position at the member's value, which it must walk;
  /// `begin` is where its name begins, with the quote.
  template <typename Member>
  bool object(Member&& member) {
    return walk_.object([&](std::string_view name) { return member(name, name.data() - 1); });
  }

  template <typename Element>
  bool array(Element&& element) {
    return walk_.array(std::forward<Element>(element));
  }

 private:
  const char* text_;
  core::token_walk walk_;
};

/// Walks compact JSON that is known to be valid, unusual input included: names and strings may have
/// escapes, which are resolved.
class exact_walk {
 public:
  explicit exact_walk(std::string_view text) noexcept
      : position_(text.data()), end_(text.data() + text.size()) {}

  char peek() const noexcept { return position_ == end_ ? '\0' : *position_; }
  const char* here() const noexcept { return position_; }
  bool at_end() const noexcept { return position_ == end_; }

  bool skip() noexcept;
  /// Resolved strings live as long as this.
  bool string(std::string_view& text);

  template <typename Member>
  bool object(Member&& member) {
    if (peek() != '{') return false;
    ++position_;
    while (peek() != '}') {
      if (peek() == ',') ++position_;
      const char* const begin = position_;
      std::string_view name;
      if (!string(name)) return false;
      ++position_;
      if (!member(name, begin)) return false;
    }
    ++position_;
    return true;
  }

  template <typename Element>
  bool array(Element&& element) {
    if (peek() != '[') return false;
    ++position_;
    while (peek() != ']') {
      if (peek() == ',') ++position_;
      if (!element()) return false;
    }
    ++position_;
    return true;
  }

 private:
  void skip_string() noexcept;

  const char* position_;
  const char* end_;
  std::deque<std::string> resolved_;
};

/// Walks a string or null, which counts as empty, as an absent field does.
template <typename Walk>
bool string_or_null(Walk& walk, std::string_view& text) {
  if (walk.peek() == '"') return walk.string(text);
  text = {};
  return walk.peek() == 'n' && walk.skip();
}

/// Prepares JSON text for the walks: finds its tokens and removes white space between them.
/// Boost.JSON checks what the fast walk rejects; it decides what is valid, and the exact walk reads
/// that. One for each thread, because its memory is only needed for the length of a call.
class json_input {
 public:
  static json_input& of_thread();

  /// Calls `read(walk)` with a compact_walk, and again with an exact_walk if that returns false;
  /// `read` then starts over. Returns an empty string, or why the text was not read: it is not
  /// JSON, or `not_read` if `read` returned false.
  ///
  /// The byte after `text` must be readable, and zero or white space. What the walks return lives
  /// until `read` returns.
  template <typename Read>
  std::string read(std::string_view text, std::string_view not_read, Read&& read) {
    const guard busy(*this);
    std::string error;
    core::token_list tokens;
    if (!prepare(text, tokens, error)) return error;
    if (core::escapes_are_valid(text)) {
      compact_walk walk(tokens, max_object_depth);
      if (read(walk) && walk.at_end()) return {};
    }
    if (!is_valid(text, error)) return error;
    exact_walk walk(text);
    if (!read(walk)) error = not_read;
    return error;
  }

  object_builder& builder() noexcept { return builder_; }

 private:
  /// Frees, at the end, the memory that only a large text needed.
  class guard {
   public:
    explicit guard(json_input& input) noexcept : input_(input) {}
    ~guard() { input_.release(); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

   private:
    json_input& input_;
  };

  bool prepare(std::string_view& text, core::token_list& tokens, std::string& error);
  static bool is_valid(std::string_view text, std::string& error);
  void release() noexcept;

  core::token_index index_;
  std::string compact_;
  object_builder builder_;
};

}  // namespace rw::k8s
