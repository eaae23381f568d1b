// Several threads run one io_context, without a strand, and what is made for one is used by all of
// them: hostile client|controller|listener. The library ends the process; by itself it ends with 1.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <chrono>
#include <functional>
#include <rw/k8s/client/client.hpp>
#include <rw/k8s/controller/controller.hpp>
#include <rw/reactors/intake/listener.hpp>
#include <string_view>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace core = rw::core;
namespace k8s = rw::k8s;

struct nothing final : k8s::reconciler {
  asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key) override {
    co_return k8s::reconcile_result::done();
  }
};

/// A request without a name, which is not sent.
asio::awaitable<void> ask(k8s::client* api) {
  const k8s::resource_type maps{{"", "v1", "ConfigMap"}, "configmaps"};
  co_await api->get(maps, {});
}

int main(int, char** argv) {
  const std::string_view part = argv[1];
  asio::io_context context;
  core::real_clock clock;
  core::logger log;
  core::metrics metrics;
  k8s::config config;
  config.server = "https://127.0.0.1:1";
  k8s::client api(context.get_executor(), config,
                  {.user_agent = "hostile", .field_manager = "hostile"},
                  {.clock = clock, .log = log, .metrics = metrics});
  nothing reconciler;
  k8s::controller controller(
      context.get_executor(), {.name = "hostile"}, reconciler,
      {.clock = clock, .log = log, .metrics = metrics, .random = core::make_random_source()});
  rw::listener::listener_options options;
  options.address = {asio::ip::address_v4::loopback(), 0};
  options.component = "hostile";
  rw::listener::listener listener(context.get_executor(), options,
                                  {.clock = clock, .log = log, .metrics = metrics});

  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::function<void()> use = [&] {
    for (int i = 0; i < 1000; ++i) {
      if (part == "client") asio::co_spawn(context, ask(&api), asio::detached);
      if (part == "controller") controller.add({"default", std::to_string(i)});
      if (part == "listener") listener.pending();
    }
    if (std::chrono::steady_clock::now() < end) asio::post(context, use);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    asio::post(context, use);
    threads.emplace_back([&context] { context.run(); });
  }
  for (auto& each : threads) each.join();
  return 1;
}
