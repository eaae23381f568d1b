#pragma once

#include "rw/core/channel/operation.hpp"
#include "rw/core/channel/state.hpp"
#include "rw/core/channel_error.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace rw::core {

/// A bounded FIFO queue between any number of senders and receivers, in any threads, inside or
/// outside an io_context. A sender waits for room and a receiver for items, as coroutines or with
/// any other completion token.
///
/// **Algorithm.** Slots hold the items. A ring of slot numbers keeps their order: the circular
/// queue NCQ of R. Nikolaev, "A Scalable, Portable, and Memory-Efficient Lock-Free FIFO Queue"
/// (DISC 2019, arXiv:1908.04511); the vacant slots are a Treiber stack (channel/index_ring.hpp says
/// why). Lock-free wait lists hold the suspended operations (channel/wait_list.hpp).
///
/// **Progress.** Nothing here blocks, spins on another thread or takes a mutex; try_send and
/// try_receive are lock-free. Waking or completing an operation posts to its executor, and
/// suspending one uses the executor's context (Asio's own locks, held for a few instructions).
///
/// **Consistency.** Sends, receives, close and the results "full", "empty" and "closed" are
/// linearizable: each call takes effect at one instant between its begin and its end. A batch is
/// received in parts of up to 32 items, each at one instant. (Limit: with more than 256 threads
/// inside calls at once, a send may return "full" although there is room.)
///
/// **Waiting.** Each item sent wakes one waiting receiver, each item received one waiting sender,
/// oldest first. Each suspended operation is woken exactly once for each time it suspends. A woken
/// operation tries again on its own executor. If another operation takes the item or the room
/// first, the woken operation waits again, after the others. So items are fair (FIFO), waiters are
/// only roughly so.
///
/// **Completion.** The channel posts a handler to its associated executor, and never calls it from
/// within a call to the channel. It uses the associated allocator for the operation's memory and
/// honours the associated cancellation slot (every type but `none`; the caller emits the signal, as
/// always in Asio, where the operation's executor runs).
/// - A cancelled receive has taken nothing. A cancelled send has delivered nothing, and its value
///   is destroyed.
/// - An operation that was woken when it is cancelled tries once more: it may then succeed.
/// - Handlers of operations that are still suspended when their execution context is destroyed are
///   destroyed uncalled, with what they own. (No other thread may use the channel in that moment.)
/// - Running out of memory while suspending or waking ends the process.
///
/// **Lifetime.** The destructor closes the channel. Suspended operations complete with
/// `channel_errc::closed` and no longer touch the channel object. No call may be under way. Items
/// left over are destroyed with the last operation.
///
/// `T`: nothrow move-constructible. At most max(256, capacity rounded up to a power of two) threads
/// may be inside calls at the same time.
template <typename T>
class channel {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                "T must be nothrow move-constructible and nothrow destructible");

 public:
  using value_type = T;

  /// Holds exactly `capacity` items, from 1 to 2^30; otherwise throws std::invalid_argument.
  explicit channel(std::size_t capacity)
      : state_(std::make_shared<channel_detail::state<T>>(capacity)) {}

  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel() { close(); }

  // --- without waiting, from any thread ---

  /// Sends if there is room. Moves from `value` only if it returns `sent`.
  send_status try_send(T& value) noexcept { return state_->try_send(value); }
  send_status try_send(T&& value) noexcept { return state_->try_send(value); }

  /// Receives the oldest item. Returns false if there is none (is_closed says whether more may
  /// come).
  bool try_receive(T& into) noexcept
    requires std::is_nothrow_move_assignable_v<T>
  {
    return state_->try_receive([&into](T&& item) noexcept { into = std::move(item); }) ==
           receive_status::received;
  }

  std::optional<T> try_receive() noexcept {
    std::optional<T> item;
    state_->try_receive([&item](T&& taken) noexcept { item.emplace(std::move(taken)); });
    return item;
  }

  /// Receives up to `max` items, oldest first, and appends them to `into`. Returns their number.
  /// Throws only what the vector's growth throws; `into` then holds the items received until then.
  std::size_t try_receive(std::vector<T>& into, std::size_t max) {
    std::size_t taken = 0;
    state_->try_receive_some(into, max, taken);
    return taken;
  }

  // --- waiting, with a completion token ---

  /// Sends; waits for room. Handler: `void(error_code)`. Errors: `channel_errc::closed`,
  /// `operation_aborted`.
  template <typename CompletionToken>
  auto async_send(T value, CompletionToken&& token) {
    return initiate<void(boost::system::error_code)>(
        channel_detail::send_action<T>{std::move(value)}, token);
  }

  /// Receives the oldest item; waits for one. Handler: `void(error_code, std::optional<T>)`, with a
  /// value exactly if there is no error. Errors: `channel_errc::closed` (and nothing left),
  /// `operation_aborted`.
  template <typename CompletionToken>
  auto async_receive(CompletionToken&& token) {
    return initiate<void(boost::system::error_code, std::optional<T>)>(
        channel_detail::receive_action<T>{}, token);
  }

  /// Waits for at least one item, then appends the items there are, up to `max`, to `into`. `into`
  /// must stay untouched until completion. Handler: `void(error_code, std::size_t taken)`; errors
  /// as above. `max` 0 completes at once.
  template <typename CompletionToken>
  auto async_receive_some(std::vector<T>& into, std::size_t max, CompletionToken&& token) {
    return initiate<void(boost::system::error_code, std::size_t)>(
        channel_detail::receive_some_action<T>{{}, &into, max}, token);
  }

  // --- waiting, as coroutines ---
  //
  // The result is a value, cancellation included. The coroutine's own cancellation slot is
  // honoured. A call that can succeed at once does not suspend: a coroutine that always finds an
  // item starves the others. The channel must live until the coroutine has started.

  /// As async_send.
  boost::asio::awaitable<boost::system::error_code> send(T value) {
    return send_by({std::move(value)});
  }

  /// As async_receive.
  boost::asio::awaitable<boost::system::result<T>> receive() {
    channel_detail::receive_action<T> now;
    if (!now.attempt(*state_)) {
      auto token = boost::asio::redirect_error(boost::asio::use_awaitable, now.error);
      now.item = co_await async_receive(token);
    }
    if (now.error) co_return now.error;
    co_return std::move(*now.item);
  }

  /// As async_receive_some. `into` must live, and stay untouched, until the coroutine has ended.
  boost::asio::awaitable<boost::system::result<std::size_t>> receive_some(std::vector<T>& into,
                                                                          std::size_t max) {
    channel_detail::receive_some_action<T> now{{}, &into, max};
    if (!now.attempt(*state_)) {
      auto token = boost::asio::redirect_error(boost::asio::use_awaitable, now.error);
      now.taken = co_await async_receive_some(into, max, token);
    }
    if (now.error) co_return now.error;
    co_return now.taken;
  }

  // --- state, from any thread ---

  /// Ends sending: suspended and later sends fail with `channel_errc::closed`. Items already sent
  /// can still be received; then receives fail with `channel_errc::closed` too. Idempotent.
  void close() noexcept { state_->close(); }

  bool is_closed() const noexcept { return state_->is_closed(); }

  /// Number of items, approximate while other threads send or receive. At most `capacity()`.
  std::size_t size() const noexcept { return state_->size(); }

  std::size_t capacity() const noexcept { return state_->capacity(); }

  /// Number of suspended sends and receives, approximate. For metrics and tests.
  std::size_t waiting_senders() const noexcept { return state_->senders().waiting(); }
  std::size_t waiting_receivers() const noexcept { return state_->receivers().waiting(); }

  /// Number of records of past suspensions that wait for disposal: at most one for each operation
  /// that is suspended now, plus a small constant. For tests.
  std::size_t spent_waiters() const noexcept {
    return state_->senders().dead() + state_->receivers().dead();
  }

 private:
  boost::asio::awaitable<boost::system::error_code> send_by(channel_detail::send_action<T> now) {
    auto error = now.error;
    if (!now.attempt(*state_)) {
      auto token = boost::asio::redirect_error(boost::asio::use_awaitable, error);
      co_await initiate<void(boost::system::error_code)>(std::move(now), token);
      co_return error;
    }
    co_return now.error;
  }

  template <typename Signature, typename Action, typename CompletionToken>
  auto initiate(Action action, CompletionToken& token) {
    return boost::asio::async_initiate<CompletionToken, Signature>(
        [](auto handler, std::shared_ptr<channel_detail::state<T>> state, Action operation) {
          using handler_type = decltype(handler);
          channel_detail::operation<T, Action, handler_type>::start(
              std::move(state), std::move(operation), std::move(handler));
        },
        token, state_, std::move(action));
  }

  const std::shared_ptr<channel_detail::state<T>> state_;
};

}  // namespace rw::core
