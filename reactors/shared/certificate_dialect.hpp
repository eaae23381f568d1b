#pragma once

#include "k8s/objects/names.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace rw::certificates {

/// The issuing controller: cert-manager (cert-manager.io/v1) or Gardener's cert-management
/// (cert.gardener.cloud/v1alpha1). Both have a kind Certificate and write the result to a Secret
/// with tls.crt, tls.key and ca.crt.
enum class dialect : std::uint8_t { cert_manager, gardener };

/// Parses "cert-manager" and "gardener".
std::optional<dialect> parse_dialect(std::string_view text) noexcept;

const k8s::resource_type& certificates_type(dialect of);

}  // namespace rw::certificates
