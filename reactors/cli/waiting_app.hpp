#pragma once

#include "rw/core/config.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/tls/material.hpp"

#include <functional>
#include <memory>
#include <string>

namespace rw::cli {

/// What a server needs before it can be made.
struct needed_files {
  tls::material_files tls;  ///< without any file nothing is needed
  std::string settings;     ///< that name them, for messages
  core::host_port admin;    ///< where it serves its own /livez and /readyz; without a host: nowhere
  std::string admin_setting;
};

/// Stands in for a server whose TLS files are not valid when it starts, as where a Secret is
/// mounted that an issuer fills later, or by halves: an exit would lead to kubelet's back-off,
/// which goes on for minutes after the files are mended. Until then it answers /livez, and says at
/// /readyz which file is wrong; then it makes the server and runs it.
class waiting_app final : public app {
 public:
  /// Binds the server's administrative address. Throws an exception that names the invalid setting.
  waiting_app(services& with, needed_files files, std::function<std::unique_ptr<app>()> make);
  ~waiting_app() override;

  /// Returns the server's exit code; 0 if it is stopped before the files are valid. Throws what
  /// making the server throws.
  boost::asio::awaitable<int> run() override;

  void stop() override;

 private:
  class admin;

  void look();
  boost::asio::awaitable<void> wait_for_files();

  const needed_files files_;
  const std::function<std::unique_ptr<app>()> make_;
  std::string error_;  ///< why the files are not valid; empty: they are
  bool stopped_ = false;
  std::unique_ptr<admin> admin_;
  std::unique_ptr<app> server_;  ///< null while it waits
};

/// Returns the server, or, if the files that it needs are not valid and it has an administrative
/// address, an app that waits for them.
std::unique_ptr<app> make_when_valid(services& with, needed_files files,
                                     std::function<std::unique_ptr<app>()> make);

}  // namespace rw::cli
