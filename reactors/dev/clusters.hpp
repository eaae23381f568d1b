#pragma once

#include "k8s/devserver/server.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/dev/settings.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace rw::dev {

/// One API server of the system.
struct cluster {
  std::string name = {};        ///< "kcp", or the runtime's
  std::string kubeconfig = {};  ///< whole in itself
  std::string file = {};        ///< where that was written
  bool embedded = true;
};

/// The API servers: KCP's and those of the runtimes, in this process, except for those that
/// somebody else runs. On one executor.
class clusters {
 public:
  /// Binds, and writes the kubeconfigs to `settings.dir`. `services` finds what the embedded
  /// servers' webhooks name. Throws what names the setting that can't be used.
  clusters(cli::services& with, const dev_settings& settings,
           k8s::devserver::service_resolver services);

  const cluster& kcp() const noexcept { return kcp_; }
  const std::vector<cluster>& runtimes() const noexcept { return runtimes_; }

  /// From now on the embedded API server of a runtime takes requests and never answers.
  void hang(const std::string& name);

  /// Serves until drained or cancelled.
  boost::asio::awaitable<void> run() { return server_.run(); }
  void drain() { server_.drain(); }
  boost::asio::ip::tcp::endpoint address() const { return server_.address(); }

 private:
  cluster add(const std::string& name, const std::string& outside);

  const std::string dir_;
  k8s::devserver::server server_;
  cluster kcp_;
  std::vector<cluster> runtimes_;
};

}  // namespace rw::dev
