#include "rw/reactors/gateway_secret/secrets.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/tls/material.hpp"

#include <boost/json/object.hpp>

#include <utility>

namespace rw::gateway_secret {
namespace {

namespace json = boost::json;

/// Returns the pair's certificate, if a server can use it: both exist, are readable, and belong
/// together.
tls::result<tls::certificate> served_with(const tls::key_pair& pair) {
  if (pair.certificate.empty())
    return tls::failure(tls::error::missing_material, "tls.crt is missing");
  if (pair.key.empty()) return tls::failure(tls::error::missing_material, "tls.key is missing");
  const auto checked =
      tls::material::from_text({.certificate = pair.certificate, .key = pair.key, .ca = {}},
                               {.certificate = "tls.crt", .key = "tls.key", .ca = "ca.crt"});
  if (!checked) return checked.error();
  return *checked->leaf();
}

tls::key_pair read_pair(const json::value& secret) {
  return {.certificate = k8s::secret_data(secret, certificate_entry).value_or(""),
          .key = k8s::secret_data(secret, key_entry).value_or("")};
}

}  // namespace

tls::result<root_secret> read_root_secret(const json::value& secret) {
  auto pair = read_pair(secret);
  const auto server = served_with(pair);
  if (!server) return server.error();
  if (!server->is_ca()) {
    return tls::failure(tls::error::unusable_material, "tls.crt is no CA certificate");
  }
  root_secret out{std::move(pair), *server, {*server}};
  // BoringSSL, and so Envoy, serves no other certificates (envoyproxy.io, TLS, Certificate
  // selection).
  const auto algorithm = server->key_algorithm();
  if (algorithm != "RSA" && algorithm != "EC") {
    out.warnings.push_back("tls.crt has a key of type " + std::string(algorithm) +
                           ", which Envoy does not serve: issue the CA with an RSA or ECDSA key");
  }
  // Usually a copy of tls.crt; otherwise the CAs above it.
  if (const auto pem = k8s::secret_data(secret, authorities_entry); pem && !pem->empty()) {
    const auto all = tls::ca_bundle::parse(*pem);
    const auto left = all ? *all : tls::ca_bundle::salvage(*pem);
    if (left.empty()) return tls::failure(all.error().code, "ca.crt: " + all.error().message());
    if (!all) out.warnings.push_back("ca.crt is damaged: " + all.error().message());
    for (const auto& certificate : left.authorities()) {
      if (!(certificate == *server)) out.authorities.push_back(certificate);
    }
  }
  return out;
}

gateway_content read_gateway_secret(const json::value& secret) {
  gateway_content out;
  out.pair = read_pair(secret);
  const auto served = served_with(out.pair);
  if (served) {
    out.served = *served;
  } else {
    out.pair_error = served.error().message();
  }
  auto trust = read_trust_bundle(secret);
  out.bundle = std::move(trust.authorities);
  out.ca_added_at = trust.added_at;
  out.bundle_error = std::move(trust.problem);
  return out;
}

json::value write_gateway_secret(const gateway_content& content, const k8s::object_key& key,
                                 json::value into) {
  if (!into.is_object()) {
    into = json::object{{"apiVersion", "v1"},
                        {"kind", "Secret"},
                        {"metadata", json::object{{"namespace", key.ns}, {"name", key.name}}}};
  }
  k8s::set_secret_data(into, certificate_entry, content.pair.certificate);
  k8s::set_secret_data(into, key_entry, content.pair.key);
  k8s::set_secret_data(into, authorities_entry, content.bundle.pem());
  if (content.ca_added_at) {
    k8s::set_annotation(into, ca_added_annotation, k8s::format_time(*content.ca_added_at));
  }
  return into;
}

}  // namespace rw::gateway_secret
