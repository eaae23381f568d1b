#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace rw::core {
namespace within_detail {

template <typename T>
struct race {
  explicit race(const boost::asio::any_io_executor& executor) : over(executor) {}
  std::optional<T> value;
  std::exception_ptr failure;
  wake over;
};

template <typename T>
boost::asio::awaitable<void> work(boost::asio::awaitable<T> call, race<T>* in) {
  try {
    in->value.emplace(co_await std::move(call));
  } catch (...) {
    in->failure = std::current_exception();
  }
  in->over.set();
}

template <typename T>
boost::asio::awaitable<void> ring(timer* alarm, race<T>* in) {
  const bool due = co_await alarm->wait();
  if (due) in->over.set();
}

}  // namespace within_detail

/// Runs `call` until it ends, or until the time limit: then cancels and awaits it. Returns nothing
/// if the limit came first. Throws what `call` throws, or, if the caller was cancelled, Asio's
/// operation_aborted. For network operations; it costs two spawned tasks.
template <typename T>
boost::asio::awaitable<std::optional<T>> within(clock& time, time_point until,
                                                boost::asio::awaitable<T> call) {
  const auto executor = co_await boost::asio::this_coro::executor;
  within_detail::race<T> race(executor);
  task_group tasks(executor);
  const auto alarm = time.make_timer(executor);
  alarm->expires_at(until);
  tasks.spawn(within_detail::work(std::move(call), &race));
  tasks.spawn(within_detail::ring(alarm.get(), &race));
  const auto cancelled = co_await race.over.wait();
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  const bool ended = race.value || race.failure;
  tasks.cancel();
  co_await tasks.join();
  co_await boost::asio::this_coro::throw_if_cancelled(throws);
  if (cancelled) throw boost::system::system_error(boost::asio::error::operation_aborted);
  if (!ended) co_return std::nullopt;
  if (race.failure) std::rethrow_exception(race.failure);
  co_return std::move(race.value);
}

}  // namespace rw::core
