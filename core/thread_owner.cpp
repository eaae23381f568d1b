#include "rw/core/thread_owner.hpp"

#include "rw/core/log.hpp"

#include <cstdlib>

namespace rw::core {

bool thread_owner::enter() const noexcept {
  thread_local const char token = 0;
  const void* owner = nullptr;
  if (inside_.compare_exchange_strong(owner, &token, std::memory_order_acquire)) return true;
  if (owner == &token) return false;
  try {
    logger().error("used by two threads at once; its executor must be one thread or a strand",
                   {{"object", object_}});
  } catch (...) {  // out of memory: there is no other place to say it
  }
  std::abort();
}

}  // namespace rw::core
