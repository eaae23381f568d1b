#include "core/gate.hpp"

#include <algorithm>

namespace rw::core {

bool gate::succeed() noexcept {
  const bool was_open = open();
  failures_ = 0;
  probing_ = false;
  probes_.reset();
  return was_open;
}

void gate::fail(ticket began, time_point now, duration at_least) {
  if (began != epoch_) return;
  probing_ = false;
  ++epoch_;
  ++failures_;
  if (!open()) return;
  not_before_ = now + std::max(probes_.next(), at_least);
}

}  // namespace rw::core
