// An operator in C++ with an io_context of its own: a listener, and a queue that reconciles each
// object that changed, with a backoff for what fails.
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <iostream>
#include <rw/core/task_group.hpp>
#include <rw/k8s/controller/controller.hpp>
#include <rw/reactors/intake/serve.hpp>

namespace asio = boost::asio;
namespace core = rw::core;
namespace k8s = rw::k8s;

struct reconciler final : k8s::reconciler {
  asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override {
    // Here an operator reads the runtime, and does what is to be done; "resync": of all of it.
    std::cout << key.ns << ": " << key.name << std::endl;
    co_return k8s::reconcile_result::done();
  }
};

/// The listener ends first, with what it has accepted in the queue; then the queue, when it is
/// empty.
asio::awaitable<void> serve(asio::any_io_executor executor, std::uint16_t port) {
  core::real_clock clock;
  core::logger log;
  core::metrics metrics;
  reconciler reconciling;
  k8s::controller controller(
      executor, {.name = "objects"}, reconciling,
      {.clock = clock, .log = log, .metrics = metrics, .random = core::make_random_source()});
  // Many events of an object while it is reconciled cause one more pass. Each key is a runtime's
  // id, and kind, namespace and name of the object there.
  const auto requeue = [&controller](rw::listener::received_event got) -> asio::awaitable<void> {
    const auto& of = got.event;
    const auto object = of.gvk.kind + " " + of.watched.ns + "/" + of.watched.name;
    controller.add({got.runtime_id, got.resync ? "resync" : object});
    co_return;
  };
  rw::listener::listener_options options;
  options.address = {asio::ip::address_v4::loopback(), port};
  options.component = "lifecycle-manager";
  options.resyncs = true;
  core::task_group background(executor);
  background.spawn(controller.run());
  const auto print = [](const auto& at) { std::cout << "port " << at.port() << std::endl; };
  co_await rw::listener::serve(executor, options, requeue, {&clock, &log, &metrics, print});
  background.cancel();
  co_await background.join();
}

int main(int argc, char** argv) {
  asio::io_context context;
  asio::cancellation_signal stop;
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&stop](auto, int) { stop.emit(asio::cancellation_type::terminal); });
  const auto port = static_cast<std::uint16_t>(argc > 1 ? std::stoi(argv[1]) : 8082);
  asio::co_spawn(context, serve(context.get_executor(), port),
                 asio::bind_cancellation_slot(stop.slot(), [&signals](std::exception_ptr failure) {
                   signals.cancel();
                   if (failure) std::rethrow_exception(failure);
                 }));
  context.run();
}
