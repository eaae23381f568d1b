#include "api_server.hpp"
#include <rw/k8s/client/client.hpp>
#include <rw/k8s/client/client_pool.hpp>
#include <rw/k8s/client/fence.hpp>
#include <rw/k8s/config/config.hpp>

namespace k8s = rw::k8s;

namespace {

asio::awaitable<void> calls(api_server* on) {
  const auto version = co_await on->api.server_version();
  EXPECT(version.has_value());
  const auto absent = co_await on->api.get(config_maps, {"default", "absent"});
  EXPECT(absent.has_error() && absent.error().is(k8s::errc::not_found));
  k8s::client_pool pool(on->api.get_executor(),
                        {.name = "pool", .client = options(), .local = k8s::local_servers::allowed},
                        on->environment());
  {
    const auto pooled = pool.get("kcp", on->server.kubeconfig("kcp"));
    EXPECT(pooled.has_value() && pool.size() == 1);
    const auto same = co_await (*pooled)->get(config_maps, {"default", "absent"});
    EXPECT(same.has_error());
  }  // released: `close` waits for that
  co_await pool.close();
}

}  // namespace

void use_kubernetes_client() {
  api_server server;
  server.run(calls(&server));
  k8s::fence fence(server.clock);
  EXPECT(!fence.open());
  EXPECT(k8s::load_kubeconfig({"/does/not/exist"}).has_error());
}
