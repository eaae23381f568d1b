#pragma once

#include "rw/core/requirements.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <memory>
#include <optional>

namespace rw::core {

/// Wakes one coroutine: an event that resets itself when a wait consumes it. A `set` without a
/// waiter is kept for the next wait. Several `set` count as one.
///
/// Everything happens on one executor (thread or strand). The wait has no deadline of its own: the
/// party that sets the event must do so in bounded time (for example by a watchdog's deadline).
///
/// A wait that is still under way when its execution context is destroyed is destroyed with it, as
/// Asio's own operations are.
class wake {
 public:
  explicit wake(boost::asio::any_io_executor executor);
  ~wake();
  wake(const wake&) = delete;
  wake& operator=(const wake&) = delete;

  /// Ends the wait under way, by posting its completion, or else the next wait.
  void set();

  /// Returns true if a `set` has not been consumed yet.
  bool is_set() const noexcept { return set_; }

  /// Returns what is true from the begin of the execution context's destruction on: no wait
  /// completes then. It may be kept longer than the context.
  std::shared_ptr<const std::atomic<bool>> context_ended() const noexcept;

  /// Waits for `set`. One wait at a time. Returns `operation_aborted` if the coroutine is
  /// cancelled.
  boost::asio::awaitable<boost::system::error_code> wait();

 private:
  using handler = boost::asio::async_result<boost::asio::use_awaitable_t<>,
                                            void(boost::system::error_code,
                                                 boost::system::error_code)>::handler_type;
  using link = boost::intrusive::list_member_hook<>;
  class registry;

  void begin(handler waiter);
  std::optional<handler> end();
  void complete(boost::system::error_code error);

  const boost::asio::any_io_executor executor_;
  registry& registry_;
  std::optional<handler> waiter_;
  link registered_;  ///< while there is a waiter
  bool set_ = false;
};

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
