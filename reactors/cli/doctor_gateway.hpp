#pragma once

#include "rw/reactors/cli/doctor_report.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rw::cli {

/// Returns the command that applies files of deploy/pki with the host of KCP's gateway, HOST, in
/// place of the placeholder that they have.
std::string pki_command(std::string_view files);

/// Returns whether the Gateway has one host and port, which is no placeholder, and asks clients for
/// certificates by the manager's Secret.
finding check_gateway(const boost::json::value& gateway, const std::string& name);

/// Returns a host of the certificate that is a placeholder of the manifests.
std::optional<std::string> find_placeholder(const tls::certificate& in);

}  // namespace rw::cli
