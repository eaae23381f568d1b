#pragma once

#include "core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/intrusive/list.hpp>

namespace rw::core {

/// Coroutines that wait for something to change, oldest first: what a condition variable is to
/// threads. Whoever changes it wakes one or all; a woken coroutine looks again for itself, because
/// another may have been faster. Nothing is kept for later: a wake that finds nobody waiting is
/// lost.
///
/// Everything happens on one executor (thread or strand). The wait has no deadline of its own.
class wake_list {
 public:
  explicit wake_list(boost::asio::any_io_executor executor);
  wake_list(const wake_list&) = delete;
  wake_list& operator=(const wake_list&) = delete;

  bool empty() const noexcept { return waiters_.empty(); }

  /// Wakes the one that has waited longest. Completion is posted.
  void wake_one();
  void wake_all();

  /// Waits to be woken. False: the coroutine was cancelled; a wake meant for it went to the next.
  boost::asio::awaitable<bool> wait();

 private:
  /// Lies in the frame of the coroutine that waits, linked until it is woken. The list may go
  /// before it, and it before the list, when their execution context is destroyed.
  struct waiter : boost::intrusive::list_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    wake woken;
  };

  const boost::asio::any_io_executor executor_;
  boost::intrusive::list<waiter, boost::intrusive::constant_time_size<false>> waiters_;
};

}  // namespace rw::core
