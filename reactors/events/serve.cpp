#include "rw/reactors/events/serve.hpp"

#include "rw/core/backoff.hpp"
#include "rw/core/join_by.hpp"
#include "rw/core/wake.hpp"
#include "rw/reactors/events/webhook_service.hpp"

#include <boost/asio/this_coro.hpp>

#include <exception>
#include <stdexcept>
#include <utility>

namespace rw::webhook {

namespace asio = boost::asio;

asio::awaitable<std::size_t> serve(asio::any_io_executor executor, serve_options options,
                                   host_objects brought) {
  core::real_clock own_clock;
  core::logger own_log;
  core::metrics own_metrics;
  auto& clock = brought.clock != nullptr ? *brought.clock : own_clock;
  auto& log = brought.log != nullptr ? *brought.log : own_log;
  auto& metrics = brought.metrics != nullptr ? *brought.metrics : own_metrics;
  core::watchdog watchdog(clock, executor);
  if (options.version.empty()) options.version = RW_VERSION;
  auto credentials = tls::credentials::load(options.files);
  if (!credentials) throw std::invalid_argument("files: " + credentials.error().message());
  if (options.kcp.host.empty() || options.kcp.port == 0) {
    throw std::invalid_argument("kcp: the gateway's host and port are needed");
  }
  auto api = make_api_client(executor, options, {clock, watchdog, log, metrics});
  if (!api) throw std::invalid_argument("kubeconfig: " + api.error().message);
  webhook_service service(executor, options, std::move(*credentials), std::move(*api),
                          {clock, watchdog, log, metrics});
  if (brought.on_listening) brought.on_listening(service.address());

  core::wake ending(executor);
  std::exception_ptr failure;
  const auto fail = [&](std::exception_ptr thrown) {
    if (!failure) failure = std::move(thrown);
    ending.set();
  };
  core::task_group background(executor, fail);
  core::task_group serving(executor, fail);
  background.spawn(watchdog.run());
  service.start(background, serving);

  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await ending.wait();
  // It ends in order from here, whatever comes.
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  service.stop();
  co_await core::join_all(serving);
  co_await service.close();
  background.cancel();
  co_await core::join_all(background);
  co_await asio::this_coro::reset_cancellation_state(asio::enable_terminal_cancellation());
  co_await asio::this_coro::throw_if_cancelled(throws);
  if (failure) std::rethrow_exception(failure);
  co_return service.undelivered();
}

}  // namespace rw::webhook
