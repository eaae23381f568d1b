#pragma once

#include <cstdio>
#include <cstdlib>

namespace rw::fuzz {

/// Ends the process, as a fuzzer expects it, if a promise is broken.
inline void check(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace rw::fuzz
