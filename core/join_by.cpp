#include "rw/core/join_by.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <exception>

namespace rw::core {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> cancel_at(timer* alarm, task_group* group) {
  const bool due = co_await alarm->wait();
  if (due) group->cancel();
}

}  // namespace

asio::awaitable<void> join_all(task_group& group) {
  try {
    co_await group.join();
  } catch (const boost::system::system_error& error) {
    if (error.code() != asio::error::operation_aborted) throw;
  }
}

asio::awaitable<void> join_by(clock& time, task_group& group, time_point deadline) {
  const auto alarm = time.make_timer(group.get_executor());
  alarm->expires_at(deadline);
  task_group timekeeper(group.get_executor());
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);  // both are joined in every case
  timekeeper.spawn(cancel_at(alarm.get(), &group));
  std::exception_ptr failure;
  try {
    co_await join_all(group);
  } catch (...) {
    failure = std::current_exception();
  }
  timekeeper.cancel();
  co_await join_all(timekeeper);
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rw::core
