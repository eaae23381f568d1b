#pragma once

#include "core/json/token_index.hpp"
#include "core/json/token_walk.hpp"
#include "k8s/objects/object.hpp"
#include "k8s/objects/object_builder.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

namespace rw::k8s {

/// Walks compact JSON by its tokens, and knows where in the text it stands. Like token_walk it
/// checks the grammar on its way, and returns false at what is wrong or merely unusual.
class compact_walk {
 public:
  compact_walk(const core::token_list& tokens, std::size_t max_depth) noexcept
      : text_(tokens.text), walk_(tokens, max_depth) {}

  char peek() const noexcept { return walk_.peek(); }
  const char* here() const noexcept { return text_ + *walk_.position(); }
  bool at_end() const noexcept { return walk_.at_end(); }

  bool skip() noexcept { return walk_.skip(); }
  bool string(std::string_view& text) noexcept { return walk_.string(text); }

  /// `member(name, begin)` is called with the position at the member's value, which it must pass;
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

/// The same for compact JSON that is known to be valid, whatever it looks like: names and strings
/// may have escapes, which are resolved.
class exact_walk {
 public:
  explicit exact_walk(std::string_view text) noexcept
      : at_(text.data()), end_(text.data() + text.size()) {}

  char peek() const noexcept { return at_ == end_ ? '\0' : *at_; }
  const char* here() const noexcept { return at_; }
  bool at_end() const noexcept { return at_ == end_; }

  bool skip() noexcept;
  /// What is resolved lives as long as this.
  bool string(std::string_view& text);

  template <typename Member>
  bool object(Member&& member) {
    if (peek() != '{') return false;
    ++at_;
    while (peek() != '}') {
      if (peek() == ',') ++at_;
      const char* const begin = at_;
      std::string_view name;
      if (!string(name)) return false;
      ++at_;
      if (!member(name, begin)) return false;
    }
    ++at_;
    return true;
  }

  template <typename Element>
  bool array(Element&& element) {
    if (peek() != '[') return false;
    ++at_;
    while (peek() != ']') {
      if (peek() == ',') ++at_;
      if (!element()) return false;
    }
    ++at_;
    return true;
  }

 private:
  void skip_string() noexcept;

  const char* at_;
  const char* end_;
  std::deque<std::string> resolved_;
};

/// Passes a string or null, which counts as empty, as absent does.
template <typename Walk>
bool string_or_null(Walk& walk, std::string_view& text) {
  if (walk.peek() == '"') return walk.string(text);
  text = {};
  return walk.peek() == 'n' && walk.skip();
}

/// Brings JSON text into the form that it is read in: its tokens are found, white space between
/// them goes, and what the fast walk does not like is checked by Boost.JSON, which has the last
/// word on what is valid, and read by the exact walk. One for each thread, because its memory is
/// only needed for the length of a call.
class json_input {
 public:
  static json_input& of_thread();

  /// Calls `read(walk)` with a compact_walk, and once more with an exact_walk where the first
  /// returns false; `read` starts anew then. Returns an empty string, or else why the text was not
  /// read: it is not JSON, or `not_read` if `read` returned false.
  ///
  /// Behind `text` must stand a byte that may be read, and that is zero or white space. What the
  /// walks give out lives until `read` returns.
  template <typename Read>
  std::string read(std::string_view text, std::string_view not_read, Read&& read) {
    const guard busy(*this);
    std::string problem;
    core::token_list tokens;
    if (!prepare(text, tokens, problem)) return problem;
    if (core::escapes_are_valid(text)) {
      compact_walk walk(tokens, max_object_depth);
      if (read(walk) && walk.at_end()) return {};
    }
    if (!is_valid(text, problem)) return problem;
    exact_walk walk(text);
    if (!read(walk)) problem = not_read;
    return problem;
  }

  object_builder& builder() noexcept { return builder_; }

 private:
  /// Gives back, at the end, what only a large text needed.
  class guard {
   public:
    explicit guard(json_input& input) noexcept : input_(input) {}
    ~guard() { input_.release(); }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

   private:
    json_input& input_;
  };

  bool prepare(std::string_view& text, core::token_list& tokens, std::string& problem);
  static bool is_valid(std::string_view text, std::string& problem);
  void release() noexcept;

  core::token_index index_;
  std::string compact_;
  object_builder builder_;
};

}  // namespace rw::k8s
