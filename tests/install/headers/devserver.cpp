#include "use.hpp"
#include <rw/k8s/devserver/faults.hpp>
#include <rw/k8s/devserver/server.hpp>
#include <rw/k8s/devserver/service_route.hpp>

namespace devserver = rw::k8s::devserver;

void use_devserver() {
  boost::asio::io_context context;
  rw::core::real_clock clock;
  rw::core::watchdog watchdog(clock, context.get_executor());
  rw::core::logger log(rw::core::log_level::error);
  rw::core::metrics metrics;
  devserver::server_options options;
  options.services = [](std::string_view, std::string_view) { return devserver::service_route{}; };
  devserver::server server(context.get_executor(), options, {clock, watchdog, log, metrics});
  server.add_cluster("kcp");
  server.faults("kcp").decide = [](const std::string&, const std::string&) {
    return devserver::fault{};
  };
  EXPECT(server.url("kcp").ends_with("/clusters/kcp"));
  EXPECT(server.kubeconfig("kcp").find(server.url("kcp")) != std::string::npos);
}
