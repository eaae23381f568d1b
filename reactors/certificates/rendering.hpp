#pragma once

#include "rw/core/text_error.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/issuer_kind.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::certificates {

struct certificate_options {
  issuer_kind kind = issuer_kind::cert_manager;
  std::string ns = "istio-system";                ///< of the Certificates and their Secrets
  std::string issuer = "klm-watcher-selfsigned";  ///< an Issuer
  std::string issuer_ns = "istio-system";         ///< Gardener's can be in another namespace
  std::vector<std::string> extra_dns_names = {};  ///< besides the Kyma's and the Service's
  std::chrono::hours duration{1440};
  std::chrono::hours renew_before{720};  ///< Gardener's controller decides by itself
  /// Of new certificates. An existing certificate keeps its algorithm until it is issued again.
  tls::key_type key = tls::key_type::ecdsa_p256;
};

/// Returns the name of a Kyma's Certificate and its Secret: "<kyma>-webhook-tls".
std::string certificate_name(std::string_view kyma);
/// Returns the Kyma of a Certificate or Secret of that name; nothing for other names.
std::optional<std::string> kyma_of(std::string_view certificate);

/// Returns the selector, for an informer, of the label on the Secrets.
std::string secret_selector();

/// Returns the Certificate for a Kyma, to be applied: all fields that this manager owns. Its common
/// name is the label `kyma-project.io/runtime-id`, at most 64 bytes (RFC 5280, ub-common-name). Its
/// DNS names are the annotation `skr-domain`, extras, and the webhook's Service, in the order of
/// lifecycle-manager: another order would make cert-manager issue each certificate again at a
/// migration.
boost::system::result<boost::json::value, core::text_error> certificate_for(
    const boost::json::value& kyma, const certificate_options& options);

/// Sets the private key's algorithm and size in `wanted` to those of `existing`: with others
/// cert-manager would issue it again at once (policy SecretPrivateKeyMatchesSpec). Returns false if
/// they were equal.
bool keep_key(boost::json::value& wanted, const boost::json::value& existing);

/// Returns true if `existing` has all fields of `wanted`. Lists must be equal, and durations
/// equally long (Go writes "1440h" as "1440h0m0s").
bool covers(const boost::json::value& existing, const boost::json::value& wanted);

}  // namespace rw::certificates
