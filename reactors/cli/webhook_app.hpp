#pragma once

#include "rw/core/http/server.hpp"
#include "rw/reactors/admin/admin.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/events/webhook_service.hpp"

#include <memory>

namespace rw::cli {

/// `runtime-watcher webhook`: the pipeline, the admin pages and certificates that are reloaded when
/// they change.
class webhook_app final : public app {
 public:
  /// Loads the certificates and binds. Throws an exception that names the invalid setting.
  webhook_app(services& with, webhook_settings settings);

  boost::asio::awaitable<int> run() override;

  boost::asio::ip::tcp::endpoint address() const { return service_.address(); }
  boost::asio::ip::tcp::endpoint admin_address() const { return admin_.address(); }

 private:
  boost::asio::awaitable<void> give_back_code();

  const webhook_settings settings_;
  const std::unique_ptr<core::transport> plain_;
  webhook::webhook_service service_;
  admin::pages pages_;
  http::server admin_;
};

}  // namespace rw::cli
