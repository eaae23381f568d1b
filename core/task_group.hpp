#pragma once

#include "rw/core/requirements.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace rw::core {

/// Owns coroutines: cancels and awaits every task spawned into the group, so that no task outlives
/// what it refers to (structured concurrency).
///
/// A task that ends with an exception (other than by being cancelled) is a broken invariant: the
/// group keeps the first exception and cancels all tasks, and `join` throws it. A group that must
/// survive its tasks' failures, such as a server's connections, sets `on_failure` instead.
///
/// `spawn`, `cancel` and `size` are thread-safe; `join` is called once, on the group's executor. An
/// executor that several threads run must be a strand. The group must be joined before it is
/// destroyed; tasks that are destroyed together with their execution context count as ended.
class task_group {
 public:
  using failure_handler = std::function<void(std::exception_ptr)>;

  explicit task_group(boost::asio::any_io_executor executor, failure_handler on_failure = {});
  ~task_group();
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;

  /// Starts `task` on the group's executor, or on `executor`. A cancelled group destroys the task
  /// without starting it.
  void spawn(boost::asio::awaitable<void> task);
  void spawn(boost::asio::any_io_executor executor, boost::asio::awaitable<void> task);

  /// Cancels all tasks (terminal cancellation, emitted on each task's own executor) and rejects new
  /// tasks.
  void cancel();

  /// Waits until no task is left. If cancelled meanwhile, it cancels the tasks and still waits for
  /// them. (A coroutine that may have been cancelled before must switch off `throw_if_cancelled`
  /// first, or else Asio throws before `join` begins.)
  boost::asio::awaitable<void> join();

  std::size_t size() const;

  /// The executor of the group; `join` runs on it.
  boost::asio::any_io_executor get_executor() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace rw::core
