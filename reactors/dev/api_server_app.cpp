#include "rw/reactors/dev/api_server_app.hpp"

#include "rw/tls/files.hpp"

#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <map>
#include <memory>
#include <string>

namespace rw::dev {

using namespace cli;
namespace {

namespace asio = boost::asio;

constexpr auto drain_timeout = std::chrono::seconds(5);

k8s::devserver::server_options options_of(const api_server_settings& settings) {
  k8s::devserver::server_options result;
  result.name = "api-server";
  result.address = listening_address(settings.address, "--address");
  result.host_names = settings.host_names;
  result.history = settings.history;
  if (settings.http1) result.protocols = {"http/1.1"};
  result.storage_delay = settings.storage_delay;
  result.authorization = settings.authorization == "rbac";
  return result;
}

}  // namespace

api_server_app::api_server_app(services& with, const api_server_settings& settings)
    : app(with),
      settings_(settings),
      server_(with.executor, options_of(settings),
              {with.clock, with.watchdog, with.log, with.metrics}) {
  for (const auto& cluster : settings.clusters) {
    try {
      server_.add_cluster(cluster);
    } catch (const std::invalid_argument& e) {
      throw setting_error("--cluster " + cluster + ": " + e.what());
    }
  }
  write_kubeconfigs();
}

void api_server_app::write_kubeconfigs() {
  std::vector<tls::output_file> files{{"ca.crt", server_.ca_certificate(), 0644}};
  for (const auto& cluster : settings_.clusters) {
    files.push_back({cluster + ".kubeconfig", server_.kubeconfig(cluster), 0600});
  }
  const auto written = tls::write_files(settings_.dir, files);
  if (written.has_error()) throw setting_error("--dir: " + written.error().message());
}

/// SIGUSR1 saves all clusters, SIGUSR2 restores them.
asio::awaitable<void> api_server_app::save_and_restore() {
  asio::signal_set signals(services_.executor, SIGUSR1, SIGUSR2);
  std::map<std::string, std::shared_ptr<const k8s::devserver::cluster_backup>> backups;
  for (;;) {
    const int signal = co_await signals.async_wait(asio::use_awaitable);
    for (const auto& cluster : settings_.clusters) {
      auto& backup = backups[cluster];
      if (signal == SIGUSR1) backup = server_.back_up(cluster);
      if (signal == SIGUSR2 && backup) server_.restore(cluster, *backup, true);
    }
    if (signal == SIGUSR2) server_.drop_connections();
    services_.log.info(signal == SIGUSR1 ? "clusters saved" : "clusters restored");
  }
}

asio::awaitable<int> api_server_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group serving(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  background.spawn(save_and_restore());
  serving.spawn(server_.run());
  log_listening(services_.log, "api-server", server_.address());
  for (const auto& cluster : settings_.clusters) {
    const auto file = settings_.dir + "/" + cluster + ".kubeconfig";
    services_.log.info("cluster is up",
                       {{"cluster", cluster},
                        {"url", server_.url(cluster)},
                        {"kubeconfig", file},
                        {"try", "kubectl --kubeconfig " + file + " get namespaces"}});
  }
  co_await stop_.wait();
  services_.log.info("stopping");
  server_.drain();
  co_await join_by(serving, services_.clock.now() + drain_timeout);
  background.cancel();
  co_await background.join();
  rethrow_failure();
  services_.log.info("stopped");
  co_return 0;
}

}  // namespace rw::dev
