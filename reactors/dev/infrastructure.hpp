#pragma once

#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/dev/clusters.hpp"
#include "rw/reactors/dev/gateway/dev_gateway.hpp"
#include "rw/reactors/dev/issuer/dev_issuer.hpp"
#include "rw/reactors/dev/settings.hpp"

#include <boost/asio/awaitable.hpp>

#include <exception>

namespace rw::dev {

/// The parts of a control plane besides the manager: an issuer of certificates, and a gateway. On
/// one executor.
class infrastructure {
 public:
  /// Binds the gateway. Throws an exception that names the invalid setting.
  infrastructure(cli::services& with, const dev_settings& settings, const cluster& kcp,
                 dev_gateway::service_resolver backends);

  /// Returns the client of KCP, for other uses. The caller closes it once they have ended.
  k8s::client& kcp() noexcept { return kcp_; }
  /// Returns the gateway's address.
  boost::asio::ip::tcp::endpoint gateway() const { return gateway_.address(); }

  /// Returns true if there is a root certificate.
  bool has_root() const;
  /// Returns true if the gateway has a certificate to serve with, which the manager issues.
  bool serves() const { return !gateway_.certificate().empty(); }

  /// Runs until drained or cancelled.
  boost::asio::awaitable<void> run();
  /// Ends the gateway gracefully, and then the rest.
  void drain() { gateway_.drain(); }

 private:
  k8s::client kcp_;
  k8s::informer virtual_services_;
  k8s::informer secrets_;
  k8s::informer certificates_;
  dev_issuer::issuer_simulator issuer_;
  dev_gateway::gateway gateway_;
  std::exception_ptr failure_;
};

}  // namespace rw::dev
