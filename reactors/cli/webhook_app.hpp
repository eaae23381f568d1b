#pragma once

#include "core/channel.hpp"
#include "core/http/server.hpp"
#include "reactors/admin/admin.hpp"
#include "reactors/admission/admission.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/cli/settings.hpp"
#include "reactors/dispatch/dispatch.hpp"
#include "tls/reload.hpp"
#include "tls/transport.hpp"

#include <memory>

namespace rw::cli {

/// `runtime-watcher webhook`: admission -> channel -> dispatch, with admin beside them.
class webhook_app final : public app {
 public:
  /// Loads the certificates and binds. Throws what names the setting that can't be used.
  webhook_app(services& with, webhook_settings settings);

  boost::asio::awaitable<int> run() override;

  /// The webhook's port, as it was picked.
  std::uint16_t port() const { return intake_.address().port(); }

 private:
  std::string not_ready() const;
  void on_reload(const tls::result<void>& outcome);
  void publish_certificate();

  const webhook_settings settings_;
  const std::shared_ptr<tls::credentials> credentials_;
  const std::unique_ptr<core::transport> server_tls_;
  const std::unique_ptr<core::transport> client_tls_;
  const std::unique_ptr<core::transport> plain_;
  core::counter& reloads_;
  core::counter& failed_reloads_;
  core::gauge& not_after_;
  core::channel<watch_event> events_;
  tls::reloader reloader_;
  dispatch::dispatcher dispatcher_;
  admission::webhook webhook_;
  http::server intake_;
  admin::pages pages_;
  http::server admin_;
  bool stopping_ = false;
};

}  // namespace rw::cli
