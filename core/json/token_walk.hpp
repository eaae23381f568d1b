#pragma once

#include "rw/core/json/token_index.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace rw::core {

/// Walks the tokens of a JSON text and checks its grammar on the way (RFC 8259): all that
/// token_index leaves open except escapes, which `escapes_are_valid` checks for the whole text at
/// once. Every function returns false at the first error or unsupported value (numbers of more than
/// 64 characters, exponents of more than 4 digits, nesting beyond the limit); the position is then
/// invalid. The walk cannot run past the end: no function accepts the zero, or white space, that
/// the last tokens point at.
class token_walk {
 public:
  token_walk(const token_list& tokens, std::size_t max_depth) noexcept
      : tokens_(tokens),
        position_(tokens.begin),
        escape_(tokens.text),
        max_depth_(max_depth < limit ? max_depth : limit) {}

  const std::uint32_t* position() const noexcept { return position_; }
  char peek() const noexcept { return tokens_.at(position_); }
  bool at_end() const noexcept { return position_ == tokens_.end; }

  /// Checks and skips the value at the position.
  bool skip() noexcept;

  /// Checks and skips the value at the position, and sets `text` to its text.
  bool skip(std::string_view& text) noexcept {
    const auto* from = position_;
    if (!skip()) return false;
    text = tokens_.span(from, position_);
    return true;
  }

  /// Walks the object at the position. Calls `member(name)` for each name, with the position at the
  /// value, which it must walk. Also returns false if a name has an escape, or `member` returned
  /// false.
  template <typename Member>
  bool object(Member&& member) {
    if (peek() != '{' || ++open_ > max_depth_) return false;
    ++position_;
    if (peek() == '}') return close();
    for (;;) {
      std::string_view name;
      if (!key(name) || !member(name)) return false;
      const char c = peek();
      if (c == '}') return close();
      if (c != ',') return false;
      ++position_;
    }
  }

  /// Walks the array at the position. Calls `element()` with the position at each element, which it
  /// must walk. Also returns false if `element` returned false.
  template <typename Element>
  bool array(Element&& element) {
    if (peek() != '[' || ++open_ > max_depth_) return false;
    ++position_;
    if (peek() == ']') return close();
    for (;;) {
      if (!element()) return false;
      const char c = peek();
      if (c == ']') return close();
      if (c != ',') return false;
      ++position_;
    }
  }

  /// Walks the string at the position, and sets `text` to its content. Returns false if it has an
  /// escape.
  [[gnu::always_inline]] bool string(std::string_view& text) noexcept {
    const char* const first = tokens_.text + *position_ + 1;
    if (first[-1] != '"') return false;
    // Serializers write no white space after a string: the next token follows its closing quote.
    const char* last = tokens_.text + position_[1] - 1;
    if (*last != '"') [[unlikely]]
      last = tokens_.span(position_, position_ + 1).end() - 1;
    text = {first, static_cast<std::size_t>(last - first)};
    ++position_;
    if (escape_ < first) [[unlikely]]
      find_escape(first);
    return escape_ >= last;
  }

 private:
  static constexpr std::size_t limit = 512;

  bool close() noexcept {
    --open_;
    ++position_;
    return true;
  }

  bool key(std::string_view& name) noexcept {
    if (!string(name) || peek() != ':') return false;
    ++position_;
    return true;
  }

  bool scalar(const char* text) const noexcept;

  void find_escape(const char* from) noexcept {
    const char* end = tokens_.text + *tokens_.end;
    const void* found = std::memchr(from, '\\', static_cast<std::size_t>(end - from));
    escape_ = found != nullptr ? static_cast<const char*>(found) : end;
  }

  token_list tokens_;
  const std::uint32_t* position_;
  const char* escape_;  ///< no backslash between the last checked string and here
  std::size_t max_depth_;
  std::size_t open_ = 0;
  bool is_object_[limit];
};

/// Returns true if each backslash in `text` begins an escape of JSON, and each escaped surrogate
/// has its other half. The walk rejects backslashes outside strings.
bool escapes_are_valid(std::string_view text) noexcept;

}  // namespace rw::core
