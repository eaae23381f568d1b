#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

namespace rw::core {

/// Owns coroutines: whatever is spawned into the group is cancelled and awaited by it, so that no
/// task outlives what it refers to (structured concurrency).
///
/// A task that ends with an exception (other than by being cancelled) is a broken invariant: the
/// first one is kept, the whole group is cancelled, and `join` throws it. A group that must survive
/// its tasks' failures, such as a server's connections, gives `on_failure` instead.
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

  /// Starts `task` on the group's executor, or on `executor`. In a group that was cancelled the
  /// task is destroyed without being started.
  void spawn(boost::asio::awaitable<void> task);
  void spawn(boost::asio::any_io_executor executor, boost::asio::awaitable<void> task);

  /// Cancels all tasks (terminal cancellation, emitted on each task's own executor) and refuses new
  /// ones.
  void cancel();

  /// Waits until no task is left; cancelled while it waits, it cancels the tasks and still waits
  /// for them. (A coroutine that may have been cancelled before must switch off
  /// `throw_if_cancelled` first, or else Asio throws before `join` begins.)
  boost::asio::awaitable<void> join();

  std::size_t size() const;

  /// The group's executor, which `join` is to be called on.
  boost::asio::any_io_executor get_executor() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace rw::core
