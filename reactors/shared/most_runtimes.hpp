#pragma once

#include <cstddef>

namespace rw {

/// As many runtimes as a manager is built for. What is remembered of each of them, to spare work,
/// has room for so many; with more of them, that work is done again and again, since each round
/// over all forgets what the next one needs.
inline constexpr std::size_t most_runtimes = 32'768;

}  // namespace rw
