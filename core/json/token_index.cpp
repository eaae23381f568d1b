#include "rw/core/json/token_index.hpp"

#include "rw/core/json/escapes.hpp"

#include <simdjson.h>

#include <algorithm>
#include <bit>

namespace rw::core {

token_index::token_index() = default;
token_index::~token_index() = default;

bool token_index::build(std::string_view text, token_list& tokens) {
  if (text.empty()) return false;
  if (stage_ == nullptr || stage_->capacity() < text.size()) {
    constexpr std::size_t least = 8 * 1024;
    const auto capacity =
        text.size() <= kept_capacity ? std::bit_ceil(std::max(text.size(), least)) : text.size();
    // A depth of 1: only the second stage needs memory for depth, and it is not used.
    stage_.reset();
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(capacity, 1,
                                                                                stage_)) {
      stage_.reset();
      return false;
    }
  }
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  if (stage_->stage1(bytes, text.size(), simdjson::stage1_mode::regular)) return false;
  const auto* begin = stage_->structural_indexes.get();
  tokens = {text.data(), begin, begin + stage_->n_structural_indexes};
  return escapes_are_valid(text);
}

void token_index::release() noexcept {
  if (stage_ != nullptr && stage_->capacity() > kept_capacity) stage_.reset();
}

}  // namespace rw::core
