#include "rw/reactors/intake/serve.hpp"

#include "rw/core/task_group.hpp"
#include "rw/core/within.hpp"

#include <boost/asio/this_coro.hpp>

namespace rw::listener {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> deliver(core::channel<received_event>* events,
                              const event_handler* on_event) {
  for (;;) {
    auto event = co_await events->receive();
    if (event.has_error()) co_return;
    co_await (*on_event)(std::move(*event));
  }
}

/// Waits for both groups, whose failures are taken by their handlers.
asio::awaitable<bool> join(core::task_group* intake, core::task_group* delivery) {
  co_await asio::this_coro::throw_if_cancelled(false);
  for (auto* const group : {intake, delivery}) {
    try {
      co_await group->join();
    } catch (const boost::system::system_error&) {  // cancelled at the limit, and then joined
    }
  }
  co_return true;
}

}  // namespace

asio::awaitable<void> serve(asio::any_io_executor executor, listener_options options,
                            event_handler on_event, host_parts parts) {
  core::real_clock own_clock;
  core::logger own_log;
  core::metrics own_metrics;
  auto& clock = parts.clock != nullptr ? *parts.clock : own_clock;
  auto& log = parts.log != nullptr ? *parts.log : own_log;
  auto& metrics = parts.metrics != nullptr ? *parts.metrics : own_metrics;
  const auto limit = 2 * options.drain_requests;
  const auto made = register_component(executor, std::move(options),
                                       {.clock = clock, .log = log, .metrics = metrics});

  core::wake ending(executor);
  std::exception_ptr failure;
  const auto fail = [&](std::exception_ptr thrown) {
    if (!failure) failure = std::move(thrown);
    made.events->close();  // it may have no reader any more
    ending.set();
  };
  core::task_group intake(executor, fail);
  core::task_group delivery(executor, fail);
  delivery.spawn(deliver(made.events.get(), &on_event));
  intake.spawn(made.runnable->run());
  if (parts.on_listening) parts.on_listening(made.runnable->address());

  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await ending.wait();
  // It ends in order from here, whatever comes.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  made.runnable->drain();
  const auto until = clock.now() + limit;
  auto running = join(&intake, &delivery);
  co_await core::within(clock, until, std::move(running));
  co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace rw::listener
