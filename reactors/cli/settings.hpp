#pragma once

#include "core/config.hpp"
#include "core/log.hpp"
#include "reactors/event_json.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace rw::cli {

/// A setting that can't be used. Ends the process with a message that names it, and code 2.
class setting_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// `runtime-watcher webhook`.
struct webhook_settings {
  std::string bind_address = "0.0.0.0";
  std::uint16_t webhook_port = 8443;
  std::uint16_t metrics_port = 2112;
  std::string ca_cert;
  std::string tls_cert;
  std::string tls_key;
  core::host_port kcp;
  rw::contract contract = rw::contract::v2;
  std::chrono::milliseconds admission_wait{250};
  std::chrono::milliseconds event_max_age = std::chrono::hours(1);
  std::chrono::milliseconds drain_timeout = std::chrono::seconds(20);
  std::size_t channel_capacity = 1024;
  std::size_t set_capacity = 32768;
  std::size_t max_review_bytes = 8u << 20;
  std::vector<std::string> remarks;  ///< what was wrong and was replaced by a default; to be logged
};

/// `runtime-watcher listen`.
struct listen_settings {
  core::host_port address;
  std::string component;
  std::string tls_cert;
  std::string tls_key;
  std::string client_ca;
  std::string trusted_proxies = "127.0.0.0/8,::1";
  std::optional<core::host_port> metrics_address;
  std::chrono::milliseconds drain_timeout = std::chrono::seconds(20);
};

/// `runtime-watcher dev`.
struct dev_settings {
  std::string dir = "runtime-watcher-dev";
  std::uint16_t webhook_port = 8443;
  std::uint16_t metrics_port = 2112;
  std::uint16_t listen_port = 8082;
  std::string component = "lifecycle-manager";
};

/// `runtime-watcher certs`.
struct certs_settings {
  enum class role : std::uint8_t { ca, server, client, webhook };
  role what = role::ca;
  std::string dir = ".";
  std::string name;
  std::string common_name;
  std::vector<std::string> sans;  ///< "dns:..", "ip:.." or "uri:.."
  unsigned days = 60;
  std::string key = "ecdsa";
};

enum class command : std::uint8_t { none, webhook, listen, dev, certs };

/// The command line, and what the environment adds to it.
struct settings {
  command what = command::none;  ///< none: all is said, end with `exit_code`
  int exit_code = 0;
  core::log_level log_level = core::log_level::info;
  webhook_settings webhook;
  listen_settings listen;
  dev_settings dev;
  certs_settings certs;
};

/// Reads flags over environment over defaults; prints help, version and errors of the command line.
/// Throws `setting_error` for values that can't be used, all of them in one message.
settings read_settings(int argc, char** argv);

}  // namespace rw::cli
