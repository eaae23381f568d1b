#pragma once

#include "core/watchdog.hpp"
#include "k8s/config/config.hpp"
#include "k8s/config/process.hpp"
#include "k8s/objects/failure.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::k8s {

/// What a credential plugin gives (client.authentication.k8s.io/v1, "ExecCredentialStatus"): a
/// token, a certificate with its key, or both.
struct exec_credential {
  std::string token;
  std::string certificate;  ///< PEM
  std::string key;
  std::optional<std::chrono::system_clock::time_point> expires;
};

/// The ExecCredential that a plugin is handed in KUBERNETES_EXEC_INFO; with the cluster where the
/// configuration asks for that.
std::string exec_info(const config& how);

/// The plugin as a program to run.
process_request exec_request(const config& how);

/// Reads what a plugin has written. Failures name the command, and show the last line of what it
/// wrote to standard error and the configuration's hint how to install it.
result<exec_credential> read_exec_outcome(const config& how, const process_outcome& outcome);

}  // namespace rw::k8s
