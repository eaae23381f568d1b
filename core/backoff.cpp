#include "core/backoff.hpp"

#include <algorithm>
#include <random>

namespace rw::core {

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). Its
/// state is eight bytes: thousands of clients each hold a source for their jitter.
random_source make_random_source() {
  std::random_device device;
  return [state = std::uint64_t{device()} << 32 | device()]() mutable {
    auto z = state += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  };
}

duration backoff::next() {
  auto ceiling = std::min(base_, limit_);
  for (unsigned i = 0; i < failures_ && ceiling > duration::zero() && ceiling < limit_; ++i) {
    ceiling = ceiling > limit_ / 2 ? limit_ : ceiling * 2;
  }
  skip(1);
  const auto range = static_cast<std::uint64_t>(std::max<duration::rep>(ceiling.count(), 0)) + 1;
  return duration(static_cast<duration::rep>(random_() % range));
}

}  // namespace rw::core
