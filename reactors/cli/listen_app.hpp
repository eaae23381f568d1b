#pragma once

#include "rw/core/http/server.hpp"
#include "rw/reactors/admin/admin.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/output.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/intake/listener.hpp"
#include "rw/tls/reload.hpp"

#include <memory>

namespace rw::cli {

/// `runtime-watcher listen`: listener -> channel -> lines on standard output. A stalled reader
/// fills the listener's queue; the log counts the events that are not written at the end, and the
/// exit code is 1.
class listen_app final : public app {
 public:
  /// Loads the certificates and binds. Throws an exception that names the invalid setting.
  listen_app(services& with, listen_settings settings);

  boost::asio::awaitable<int> run() override;

  boost::asio::ip::tcp::endpoint address() const { return listener_.runnable->address(); }

 private:
  listener::listener_options listener_options();
  boost::asio::awaitable<void> print_events();

  const listen_settings settings_;
  std::unique_ptr<tls::reloader> reloader_;  ///< null: there are no certificates
  listener::registration listener_;
  output output_;
  const std::unique_ptr<core::transport> plain_;
  admin::pages pages_;
  std::unique_ptr<http::server> admin_;
  bool stopping_ = false;
};

}  // namespace rw::cli
