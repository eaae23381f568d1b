#pragma once

#include "rw/core/json/token_index.hpp"
#include "rw/core/json/token_walk.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rw::core {

/// A value in the text of a json_document, as its tokens: no DOM is built. What is not there is a
/// value too, of which `exists` is false. Each function takes time linear in the length of the
/// value. Valid as long as the document.
class json_view {
 public:
  json_view() = default;
  json_view(const token_list& tokens, const std::uint32_t* begin, const std::uint32_t* end) noexcept
      : tokens_{tokens.text, begin, end} {}

  bool exists() const noexcept { return tokens_.begin != nullptr; }
  bool is_object() const noexcept { return first() == '{'; }
  bool is_array() const noexcept { return first() == '['; }
  bool is_string() const noexcept { return first() == '"'; }
  bool is_null() const noexcept { return first() == 'n'; }

  const token_list& tokens() const noexcept { return tokens_; }

  /// Returns the text as it is written, without white space around it.
  std::string_view text() const noexcept {
    return exists() ? tokens_.span(tokens_.begin, tokens_.end) : std::string_view();
  }

  /// Returns the content of a string, without its escapes; empty for every other value.
  std::string string() const;

  /// Returns a number that is a whole one and is written as such; nothing for every other value.
  std::optional<std::int64_t> integer() const noexcept;
  std::optional<std::uint64_t> unsigned_integer() const noexcept;

  /// Returns a member; of several of that name the last. Absent if this is no object.
  json_view find(std::string_view name) const;
  /// Returns the member of a member, and so on.
  json_view find(std::initializer_list<std::string_view> path) const;

  /// Calls `member(name, value)` for each member of an object, in the order of the text, with
  /// duplicates. The name is valid during the call.
  template <typename Member>
  void members(Member&& member) const {
    if (!is_object()) return;
    std::string buffer;
    for (const auto* at = tokens_.begin + 1; tokens_.at(at) != '}';) {
      const auto* const end = after(at + 2);
      member(content(at, buffer), json_view(tokens_, at + 2, end));
      at = tokens_.at(end) == ',' ? end + 1 : end;
    }
  }

  /// Calls `element(value)` for each element of an array.
  template <typename Element>
  void elements(Element&& element) const {
    if (!is_array()) return;
    for (const auto* at = tokens_.begin + 1; tokens_.at(at) != ']';) {
      const auto* const end = after(at);
      element(json_view(tokens_, at, end));
      at = tokens_.at(end) == ',' ? end + 1 : end;
    }
  }

  /// Returns the number of elements of an array; 0 for every other value.
  std::size_t size() const noexcept;

  /// Returns the content of the string whose token `at` is, in the text, or in `buffer` if it has
  /// escapes.
  std::string_view content(const std::uint32_t* at, std::string& buffer) const;

 private:
  char first() const noexcept { return exists() ? tokens_.at(tokens_.begin) : '\0'; }

  /// Returns the token behind the value that begins at `at`.
  const std::uint32_t* after(const std::uint32_t* at) const noexcept;

  token_list tokens_;
};

/// A whole JSON text (RFC 8259) that has been checked, and can be read without a DOM: takes 4 bytes
/// of memory for each byte of the text while it lives. The byte after the text has to be readable,
/// and zero or white space; the text has to stay as it is.
///
/// Not thread-safe; made and destroyed by one thread.
class json_document {
 public:
  explicit json_document(std::string_view text, std::size_t max_depth = 512);
  ~json_document();
  json_document(const json_document&) = delete;
  json_document& operator=(const json_document&) = delete;

  /// `none`, or why it was not read.
  json_flaw flaw() const noexcept { return flaw_; }

  /// Returns the value; absent if the text was not read.
  json_view root() const noexcept { return root_; }

 private:
  std::unique_ptr<token_index> index_;
  json_flaw flaw_ = json_flaw::malformed;
  json_view root_;
};

}  // namespace rw::core
