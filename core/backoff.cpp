#include "rw/core/backoff.hpp"

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

duration doubled(duration base, duration limit, unsigned times) noexcept {
  auto result = std::min(base, limit);
  for (unsigned i = 0; i < times && result > duration::zero() && result < limit; ++i) {
    result = result > limit / 2 ? limit : result * 2;
  }
  return result;
}

duration shortened(duration length, double jitter, std::uint64_t random) noexcept {
  // The upper 53 bits of a random number are a fraction between 0 and 1.
  const auto part = std::clamp(jitter, 0.0, 1.0) * static_cast<double>(random >> 11) * 0x1p-53;
  return length - duration(static_cast<duration::rep>(static_cast<double>(length.count()) * part));
}

duration backoff::next() {
  const auto ceiling = doubled(base_, limit_, failures_);
  skip(1);
  const auto range = static_cast<std::uint64_t>(std::max<duration::rep>(ceiling.count(), 0)) + 1;
  return duration(static_cast<duration::rep>(random_() % range));
}

}  // namespace rw::core
