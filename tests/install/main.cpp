// An operator that embeds a listener in its own process: it registers its component, runs the
// listener on an io_context of its own, and takes events in a thread of its own. Ends at once,
// since nobody sends anything: it shows that the headers and libraries that are installed are
// enough.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <core/clock.hpp>
#include <core/log.hpp>
#include <core/metrics.hpp>
#include <core/task_group.hpp>
#include <core/watchdog.hpp>
#include <exception>
#include <iostream>
#include <reactors/listener/listener.hpp>
#include <thread>

namespace asio = boost::asio;

namespace {

struct host {
  asio::io_context context;
  rw::core::real_clock clock;
  rw::core::watchdog watchdog{clock, context.get_executor()};
  rw::core::logger log;
  rw::core::metrics metrics;
};

/// Runs the listener, and ends it once it is up.
asio::awaitable<void> serve(host& in, rw::listener::listener& listener) {
  rw::core::task_group background(in.context.get_executor());
  rw::core::task_group serving(in.context.get_executor());
  background.spawn(in.watchdog.run());
  serving.spawn(listener.run());
  listener.drain();
  co_await serving.join();
  background.cancel();
  co_await background.join();
}

}  // namespace

int main() {
  try {
    host in;
    rw::listener::listener_options options;
    options.address = {asio::ip::address_v4::loopback(), 0};
    options.component = "lifecycle-manager";
    options.verify = [](const rw::http::request&, const rw::watch_event& event,
                        const rw::listener::sender&) { return event.watched.ns == "kyma-system"; };
    auto registered = rw::listener::register_component(in.context.get_executor(), options,
                                                       {in.clock, in.watchdog, in.log, in.metrics});
    std::cout << "listening on port " << registered.runnable->address().port() << '\n';

    int requeued = 0;
    std::jthread reconciler([&requeued, events = registered.events] {
      for (;;) {
        std::promise<std::optional<rw::listener::received_event>> received;
        events->async_receive(
            [&](boost::system::error_code, std::optional<rw::listener::received_event> one) {
              received.set_value(std::move(one));
            });
        const auto one = received.get_future().get();
        if (!one) return;  // the channel is closed, and empty
        ++requeued;
        std::cout << one->runtime_id << ": " << one->event.watched.name << '\n';
      }
    });

    auto served = asio::co_spawn(in.context, serve(in, *registered.runnable), asio::use_future);
    in.context.run_for(std::chrono::seconds(20));
    served.get();
    reconciler.join();
    std::cout << "requeued " << requeued << " objects\n";
    return requeued == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
