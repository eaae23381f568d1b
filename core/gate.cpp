#include "core/gate.hpp"

#include <algorithm>

namespace rw::core {

bool gate::succeed() noexcept {
  const bool was_open = open();
  failures_ = 0;
  probing_ = false;
  not_before_ = time_point::min();
  probes_.reset();
  return was_open;
}

bool gate::fail(ticket began, time_point now, duration at_least) {
  if (began != epoch_) return false;
  probing_ = false;
  ++epoch_;
  ++failures_;
  const auto pause = std::max(open() ? probes_.next() : duration::zero(), at_least);
  if (pause > duration::zero()) not_before_ = std::max(not_before_, now + pause);
  return true;
}

}  // namespace rw::core
