#pragma once

#include "rw/k8s/devserver/server.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/dev/settings.hpp"

namespace rw::dev {

/// `runtime-watcher-dev api-server`: the embedded API server on its own, for trials and tests.
/// SIGUSR1 saves the clusters in memory; SIGUSR2 restores them and closes all connections, as when
/// etcd is restored without --bump-revision.
class api_server_app final : public cli::app {
 public:
  api_server_app(cli::services& with, const api_server_settings& settings);

  boost::asio::awaitable<int> run() override;

 private:
  void write_kubeconfigs();
  boost::asio::awaitable<void> save_and_restore();

  const api_server_settings settings_;
  k8s::devserver::server server_;
};

}  // namespace rw::dev
