#pragma once

#include "rw/core/http/server.hpp"
#include "rw/reactors/admin/admin.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/cli/webhook_pipeline.hpp"
#include "rw/reactors/events/managers_reload.hpp"
#include "rw/tls/reload.hpp"

#include <memory>

namespace rw::cli {

/// `runtime-watcher webhook`: the pipeline, the admin pages and certificates that are reloaded when
/// they change.
class webhook_app final : public app {
 public:
  /// Loads the certificates and binds. Throws an exception that names the invalid setting.
  webhook_app(services& with, webhook_settings settings);

  boost::asio::awaitable<int> run() override;

  boost::asio::ip::tcp::endpoint address() const { return pipeline_.address(); }
  boost::asio::ip::tcp::endpoint admin_address() const { return admin_.address(); }

 private:
  std::string not_ready() const;
  boost::asio::awaitable<void> give_back_code();
  void on_reload(const tls::result<void>& outcome);
  void publish_certificate();

  const webhook_settings settings_;
  const std::shared_ptr<tls::credentials> credentials_;
  const std::unique_ptr<core::transport> plain_;
  core::counter& reloads_;
  core::counter& failed_reloads_;
  core::gauge& not_after_;
  tls::reloader reloader_;
  managers_in_use managers_;
  std::unique_ptr<managers_reloader> managers_reloader_;  ///< null: no file is configured
  const std::unique_ptr<k8s::client> api_;                ///< null: events come from reviews alone
  webhook_pipeline pipeline_;
  admin::pages pages_;
  http::server admin_;
  bool stopping_ = false;
};

}  // namespace rw::cli
