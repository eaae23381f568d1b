#pragma once

#include "rw/core/json/json_view.hpp"

namespace rw::admission {

/// Returns true if two JSON values are the same: the order of names in objects, the spelling of
/// strings (escapes) and of numbers (1, 1.0, 10e-1; -0 and 0) do not matter; the order of arrays
/// does. Of duplicate names the last counts. Numbers are compared as decimals, without rounding:
/// 9007199254740993 is not 9007199254740992, although a double cannot tell them apart.
///
/// Takes time about linear in the length of the texts, and at most 2 bytes of memory for each byte
/// of them. Where the order or the spelling differs, values that are not the same are taken for the
/// same with a probability of 2^-64, which no sender can raise.
bool json_equal(core::json_view a, core::json_view b);

}  // namespace rw::admission
