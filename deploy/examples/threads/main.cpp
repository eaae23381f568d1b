// A host that does not use Asio: its threads take events from the channel, which blocks nobody, and
// wait for more. The library has one thread.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <csignal>
#include <future>
#include <iostream>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <rw/core/task_group.hpp>
#include <rw/reactors/intake/listener.hpp>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using rw::listener::received_event;
using event_channel = rw::core::channel<received_event>;

/// Waits for an event; none if the listener has ended, and all events are taken.
std::optional<received_event> next(event_channel& events) {
  std::promise<std::optional<received_event>> received;
  auto result = received.get_future();
  events.async_receive([&received](boost::system::error_code, std::optional<received_event> one) {
    received.set_value(std::move(one));
  });
  return result.get();
}

asio::awaitable<void> serve(rw::listener::listener* listener, rw::core::watchdog* watchdog) {
  rw::core::task_group background(co_await asio::this_coro::executor);
  background.spawn(watchdog->run());
  co_await listener->run();
  background.cancel();
  co_await background.join();
}

int main(int argc, char** argv) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // of all threads: main waits for it

  asio::io_context context;
  rw::core::real_clock clock;
  rw::core::watchdog watchdog(clock, context.get_executor());
  rw::core::logger log;
  rw::core::metrics metrics;
  rw::listener::listener_options options;
  const auto port = static_cast<std::uint16_t>(argc > 1 ? std::stoi(argv[1]) : 8082);
  options.address = {asio::ip::address_v4::loopback(), port};
  options.component = "lifecycle-manager";
  options.resyncs = true;
  auto [listener, events] = rw::listener::register_component(context.get_executor(), options,
                                                             {clock, watchdog, log, metrics});
  auto served = asio::co_spawn(context, serve(listener.get(), &watchdog), asio::use_future);
  std::jthread library([&context] { context.run(); });

  std::mutex printing;
  std::vector<std::jthread> reconcilers;
  for (int i = 0; i < 2; ++i) {
    reconcilers.emplace_back([&printing, from = events] {
      while (const auto one = next(*from)) {
        const std::lock_guard lock(printing);
        if (one->resync) {  // here an operator looks at everything of the runtime
          std::cout << one->runtime_id << ": resync" << std::endl;
          continue;
        }
        std::cout << one->runtime_id << ": " << one->event.gvk.kind << ' ' << one->event.watched.ns
                  << '/' << one->event.watched.name << std::endl;
      }
    });
  }
  std::cout << "port " << listener->address().port() << std::endl;
  int signal = 0;
  sigwait(&ends, &signal);
  listener->drain();  // from any thread
  served.get();
}
