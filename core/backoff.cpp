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
  auto ceiling = base_;
  for (unsigned i = 0; i < failures_ && ceiling < limit_; ++i) ceiling *= 2;
  ceiling = std::min(ceiling, limit_);
  ++failures_;
  const auto range = static_cast<std::uint64_t>(std::max<duration::rep>(ceiling.count(), 0)) + 1;
  return duration(static_cast<duration::rep>(random_() % range));
}

}  // namespace rw::core
