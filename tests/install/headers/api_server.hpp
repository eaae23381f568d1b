#pragma once

#include "use.hpp"
#include <rw/core/task_group.hpp>
#include <rw/k8s/client/client.hpp>
#include <rw/k8s/devserver/server.hpp>

namespace asio = boost::asio;

inline const rw::k8s::resource_type config_maps{{"", "v1", "ConfigMap"}, "configmaps"};

inline rw::k8s::client_options options() {
  rw::k8s::client_options out;
  out.user_agent = "host/1.0";
  out.field_manager = "host";
  return out;
}

/// An API server in memory, and a client of it.
struct api_server {
  asio::io_context context;
  rw::core::real_clock clock;
  rw::core::watchdog watchdog{clock, context.get_executor()};
  rw::core::logger log{rw::core::log_level::error};
  rw::core::metrics metrics;
  rw::k8s::devserver::server server{context.get_executor(), {}, {clock, watchdog, log, metrics}};
  rw::k8s::client api{context.get_executor(), with_cluster(), options(), environment()};

  rw::k8s::client_environment environment() { return {clock, watchdog, log, metrics}; }

  rw::k8s::config with_cluster() {
    server.add_cluster("kcp");
    return rw::k8s::parse_kubeconfig(server.kubeconfig("kcp"), "kcp", "/").value();
  }

  asio::awaitable<void> with_background(asio::awaitable<void> body) {
    rw::core::task_group background(context.get_executor());
    background.spawn(watchdog.run());
    background.spawn(server.run());
    co_await std::move(body);
    co_await api.close();
    background.cancel();
    co_await background.join();
  }
  void run(asio::awaitable<void> body) { ::run(context, with_background(std::move(body))); }
};
