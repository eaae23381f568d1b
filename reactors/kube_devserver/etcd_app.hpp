#pragma once

#include "rw/core/http/server.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/kube_devserver/settings.hpp"

#include <memory>

namespace rw::kube_devserver {

/// A stand-in for etcd that holds nothing: it responds to /health, as envtest requires of etcd
/// before it starts kube-apiserver.
class etcd_app final : public cli::app, private http::handler {
 public:
  /// Binds and listens. Throws `cli::setting_error` for an invalid URL.
  etcd_app(cli::services& with, const etcd_settings& settings);

  boost::asio::awaitable<int> run() override;

 private:
  std::size_t body_limit(const http::request&) const override { return 0; }
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;

  const std::unique_ptr<core::transport> transport_;
  http::server server_;
};

}  // namespace rw::kube_devserver
