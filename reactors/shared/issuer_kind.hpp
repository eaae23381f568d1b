#pragma once

#include "rw/k8s/objects/names.hpp"

#include <cstdint>

namespace rw::certificates {

/// The issuing controller: cert-manager (cert-manager.io/v1) or Gardener's cert-management
/// (cert.gardener.cloud/v1alpha1). Both have a kind Certificate and write the result to a Secret
/// with tls.crt, tls.key and ca.crt.
enum class issuer_kind : std::uint8_t { cert_manager, gardener };

const k8s::resource_type& certificates_type(issuer_kind of);
const k8s::resource_type& issuers_type(issuer_kind of);

}  // namespace rw::certificates
