#pragma once

#include "k8s/devserver/server.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/dev/settings.hpp"

namespace rw::dev {

/// `runtime-watcher-dev api-server`: the embedded API server on its own, for trials and tests.
class api_server_app final : public cli::app {
 public:
  api_server_app(cli::services& with, const api_server_settings& settings);

  boost::asio::awaitable<int> run() override;

 private:
  void write_kubeconfigs();

  const api_server_settings settings_;
  k8s::devserver::server server_;
};

}  // namespace rw::dev
