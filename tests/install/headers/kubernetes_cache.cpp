#include "api_server.hpp"
#include <rw/core/wake.hpp>
#include <rw/k8s/cache/api_source.hpp>
#include <rw/k8s/cache/informer.hpp>
#include <rw/k8s/cache/list_watch.hpp>
#include <rw/k8s/cache/own_writes.hpp>
#include <rw/k8s/cache/store.hpp>

namespace core = rw::core;
namespace k8s = rw::k8s;

namespace {

struct counting final : k8s::object_sink {
  void begin_listing() override {}
  void put(k8s::object) override { ++objects; }
  void remove(const k8s::object&) override {}
  void end_listing() override { listed.set(); }
  void after_input() override {}

  explicit counting(asio::any_io_executor executor) : listed(executor) {}
  core::wake listed;
  int objects = 0;
};

asio::awaitable<void> watches(api_server* on) {
  const auto executor = on->api.get_executor();
  boost::json::value object = {
      {"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", "m"}}}};
  const auto created = co_await on->api.create(config_maps, std::move(object));
  EXPECT(created.has_value());

  k8s::informer informer(on->api, config_maps, {},
                         {on->clock, on->log, on->metrics, core::make_random_source()});
  counting sink(executor);
  k8s::list_watch watch(k8s::source_of(on->api), config_maps, {},
                        {on->clock, on->log, on->metrics, core::make_random_source()}, sink);
  core::task_group tasks(executor);
  tasks.spawn(informer.run());
  tasks.spawn(watch.run());
  const bool synced = co_await informer.wait_synced();
  EXPECT(synced && informer.objects().get("default", "m"));
  const auto listed = co_await sink.listed.wait();
  EXPECT(!listed && sink.objects > 0);

  k8s::own_writes own(on->clock);
  own.wrote(*created);
  EXPECT(own.size() == 1);
  tasks.cancel();
  co_await tasks.join();
}

}  // namespace

void use_kubernetes_cache() {
  api_server server;
  server.run(watches(&server));
  k8s::store store;
  store.put(k8s::object::from_text(R"({"metadata":{"name":"n"}})"));
  EXPECT(store.size() == 1);
}
