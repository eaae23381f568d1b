// An operator in C++ with an io_context of its own: a listener, and a queue that reconciles each
// object that changed, with a backoff for what fails.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <iostream>
#include <rw/core/task_group.hpp>
#include <rw/k8s/controller/controller.hpp>
#include <rw/reactors/listener/listener.hpp>

namespace asio = boost::asio;
namespace core = rw::core;
namespace k8s = rw::k8s;

struct reconciler final : k8s::reconciler {
  asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override {
    // Here an operator reads the runtime, and does what is to be done.
    std::cout << key.ns << ": " << key.name << std::endl;
    co_return k8s::reconcile_result::done();
  }
};

/// Many events of an object while it is reconciled cause one more pass. Each key is a runtime's id,
/// and kind, namespace and name of the object there.
asio::awaitable<void> requeue(std::shared_ptr<core::channel<rw::listener::received_event>> events,
                              k8s::controller* into) {
  for (;;) {
    const auto got = co_await events->receive();
    if (got.has_error()) co_return;
    const auto& of = got->event;
    into->add({got->runtime_id, of.gvk.kind + " " + of.watched.ns + "/" + of.watched.name});
  }
}

/// The listener ends first, then what it has accepted is taken.
asio::awaitable<void> serve(rw::listener::listener* listener, core::task_group* receiving,
                            core::task_group* background) {
  co_await listener->run();
  co_await receiving->join();
  background->cancel();
}

int main(int argc, char** argv) {
  asio::io_context context;
  const auto executor = context.get_executor();
  core::real_clock clock;
  core::watchdog watchdog(clock, executor);
  core::logger log;
  core::metrics metrics;
  rw::listener::listener_options options;
  const auto port = static_cast<std::uint16_t>(argc > 1 ? std::stoi(argv[1]) : 8082);
  options.address = {asio::ip::address_v4::loopback(), port};
  options.component = "lifecycle-manager";
  auto [listener, events] =
      rw::listener::register_component(executor, options, {clock, watchdog, log, metrics});
  reconciler reconciling;
  k8s::controller controller(executor, {.name = "objects"}, reconciling,
                             {clock, watchdog, log, metrics, core::make_random_source()});
  core::task_group background(executor);
  core::task_group receiving(executor);
  background.spawn(watchdog.run());
  background.spawn(controller.run());
  receiving.spawn(requeue(events, &controller));
  asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&l = *listener](boost::system::error_code, int) { l.drain(); });
  asio::co_spawn(context, serve(listener.get(), &receiving, &background), asio::detached);
  std::cout << "port " << listener->address().port() << std::endl;
  context.run();
}
