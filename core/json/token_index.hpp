#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace simdjson::internal {
class dom_parser_implementation;
}

namespace rw::core {

/// Positions of the tokens of a JSON text: each of {}[]:, , the opening quote of each string, the
/// first byte of everything else. Two more positions after the last point at the end of the text,
/// where a std::string keeps a zero: no token begins with it.
struct token_list {
  const char* text = nullptr;
  const std::uint32_t* begin = nullptr;
  const std::uint32_t* end = nullptr;

  char at(const std::uint32_t* token) const noexcept { return text[*token]; }

  /// Returns the text from one token up to another, without the white space at its end.
  std::string_view span(const std::uint32_t* from, const std::uint32_t* to) const noexcept {
    const char* first = text + *from;
    const char* last = text + *to;
    while (last > first &&
           (last[-1] == ' ' || last[-1] == '\n' || last[-1] == '\r' || last[-1] == '\t')) {
      --last;
    }
    return {first, static_cast<std::size_t>(last - first)};
  }
};

/// Finds tokens with simdjson's first stage (which picks the widest vector instructions at run
/// time). Also rejects invalid UTF-8, unclosed strings, and control characters and invalid escapes
/// in strings; token_walk checks everything else.
///
/// Keeps 4 bytes per byte of the largest text of up to `kept_capacity`. Not thread-safe.
class token_index {
 public:
  static constexpr std::size_t kept_capacity = 256 * 1024;

  token_index();
  ~token_index();
  token_index(const token_index&) = delete;
  token_index& operator=(const token_index&) = delete;

  /// Returns false if the text is rejected. The tokens are valid until `release`, and as long as
  /// `text` is. The byte after `text` must be readable, and zero or white space.
  bool build(std::string_view text, token_list& tokens);

  /// Frees the memory that only a large text needed.
  void release() noexcept;

 private:
  std::unique_ptr<simdjson::internal::dom_parser_implementation> stage_;
};

}  // namespace rw::core
