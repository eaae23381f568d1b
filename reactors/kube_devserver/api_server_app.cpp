#include "rw/reactors/kube_devserver/api_server_app.hpp"

#include "rw/k8s/devserver/server_memory.hpp"
#include "rw/reactors/cli/shell_word.hpp"
#include "rw/reactors/cli/write_file.hpp"

#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace rw::kube_devserver {

using namespace cli;
namespace {

namespace asio = boost::asio;

constexpr auto drain_timeout = std::chrono::seconds(5);
constexpr std::size_t most_named = 10;  // clusters with a log line each

}  // namespace

api_server_plan plan_of(const api_server_settings& settings) {
  api_server_plan plan{.options = {}, .clusters = settings.clusters, .dir = settings.dir};
  plan.controllers = settings.controllers;
  plan.running_deployments = settings.running_deployments;
  if (settings.cluster_count > 0) plan.clusters.clear();
  for (std::size_t i = 1; i <= settings.cluster_count; ++i) {
    plan.clusters.push_back("cluster-" + std::to_string(i));
  }
  auto& options = plan.options;
  options.name = "api-server";
  options.address = listening_address(settings.address, "--address");
  options.host_names = settings.host_names;
  options.history = settings.history;
  if (settings.http1) options.protocols = {"http/1.1"};
  options.storage_delay = settings.storage_delay;
  options.authorization = settings.authorization == "rbac";
  options.refuse_unsupported = settings.behaviour.refuse_unsupported;
  options.version = settings.behaviour.version;
  options.root_cluster = plan.clusters.front();
  options.test_control = true;
  return plan;
}

api_server_app::api_server_app(services& with, api_server_plan plan)
    : app(with),
      plan_(std::move(plan)),
      server_(with.executor, plan_.options, {with.clock, with.watchdog, with.log, with.metrics}) {
  for (const auto& cluster : plan_.clusters) {
    try {
      server_.add_cluster(cluster);
    } catch (const std::invalid_argument& e) {
      throw setting_error("--cluster " + cluster + ": " + e.what());
    }
    auto& made = *server_.memory()->clusters.at(cluster);
    made.controllers = plan_.controllers;
    made.running_deployments = plan_.running_deployments;
    for (const auto& token : plan_.tokens) {
      server_.add_token(cluster, token.text, token.user, token.groups);
    }
  }
  if (!plan_.dir.empty()) write_kubeconfigs();
}

void api_server_app::write_kubeconfigs() {
  write_file(plan_.dir, "ca.crt", server_.ca_certificate(), 0644);
  for (const auto& cluster : plan_.clusters) {
    write_file(plan_.dir, cluster + ".kubeconfig", server_.kubeconfig(cluster), 0600);
  }
}

/// SIGUSR1 saves all clusters, SIGUSR2 restores them.
asio::awaitable<void> api_server_app::save_and_restore() {
  asio::signal_set signals(services_.executor, SIGUSR1, SIGUSR2);
  std::map<std::string, std::shared_ptr<const k8s::devserver::cluster_backup>> backups;
  for (;;) {
    const int signal = co_await signals.async_wait(asio::use_awaitable);
    for (const auto& cluster : plan_.clusters) {
      auto& backup = backups[cluster];
      if (signal == SIGUSR1) backup = server_.back_up(cluster);
      if (signal == SIGUSR2 && backup) server_.restore(cluster, *backup, true);
    }
    if (signal == SIGUSR2) server_.drop_connections();
    services_.log.info(signal == SIGUSR1 ? "clusters saved" : "clusters restored");
  }
}

void api_server_app::log_clusters() {
  if (!plan_.ineffective.empty()) {
    std::string flags;
    for (const auto& flag : plan_.ineffective) flags += (flags.empty() ? "" : " ") + flag;
    services_.log.warning("flags without effect", {{"flags", flags}});
  }
  if (plan_.dir.empty()) return;
  if (plan_.clusters.size() > most_named) {
    services_.log.info("clusters are up",
                       {{"clusters", plan_.clusters.size()}, {"kubeconfigs", plan_.dir}});
    return;
  }
  for (const auto& cluster : plan_.clusters) {
    const auto file = plan_.dir + "/" + cluster + ".kubeconfig";
    services_.log.info("cluster is up", {{"cluster", cluster},
                                         {"url", server_.url(cluster)},
                                         {"kubeconfig", file},
                                         {"try", "kubectl --kubeconfig " + cli::shell_word(file) +
                                                     " get namespaces"}});
  }
}

asio::awaitable<int> api_server_app::run() {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group serving(services_.executor, fail_on_exception());
  background.spawn(services_.watchdog.run());
  background.spawn(save_and_restore());
  serving.spawn(server_.run());
  log_listening(services_.log, "api-server", server_.address());
  log_clusters();
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

}  // namespace rw::kube_devserver
