#include "rw/core/task_group.hpp"

#include "rw/core/unhandled.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <cassert>
#include <list>
#include <mutex>
#include <utility>

namespace rw::core {

namespace asio = boost::asio;

struct task_group::state : std::enable_shared_from_this<state> {
  struct child {
    asio::any_io_executor executor;
    asio::cancellation_signal signal;  ///< used on `executor` only, as `done` is
    bool done = false;
  };
  using children_list = std::list<std::shared_ptr<child>>;
  class registration;

  state(asio::any_io_executor ex, failure_handler handler)
      : executor(std::move(ex)), on_failure(std::move(handler)), empty(executor) {}

  void start(std::shared_ptr<child> task, registration registration, asio::awaitable<void> work);
  void finished(children_list::iterator child, std::exception_ptr failure);
  void remove(children_list::iterator child, std::exception_ptr failure);
  void cancel();
  bool is_cancelled() const {
    const std::lock_guard lock(guard);
    return cancelled;
  }
  bool is_empty() const {
    const std::lock_guard lock(guard);
    return children.empty();
  }

  const asio::any_io_executor executor;
  const failure_handler on_failure;
  wake empty;  ///< on `executor`
  const std::shared_ptr<const std::atomic<bool>> context_ended = empty.context_ended();
  mutable std::mutex guard;
  children_list children;
  std::exception_ptr first_failure;
  bool cancelled = false;
};

/// A task's place in its group. Released when the task ends, or is destroyed before its end: never
/// started, or destroyed with its execution context.
class task_group::state::registration {
 public:
  registration(std::shared_ptr<state> group, children_list::iterator child)
      : group_(std::move(group)), child_(child) {}
  registration(registration&&) noexcept = default;
  registration& operator=(registration&&) = delete;
  ~registration() {
    if (group_) group_->remove(child_, nullptr);
  }

  void finished(std::exception_ptr failure) {
    std::exchange(group_, nullptr)->finished(child_, std::move(failure));
  }

 private:
  std::shared_ptr<state> group_;
  children_list::iterator child_;
};

namespace {

bool is_cancellation(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& e) {
    return e.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

}  // namespace

void task_group::state::start(std::shared_ptr<child> task, registration registration,
                              asio::awaitable<void> work) {
  if (is_cancelled()) {
    // Destroyed before its place in the group is. (Assigning to an awaitable would leak its frame.)
    const auto dropped = std::move(work);
    return;
  }
  asio::co_spawn(task->executor, std::move(work),
                 asio::bind_cancellation_slot(task->signal.slot(),
                                              [task, registration = std::move(registration)](
                                                  std::exception_ptr failure) mutable {
                                                task->done = true;
                                                registration.finished(std::move(failure));
                                              }));
}

void task_group::state::finished(children_list::iterator child, std::exception_ptr failure) {
  if (failure && is_cancellation(failure)) failure = nullptr;
  if (failure && on_failure) {
    on_failure(failure);
    failure = nullptr;
  }
  const bool failed = failure != nullptr;
  // Cancelled first, so that an observer of an empty group finds it closed too.
  if (failed) cancel();
  remove(child, std::move(failure));
}

void task_group::state::remove(children_list::iterator child, std::exception_ptr failure) {
  bool last = false;
  {
    const std::lock_guard lock(guard);
    children.erase(child);
    if (failure && !first_failure) first_failure = std::move(failure);
    last = children.empty();
  }
  if (last) asio::post(executor, [self = shared_from_this()] { self->empty.set(); });
}

void task_group::state::cancel() {
  const std::lock_guard lock(guard);
  cancelled = true;
  for (const auto& task : children) {
    asio::post(task->executor, [task] {
      if (!task->done) task->signal.emit(asio::cancellation_type::terminal);
    });
  }
}

task_group::task_group(asio::any_io_executor executor, failure_handler on_failure)
    : state_(std::make_shared<state>(std::move(executor), std::move(on_failure))) {}

task_group::~task_group() {
  const bool abandoned = *state_->context_ended;  // a group may outlive its context
  assert((state_->is_empty() || abandoned) && "a task group must be joined");
  const std::lock_guard lock(state_->guard);
  if (!state_->first_failure) return;
  unhandled(state_->first_failure, !abandoned && std::uncaught_exceptions() == 0);
}

void task_group::spawn(asio::awaitable<void> task) {
  spawn(state_->executor, std::move(task));
}

void task_group::spawn(asio::any_io_executor executor, asio::awaitable<void> task) {
  auto child = std::make_shared<state::child>();
  child->executor = executor;
  state::children_list::iterator position;
  {
    const std::lock_guard lock(state_->guard);
    if (state_->cancelled) return;
    position = state_->children.insert(state_->children.end(), child);
  }
  // Starts on its own executor, where `cancel` also emits its signal: a cancellation comes either
  // before the start, which then observes it, or after it.
  asio::dispatch(executor, [group = state_, child, mine = state::registration(state_, position),
                            work = std::move(task)]() mutable {
    group->start(std::move(child), std::move(mine), std::move(work));
  });
}

void task_group::cancel() {
  state_->cancel();
}

std::size_t task_group::size() const {
  const std::lock_guard lock(state_->guard);
  return state_->children.size();
}

asio::any_io_executor task_group::get_executor() const {
  return state_->executor;
}

asio::awaitable<void> task_group::join() {
  const auto group = state_;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  bool aborted = false;
  while (!group->is_empty()) {
    const auto error = co_await group->empty.wait();
    aborted = aborted || error;
    if (error) group->cancel();
  }
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (group->first_failure) {
    std::rethrow_exception(std::exchange(group->first_failure, nullptr));
  }
  if (aborted) throw boost::system::system_error(asio::error::operation_aborted);
}

}  // namespace rw::core
