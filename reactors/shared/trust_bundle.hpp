#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/tls/ca_bundle.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rw {

/// The gateway Secret's annotation: the time at which its CA bundle grew last (RFC 3339).
inline constexpr std::string_view ca_added_annotation = "caAddedToBundleAt";
/// The gateway Secret: the server certificate of KCP's gateway, and the bundle that it trusts.
inline constexpr std::string_view gateway_secret_name = "klm-istio-gateway";

inline constexpr std::string_view certificate_entry = "tls.crt";
inline constexpr std::string_view key_entry = "tls.key";
inline constexpr std::string_view authorities_entry = "ca.crt";

/// The part of the gateway's Secret for its clients: the authorities to trust, the newest first,
/// and the time of the last addition.
struct trust_bundle {
  tls::ca_bundle authorities = {};
  /// Nothing: unknown. Whole seconds.
  std::optional<std::chrono::system_clock::time_point> added_at = {};
  std::string problem = {};  ///< why the bundle is unreadable; empty if it is not
};

/// Reads `ca.crt` and the annotation. Of a damaged bundle it returns the valid blocks, and
/// `problem`.
trust_bundle read_trust_bundle(const boost::json::value& gateway_secret);

}  // namespace rw
