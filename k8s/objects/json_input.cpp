#include "rw/k8s/objects/json_input.hpp"

#include "rw/core/text.hpp"

namespace rw::k8s {

using core::json_flaw;
using core::token_list;

namespace {

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

}  // namespace

json_input& json_input::of_thread() {
  thread_local json_input instance;
  return instance;
}

json_flaw json_input::prepare(std::string_view text, token_list& tokens) {
  text = core::trimmed(text);
  if (!index_.build(text, tokens)) return json_flaw::malformed;
  if (is_compact(tokens)) return json_flaw::none;
  // Before: without the space, 1 2 is 12.
  if (const auto flaw = core::flaw_of(tokens, max_object_depth); flaw != json_flaw::none)
    return flaw;
  compact(tokens, compact_);
  return index_.build(compact_, tokens) ? json_flaw::none : json_flaw::malformed;
}

void json_input::release() noexcept {
  index_.release();
  if (compact_.capacity() > core::token_index::kept_capacity) std::string().swap(compact_);
}

}  // namespace rw::k8s
