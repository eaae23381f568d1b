#pragma once

#include "rw/core/watchdog.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/config/process.hpp"
#include "rw/k8s/objects/failure.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace rw::k8s {

/// Result of a credential plugin (client.authentication.k8s.io/v1, "ExecCredentialStatus"): a
/// token, a certificate with its key, or both.
struct exec_credential {
  std::string token;
  std::string certificate;  ///< PEM
  std::string key;
  std::optional<std::chrono::system_clock::time_point> expires;
};

/// Returns the ExecCredential that a plugin receives in KUBERNETES_EXEC_INFO; with the cluster if
/// the configuration requests it.
std::string exec_info(const config& configuration);

process_request exec_request(const config& configuration);

/// Reads the output of a plugin. Failures name the command, and show the last line of its standard
/// error and the configuration's install hint.
result<exec_credential> read_exec_result(const config& configuration, const process_result& ended);

}  // namespace rw::k8s
