#pragma once

#include "rw/k8s/devserver/server.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/kube_devserver/settings.hpp"

#include <string>
#include <vector>

namespace rw::kube_devserver {

/// What an API server is made of, whichever flags said it.
struct api_server_plan {
  struct token {
    std::string text;
    std::string user;
    std::vector<std::string> groups;
  };

  k8s::devserver::server_options options;
  std::vector<std::string> clusters;
  std::string dir = {};                       ///< where kubeconfigs are written; empty: nowhere
  std::vector<token> tokens = {};             ///< for all clusters
  bool controllers = true;                    ///< k8s::devserver::cluster::controllers
  bool running_deployments = false;           ///< likewise
  std::vector<std::string> ineffective = {};  ///< flags without effect, to be logged
};

// Throw `cli::setting_error` that names the flag.
api_server_plan plan_of(const api_server_settings& settings);
/// Reads the files that the settings name; writes apiserver.crt and apiserver.key if there is no
/// certificate.
api_server_plan plan_of(const kube_apiserver_settings& settings);

/// The embedded API server on its own, for trials and tests. SIGUSR1 saves the clusters in memory;
/// SIGUSR2 restores them and closes all connections, as when etcd is restored without
/// --bump-revision.
class api_server_app final : public cli::app {
 public:
  api_server_app(cli::services& with, api_server_plan plan);

  boost::asio::awaitable<int> run() override;

 private:
  void write_kubeconfigs();
  void log_clusters();
  boost::asio::awaitable<void> save_and_restore();

  const api_server_plan plan_;
  k8s::devserver::server server_;
};

}  // namespace rw::kube_devserver
