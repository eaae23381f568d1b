#include "rw/k8s/objects/json_input.hpp"

#include "rw/core/text.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>

namespace rw::k8s {
namespace {

using core::token_list;

/// Returns true if no white space precedes a token: the last byte of a token is always above a
/// space.
bool is_compact(const token_list& tokens) noexcept {
  bool spaced = false;
  for (const auto* token = tokens.begin + 1; token < tokens.end; ++token) {
    spaced |= static_cast<unsigned char>(tokens.text[*token - 1]) <= ' ';
  }
  return !spaced;
}

void compact(const token_list& tokens, std::string& into) {
  into.clear();
  for (const auto* token = tokens.begin; token < tokens.end; ++token) {
    into += tokens.span(token, token + 1);
  }
}

/// A handler that discards the values of Boost.JSON's parser.
struct indifferent {
  using error_code = boost::json::error_code;
  using string_view = boost::json::string_view;

  static constexpr std::size_t max_object_size = ~std::size_t{0};
  static constexpr std::size_t max_array_size = ~std::size_t{0};
  static constexpr std::size_t max_key_size = ~std::size_t{0};
  static constexpr std::size_t max_string_size = ~std::size_t{0};

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(std::size_t, error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(std::size_t, error_code&) { return true; }
  bool on_key_part(string_view, std::size_t, error_code&) { return true; }
  bool on_key(string_view, std::size_t, error_code&) { return true; }
  bool on_string_part(string_view, std::size_t, error_code&) { return true; }
  bool on_string(string_view, std::size_t, error_code&) { return true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t, string_view, error_code&) { return true; }
  bool on_uint64(std::uint64_t, string_view, error_code&) { return true; }
  bool on_double(double, string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }
};

}  // namespace

bool exact_walk::skip() noexcept {
  std::size_t depth = 0;
  do {
    const char c = peek();
    if (c == '\0') return false;
    if (c == '"') {
      skip_string();
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    ++position_;
    if (depth > 0 || c == '}' || c == ']') continue;
    while (position_ != end_ && *position_ != ',' && *position_ != '}' && *position_ != ']')
      ++position_;
  } while (depth > 0);
  return true;
}

void exact_walk::skip_string() noexcept {
  for (++position_; *position_ != '"'; ++position_) {
    if (*position_ == '\\') ++position_;
  }
  ++position_;
}

bool exact_walk::string(std::string_view& text) {
  if (peek() != '"') return false;
  const char* const begin = position_;
  skip_string();
  text = {begin + 1, static_cast<std::size_t>(position_ - begin - 2)};
  if (text.find('\\') != std::string_view::npos) {
    const auto value = boost::json::parse({begin, static_cast<std::size_t>(position_ - begin)});
    text = resolved_.emplace_back(value.get_string());
  }
  return true;
}

json_input& json_input::of_thread() {
  thread_local json_input instance;
  return instance;
}

bool json_input::prepare(std::string_view& text, token_list& tokens, std::string& error) {
  text = core::trimmed(text);
  if (!index_.build(text, tokens)) {
    if (is_valid(text, error)) error = "is not JSON";
    return false;
  }
  if (is_compact(tokens)) return true;
  compact(tokens, compact_);
  text = compact_;
  return index_.build(text, tokens);
}

bool json_input::is_valid(std::string_view text, std::string& failed) {
  boost::json::parse_options options;
  options.max_depth = max_object_depth;
  boost::json::basic_parser<indifferent> parser(options);
  boost::system::error_code error;
  const auto read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = boost::json::error::extra_data;
  if (!error) return true;
  failed = "is not JSON: " + error.message() + " at byte " + std::to_string(read);
  return false;
}

void json_input::release() noexcept {
  index_.release();
  if (compact_.capacity() > core::token_index::kept_capacity) std::string().swap(compact_);
}

}  // namespace rw::k8s
