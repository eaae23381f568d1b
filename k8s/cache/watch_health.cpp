#include "rw/k8s/cache/watch_health.hpp"

#include <algorithm>

namespace rw::k8s {

bool watch_health::ended(const ending& watch) {
  if (!watch.lasted) return false;
  passed_ += *watch.lasted;
  const bool lived = watch.complete || *watch.lasted >= proof_of_life;
  if (lived) {
    passed_ = {};
    wait_ = least_wait;
    listed_ = false;
  }
  const bool fruitless = !lived && !watch.progressed;
  suspect_ = fruitless;
  row_ = fruitless ? row_ + 1 : 0;
  return fruitless;
}

void watch_health::listing() noexcept {
  row_ = 0;
  passed_ = {};
  listed_ = true;
}

void watch_health::listed(bool changed) noexcept {
  passed_ = {};
  if (!changed) wait_ = std::min(wait_ * 2, longest_wait);
}

}  // namespace rw::k8s
