#pragma once

#include "k8s/objects/names.hpp"
#include "tls/ca_bundle.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rw {

/// The gateway Secret's annotation: when its CA bundle grew last (RFC 3339).
inline constexpr std::string_view ca_added_annotation = "caAddedToBundleAt";
/// The gateway Secret: what KCP's gateway serves with, and the bundle that it trusts.
inline constexpr std::string_view gateway_secret_name = "klm-istio-gateway";

inline constexpr std::string_view certificate_entry = "tls.crt";
inline constexpr std::string_view key_entry = "tls.key";
inline constexpr std::string_view authorities_entry = "ca.crt";

/// What clients of the gateway get from its Secret: which authorities to trust, the newest first,
/// and since when it is all of them.
struct trust_bundle {
  tls::ca_bundle authorities = {};
  /// None: nobody knows. Whole seconds.
  std::optional<std::chrono::system_clock::time_point> added_at = {};
  std::string problem = {};  ///< why the bundle can't be read; empty if it can
};

/// Reads `ca.crt` and the annotation. Of a damaged bundle there is what is left, and `problem`.
trust_bundle read_trust_bundle(const boost::json::value& gateway_secret);

}  // namespace rw
