#pragma once

#include "rw/core/json/token_index.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <forward_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace rw::core {

/// Why a walk ended.
enum class json_flaw : std::uint8_t {
  none,       ///< it did not; or what it called ended it, or it met a value of another type
  malformed,  ///< it is not JSON (RFC 8259), or an exponent does not fit in 32 bits
  too_deep,   ///< objects and arrays nest beyond the limit
};

/// Returns the end of a sentence about a text, such as "is not JSON". Static storage.
std::string_view reason(json_flaw flaw) noexcept;

/// Walks the tokens of a JSON text and checks its grammar on the way (RFC 8259): all that
/// token_index leaves open. Every function returns false at the first error, which `flaw` tells;
/// the position is then invalid. The walk cannot run past the end: no function accepts the zero, or
/// white space, that the last tokens point at. Time is linear in what is walked.
///
/// Names and strings are given without their escapes: as views into the text, or, where it has
/// escapes, into memory of the walk.
class token_walk {
 public:
  token_walk(const token_list& tokens, std::size_t max_depth) noexcept
      : tokens_(tokens),
        position_(tokens.begin),
        escape_(tokens.text),
        max_depth_(max_depth < limit ? max_depth : limit) {}
  token_walk(const token_walk&) = delete;
  token_walk& operator=(const token_walk&) = delete;

  json_flaw flaw() const noexcept { return flaw_; }

  /// Goes back to the beginning. Strings stay valid.
  void restart() noexcept {
    position_ = tokens_.begin;
    escape_ = tokens_.text;
    open_ = 0;
    flaw_ = json_flaw::none;
  }

  const std::uint32_t* position() const noexcept { return position_; }
  char peek() const noexcept { return tokens_.at(position_); }
  bool at_end() const noexcept { return position_ == tokens_.end; }
  /// Returns where the token at the position begins.
  const char* here() const noexcept { return tokens_.text + *position_; }

  /// Checks and skips the value at the position.
  bool skip() noexcept;

  /// Walks the object at the position. Calls `member(name)` or `member(name, begin)` for each name,
  /// with the position at the value, which it must walk; `begin` is where the name begins, with its
  /// quote. The name is valid until that of a later member is read. Also returns false if `member`
  /// did.
  template <typename Member>
  bool object(Member&& member) {
    if (!open('{')) return false;
    if (peek() == '}') return close();
    for (;;) {
      const char* const begin = here();
      std::string_view name;
      if (!key(name) || !call(member, name, begin)) return false;
      const char c = peek();
      if (c == '}') return close();
      if (c != ',') return fail(json_flaw::malformed);
      ++position_;
    }
  }

  /// Walks the array at the position. Calls `element()` with the position at each element, which it
  /// must walk. Also returns false if `element` returned false.
  template <typename Element>
  bool array(Element&& element) {
    if (!open('[')) return false;
    if (peek() == ']') return close();
    for (;;) {
      if (!element()) return false;
      const char c = peek();
      if (c == ']') return close();
      if (c != ',') return fail(json_flaw::malformed);
      ++position_;
    }
  }

  /// Walks the string at the position, and sets `text` to its content, valid as long as the walk.
  [[gnu::always_inline]] bool string(std::string_view& text) {
    if (!verbatim(text)) return false;
    if (escape_ < text.end()) [[unlikely]]
      text = kept(text);
    return true;
  }

 private:
  static constexpr std::size_t limit = 512;

  bool fail(json_flaw flaw) noexcept {
    flaw_ = flaw;
    return false;
  }

  [[gnu::always_inline]] bool open(char bracket) noexcept {
    if (peek() != bracket) return false;
    if (open_ == max_depth_) return fail(json_flaw::too_deep);
    ++open_;
    ++position_;
    return true;
  }

  bool close() noexcept {
    --open_;
    ++position_;
    return true;
  }

  template <typename Member>
  static bool call(Member& member, std::string_view name, const char* begin) {
    if constexpr (std::is_invocable_v<Member&, std::string_view, const char*>) {
      return member(name, begin);
    } else {
      return member(name);
    }
  }

  /// Sets `text` to what is between the quotes of the string at the position, and `escape_` to a
  /// place before its end if it has an escape.
  [[gnu::always_inline]] bool verbatim(std::string_view& text) noexcept {
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
    return true;
  }

  [[gnu::always_inline]] bool key(std::string_view& name) {
    if (!verbatim(name) || peek() != ':') return fail(json_flaw::malformed);
    if (escape_ < name.end()) [[unlikely]]
      name = resolved(name);
    ++position_;
    return true;
  }

  [[gnu::cold]] std::string_view kept(std::string_view text);
  [[gnu::cold]] std::string_view resolved(std::string_view name);
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
  json_flaw flaw_ = json_flaw::none;
  std::string name_;                     ///< the last name with escapes, without them
  std::forward_list<std::string> kept_;  ///< strings with escapes, without them
  bool is_object_[limit];
};

/// Returns `none` if the tokens are one JSON value, or why they are not.
json_flaw flaw_of(const token_list& tokens, std::size_t max_depth) noexcept;

}  // namespace rw::core
