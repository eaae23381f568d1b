#pragma once

#include "reactors/cli/app.hpp"
#include "reactors/cli/listen_app.hpp"
#include "reactors/cli/settings.hpp"
#include "reactors/cli/webhook_app.hpp"

#include <memory>

namespace rw::cli {

/// `runtime-watcher dev`: the listener and the webhook in one process, over mutual TLS, with a PKI
/// of their own.
class dev_app final : public app {
 public:
  dev_app(services& with, const dev_settings& settings);

  boost::asio::awaitable<int> run() override;

 private:
  const dev_settings settings_;
  std::unique_ptr<services> listener_services_;  ///< metrics and log of its own, as in KCP
  std::unique_ptr<listen_app> listener_;
  std::unique_ptr<webhook_app> webhook_;
};

}  // namespace rw::cli
