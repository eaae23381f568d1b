#pragma once

#include "rw/core/task_group.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace rw::core {
namespace gather_detail {

template <typename T>
boost::asio::awaitable<void> store(boost::asio::awaitable<T> call, std::optional<T>* into) {
  auto result = co_await std::move(call);
  into->emplace(std::move(result));
}

}  // namespace gather_detail

/// Runs all calls concurrently and waits for all. Returns their results in the order of the calls.
/// Throws the first exception of a call, or Asio's operation_aborted if the caller is cancelled; no
/// call is running then. `T` is movable.
template <typename T>
boost::asio::awaitable<std::vector<T>> gather(std::vector<boost::asio::awaitable<T>> calls) {
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto cancellation = co_await boost::asio::this_coro::cancellation_state;
  const bool throws = co_await boost::asio::this_coro::throw_if_cancelled();
  // Lets the tasks be joined even if the caller was cancelled before.
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  std::vector<std::optional<T>> results(calls.size());
  task_group tasks(executor);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    tasks.spawn(gather_detail::store(std::move(calls[i]), &results[i]));
  }
  if (cancellation.cancelled() != boost::asio::cancellation_type::none) tasks.cancel();
  co_await tasks.join();
  co_await boost::asio::this_coro::throw_if_cancelled(throws);
  std::vector<T> out;
  for (auto& outcome : results) {
    if (!outcome) throw boost::system::system_error(boost::asio::error::operation_aborted);
    out.push_back(std::move(*outcome));
  }
  co_return out;
}

}  // namespace rw::core
