#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/system/error_code.hpp>

#include <optional>

namespace rw::core {

/// Wakes one coroutine: an event that resets itself when a wait consumes it. A `set` that nobody
/// waits for is kept, so none is missed; several are one.
///
/// Everything happens on one executor (thread or strand). The wait has no deadline of its own: who
/// sets the event must be sure to do so in bounded time (a watchdog's deadline, a timer beside it).
///
/// A wait that is still under way when its execution context is destroyed is destroyed with it, as
/// Asio's own operations are.
class wake {
 public:
  explicit wake(boost::asio::any_io_executor executor);
  ~wake();
  wake(const wake&) = delete;
  wake& operator=(const wake&) = delete;

  /// Ends the wait that is under way, by posting its completion, or else the next one.
  void set();

  /// True if a `set` has not been consumed yet.
  bool is_set() const noexcept { return set_; }

  /// True if the execution context is being destroyed: no wait ends any more.
  bool abandoned() const noexcept;

  /// Waits for `set`. One wait at a time. Ends with `operation_aborted` if the coroutine is
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
