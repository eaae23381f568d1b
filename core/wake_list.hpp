#pragma once

#include "core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

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
  ~wake_list();
  wake_list(const wake_list&) = delete;
  wake_list& operator=(const wake_list&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }

  /// Wakes the one that has waited longest. Completion is posted.
  void wake_one();
  void wake_all();

  /// Waits to be woken. False: the coroutine was cancelled; a wake meant for it went to the next.
  boost::asio::awaitable<bool> wait();

 private:
  struct waiter;

  void append(waiter& one) noexcept;
  void remove(waiter& one) noexcept;

  const boost::asio::any_io_executor executor_;
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

}  // namespace rw::core
