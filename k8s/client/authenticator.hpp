#pragma once

#include "rw/core/stream.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/config/exec_plugin.hpp"
#include "rw/k8s/config/file_stamp.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/tls/certificate.hpp"
#include "rw/tls/material.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace rw::k8s {

/// Throws `code`, with the place that the configuration came from.
[[noreturn]] void throw_unusable(const config& settings, const std::string& error,
                                 errc code = errc::not_configured);

/// As whom a client's requests go out: the Authorization field, and the certificates of its
/// connections. Both follow their files, of which a changed set is used whole or not at all: what
/// can't be used is logged, and the old one stays. On the client's executor.
class authenticator {
 public:
  /// Throws boost::system::system_error that names the setting if `configuration` can't be used.
  /// `configuration` and the environment must outlive it; `on_new_certificates` is called when
  /// connections should be made anew.
  authenticator(boost::asio::any_io_executor executor, const config& configuration,
                const std::string& host, bool tls, const client_environment& environment,
                std::function<void()> on_new_certificates);
  ~authenticator();

  /// What connections are made with. It stays the same one while the certificates change.
  core::transport& transport() noexcept;

  /// Looks whether files have changed (at most once per tick of the watchdog), and runs the
  /// credential plugin where that is due. Concurrent calls share one run.
  boost::asio::awaitable<std::optional<failure>> prepare();

  /// True if prepare() has nothing to wait for, and was done at once.
  bool ready();

  /// The Authorization field's value; empty without one.
  const std::string& authorization() const noexcept { return authorization_; }

  /// Counts the changes of what prepare() provides.
  std::uint64_t generation() const noexcept { return generation_; }

  /// True if the client certificate that connections are made with is past its end.
  bool certificate_expired() const;

  /// To be called after a 401 to a request that was sent with `generation`: the next prepare()
  /// reads and runs everything anew. False if there is nothing that could be had anew.
  bool mark_suspect(std::uint64_t generation);

  /// Ends a run of the plugin. To be called once, and awaited before the end.
  boost::asio::awaitable<void> close();

 private:
  class switched_transport;

  bool uses_plugin() const;
  bool plugin_due() const;
  boost::asio::awaitable<void> run_plugin();
  void use_credential(exec_credential got);

  void look_at_files();
  void look_at_token();
  void look_at_certificates();
  tls::result<tls::material_text> read_certificates(bool anew) const;
  tls::result<void> use_certificates(bool anew);
  tls::result<void> use(const tls::material_text& text);
  tls::result<std::unique_ptr<core::transport>> make_transport(
      const tls::material_text& text) const;
  void set_authorization(std::string value);

  const boost::asio::any_io_executor executor_;
  const config& configuration_;
  const client_environment& environment_;
  const std::string server_name_;
  const bool tls_;
  const std::function<void()> on_new_certificates_;
  const std::unique_ptr<switched_transport> transport_;
  core::log_limit log_limit_;

  std::string authorization_;
  std::uint64_t generation_ = 0;
  std::string certificates_;                       ///< digest of those in use
  std::optional<tls::wall_time> certificate_end_;  ///< of the client's
  file_stamp token_stamp_;
  file_stamp ca_stamp_;
  file_stamp certificate_stamp_;
  file_stamp key_stamp_;
  core::time_point looked_ = core::time_point::min();
  std::string token_error_;  ///< why there is no token

  bool plugin_wanted_ = true;  ///< its credential is missing, or refused by the server
  bool plugin_running_ = false;
  bool closed_ = false;
  std::optional<failure> plugin_failed_;  ///< the last run
  std::string plugin_certificate_;
  std::string plugin_key_;
  std::optional<std::chrono::system_clock::time_point> plugin_expiry_;
  core::wake_list plugin_done_;
  core::task_group tasks_;
};

}  // namespace rw::k8s
