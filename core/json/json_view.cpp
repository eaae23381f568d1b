#include "rw/core/json/json_view.hpp"

#include "rw/core/json/escapes.hpp"
#include "rw/core/text.hpp"

#include <utility>

namespace rw::core {
namespace {

/// The index of the last document of this thread, for the next one.
std::unique_ptr<token_index>& spare_index() {
  thread_local std::unique_ptr<token_index> spare;
  return spare;
}

}  // namespace

std::string_view json_view::content(const std::uint32_t* at, std::string& buffer) const {
  auto text = tokens_.span(at, at + 1);
  text = text.substr(1, text.size() - 2);
  if (text.find('\\') == std::string_view::npos) return text;
  buffer.clear();
  append_unescaped(buffer, text);
  return buffer;
}

std::string json_view::string() const {
  if (!is_string()) return {};
  std::string buffer;
  return std::string(content(tokens_.begin, buffer));
}

std::optional<std::int64_t> json_view::integer() const noexcept {
  return parse_number<std::int64_t>(text());
}

std::optional<std::uint64_t> json_view::unsigned_integer() const noexcept {
  return parse_number<std::uint64_t>(text());
}

json_view json_view::find(std::string_view name) const {
  json_view found;
  members([&](std::string_view each, json_view value) {
    if (each == name) found = value;
  });
  return found;
}

json_view json_view::find(std::initializer_list<std::string_view> path) const {
  auto at = *this;
  for (const auto name : path) at = at.find(name);
  return at;
}

std::size_t json_view::size() const noexcept {
  std::size_t count = 0;
  elements([&](json_view) { ++count; });
  return count;
}

const std::uint32_t* json_view::after(const std::uint32_t* at) const noexcept {
  std::size_t depth = 0;
  do {
    const char c = tokens_.at(at++);
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
  } while (depth > 0);
  return at;
}

json_document::json_document(std::string_view text, std::size_t max_depth)
    : index_(std::exchange(spare_index(), nullptr)) {
  if (index_ == nullptr) index_ = std::make_unique<token_index>();
  token_list tokens;
  if (!index_->build(text, tokens)) return;
  flaw_ = flaw_of(tokens, max_depth);
  if (flaw_ == json_flaw::none) root_ = json_view(tokens, tokens.begin, tokens.end);
}

json_document::~json_document() {
  index_->release();
  spare_index() = std::move(index_);
}

}  // namespace rw::core
