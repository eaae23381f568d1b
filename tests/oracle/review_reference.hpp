#pragma once

#include "rw/reactors/events/review.hpp"

#include <span>
#include <string>
#include <string_view>

namespace rw::admission {

/// Decides about a review by the rules of `reader`, through a Boost.JSON DOM: clear rather than
/// fast, and memory as the sender likes.
review_result read_review_reference(std::string_view body,
                                    std::span<const std::string> subresources = {});

/// Compares two JSON texts by the rules of `json_equal`, through two DOMs. What is not JSON, or too
/// deep, equals its own bytes only.
bool reference_equal(std::string_view a, std::string_view b);

}  // namespace rw::admission
