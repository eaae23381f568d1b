#pragma once

#include "rw/k8s/devserver/server.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/dev/settings.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace rw::dev {

/// One API server of the system.
struct cluster {
  std::string name = {};        ///< "kcp", or the runtime's
  std::string kubeconfig = {};  ///< self-contained
  std::string file = {};        ///< path of that kubeconfig
  bool embedded = true;
};

/// The API servers: KCP's and those of the runtimes, in this process unless the settings name an
/// external one. On one executor.
class clusters {
 public:
  /// Binds, and writes the kubeconfigs to `settings.dir`. `services` resolves the Services of the
  /// embedded servers' webhooks, `pods` the Pods that they proxy to. Throws an exception that names
  /// the invalid setting.
  clusters(cli::services& with, const dev_settings& settings,
           k8s::devserver::service_resolver services, k8s::devserver::pod_resolver pods);

  const cluster& kcp() const noexcept { return kcp_; }
  const std::vector<cluster>& runtimes() const noexcept { return runtimes_; }

  /// Makes the embedded API server of a runtime accept requests and never respond.
  void hang(const std::string& name);

  /// Serves until drained or cancelled.
  boost::asio::awaitable<void> run() { return server_.run(); }
  void drain() { server_.drain(); }
  boost::asio::ip::tcp::endpoint address() const { return server_.address(); }

 private:
  cluster add(const std::string& name, std::string outside);

  const std::string dir_;
  k8s::devserver::server server_;
  cluster kcp_;
  std::vector<cluster> runtimes_;
};

}  // namespace rw::dev
