#pragma once

#include "k8s/cache/informer.hpp"
#include "k8s/client/client.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/dev/clusters.hpp"
#include "reactors/dev/gateway/dev_gateway.hpp"
#include "reactors/dev/issuer/dev_issuer.hpp"
#include "reactors/dev/settings.hpp"

#include <boost/asio/awaitable.hpp>

#include <exception>

namespace rw::dev {

/// What a control plane has beside the manager: somebody who issues certificates, and a gateway. On
/// one executor.
class infrastructure {
 public:
  /// Binds the gateway. Throws what names the setting that can't be used.
  infrastructure(cli::services& with, const dev_settings& settings, const cluster& kcp,
                 dev_gateway::service_resolver backends);

  /// KCP, for what else is to be done there. To be closed once all of it has ended.
  k8s::client& kcp() noexcept { return kcp_; }
  /// Where the gateway is.
  boost::asio::ip::tcp::endpoint gateway() const { return gateway_.address(); }

  /// True if there is a root certificate.
  bool has_root() const;
  /// True if the gateway has a certificate to serve with, which the manager gives it.
  bool serves() const { return !gateway_.certificate().empty(); }

  /// Runs until drained or cancelled.
  boost::asio::awaitable<void> run();
  /// The gateway ends in order, and then the rest.
  void drain() { gateway_.drain(); }

 private:
  k8s::client kcp_;
  k8s::informer virtual_services_;
  k8s::informer secrets_;
  k8s::informer certificates_;
  dev_issuer::issuer issuer_;
  dev_gateway::gateway gateway_;
  std::exception_ptr failure_;
};

}  // namespace rw::dev
