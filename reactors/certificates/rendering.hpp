#pragma once

#include "k8s/objects/names.hpp"
#include "reactors/shared/certificate_dialect.hpp"
#include "tls/issuer.hpp"

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::certificates {

struct certificate_options {
  dialect speaks = dialect::cert_manager;
  std::string ns = "istio-system";                ///< of the Certificates and their Secrets
  std::string issuer = "klm-watcher-selfsigned";  ///< an Issuer
  std::string issuer_ns = "istio-system";         ///< Gardener's can lie elsewhere
  std::vector<std::string> extra_dns_names = {};  ///< beside the Kyma's domain and the Service's
  std::chrono::hours duration{1440};
  std::chrono::hours renew_before{720};  ///< Gardener's controller decides for itself
  /// Of new certificates. One that exists keeps its algorithm until it is issued anew.
  tls::key_type key = tls::key_type::ecdsa_p256;
};

/// The Certificate, and its Secret, of a Kyma: "<kyma>-webhook-tls".
std::string certificate_name(std::string_view kyma);
/// The Kyma that a Certificate or Secret of that name is for; none if it is no such name.
std::optional<std::string> kyma_of(std::string_view certificate);

/// The label that the Secrets carry, as a selector, for an informer.
std::string secret_selector();

/// Why there can be no certificate for a Kyma: what a user has to change, in words.
struct problem {
  std::string text;
};

/// The Certificate for a Kyma, to be applied: all of it that is ours. Its common name is the label
/// `kyma-project.io/runtime-id`, at most 64 bytes (RFC 5280, ub-common-name), its DNS names the
/// annotation `skr-domain`, extras, and the webhook's Service, in this order, which is lifecycle-
/// manager's: another one would make cert-manager issue each certificate anew at a migration.
boost::system::result<boost::json::value, problem> certificate_for(
    const boost::json::value& kyma, const certificate_options& options);

/// Gives `wanted` the private key's algorithm and size of `existing`: with another one cert-manager
/// would issue it anew at once (policy SecretPrivateKeyMatchesSpec). False: it had the same anyway.
bool keep_key(boost::json::value& wanted, const boost::json::value& existing);

/// True if `existing` has everything that `wanted` says. Lists must be equal, and durations as long
/// ("1440h0m0s" is what Go makes of "1440h").
bool covers(const boost::json::value& existing, const boost::json::value& wanted);

}  // namespace rw::certificates
