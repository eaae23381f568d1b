#pragma once

#include "core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/intrusive/list.hpp>

namespace rw::core {

/// Coroutines that wait for a change, oldest first: a condition variable for coroutines. The author
/// of the change wakes one or all. A woken coroutine checks its condition again, because another
/// coroutine may have been faster. A wake without a waiter is lost.
///
/// Everything happens on one executor (thread or strand). The wait has no deadline of its own.
class wake_list {
 public:
  explicit wake_list(boost::asio::any_io_executor executor);
  wake_list(const wake_list&) = delete;
  wake_list& operator=(const wake_list&) = delete;

  bool empty() const noexcept { return waiters_.empty(); }

  /// Wakes the coroutine that has waited longest. Posts its completion.
  void wake_one();
  void wake_all();

  /// Waits to be woken. Returns false if the coroutine was cancelled; a wake meant for it wakes the
  /// next.
  boost::asio::awaitable<bool> wait();

 private:
  /// Part of the frame of the waiting coroutine, linked until it is woken. When their execution
  /// context is destroyed, waiter and list may be destroyed in either order.
  struct waiter : boost::intrusive::list_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    wake woken;
  };

  const boost::asio::any_io_executor executor_;
  boost::intrusive::list<waiter, boost::intrusive::constant_time_size<false>> waiters_;
};

}  // namespace rw::core
