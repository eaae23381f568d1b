#include "rw/core/unhandled.hpp"

#include "rw/core/log.hpp"

#include <atomic>
#include <cstdlib>

namespace rw::core {
namespace {

void end_process(std::string_view text, bool may_end) noexcept {
  log_unhandled(text, may_end);
  if (may_end) std::abort();
}

std::atomic<unhandled_handler> current{&end_process};

}  // namespace

void set_unhandled(unhandled_handler handler) noexcept {
  current = handler == nullptr ? &end_process : handler;
}

void log_unhandled(std::string_view text, bool) noexcept {
  try {
    logger().error("exception that nothing has taken", {{"error", text}});
  } catch (...) {  // out of memory: there is no other place to say it
  }
}

void unhandled(const std::exception_ptr& failure, bool may_end) noexcept {
  const auto handler = current.load();
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    handler(e.what(), may_end);
  } catch (...) {
    handler("not a std::exception", may_end);
  }
}

}  // namespace rw::core
