#pragma once

#include "core/json/token_index.hpp"

#include <cstdint>

namespace rw::admission {

/// How two values relate, as json_equal would have it.
enum class relation : std::uint8_t { equal, different, unclear };

/// Compares two values, given as tokens of validated JSON, up to the first difference. `different`
/// only if neither spelling, nor the order of names, nor a duplicate name can explain it.
relation compare_tokens(const core::token_list& tokens, const std::uint32_t* a,
                        const std::uint32_t* a_end, const std::uint32_t* b,
                        const std::uint32_t* b_end);

}  // namespace rw::admission
