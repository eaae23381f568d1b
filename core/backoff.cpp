#include "core/backoff.hpp"

#include <algorithm>
#include <random>

namespace rw::core {

random_source make_random_source() {
  std::random_device device;
  std::seed_seq seed{device(), device(), device(), device()};
  return [engine = std::mt19937_64(seed)]() mutable { return engine(); };
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
