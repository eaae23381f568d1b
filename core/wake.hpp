#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/system/error_code.hpp>

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

  /// Returns true during the destruction of the execution context: no wait completes then.
  bool abandoned() const noexcept;

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

}  // namespace rw::core
