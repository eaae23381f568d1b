#include "differences.hpp"

#include <array>

namespace rw::conformance {

std::span<const difference> known_differences() {
  using enum difference::where;
  static constexpr std::array<difference, 1> all{{
      {"apply/field_that_the_schema_does_not_know_is_not_applied", embedded,
       "unknown fields of custom resources are pruned before they are applied"},
  }};
  return all;
}

}  // namespace rw::conformance
