#pragma once

#include <span>
#include <string_view>

namespace rw::conformance {

/// A behaviour that one of the two backends does not show, and why.
struct difference {
  enum class where : unsigned char { embedded, kube };

  std::string_view test;  ///< "suite/case"
  where on;
  std::string_view reason;
};

/// All that are known. Each of these tests is run, and fails the suite once it passes, so that the
/// list stays true.
std::span<const difference> known_differences();

}  // namespace rw::conformance
