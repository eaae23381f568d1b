#include "differences.hpp"

#include <array>

namespace rw::conformance {

std::span<const difference> known_differences() {
  using enum difference::where;
  static constexpr std::array<difference, 2> all{{
      {"crud/fields_that_no_one_knows_are_dropped", embedded,
       "built-in kinds have no schema of all their fields: unknown ones are kept"},
      {"apply/a_field_that_the_schema_does_not_know_is_not_applied", embedded,
       "built-in kinds have no schema of all their fields: unknown ones are kept"},
  }};
  return all;
}

}  // namespace rw::conformance
