#pragma once

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/gateway_secret/secrets.hpp"
#include "rw/reactors/shared/cluster_state.hpp"
#include "rw/tls/ca_bundle.hpp"
#include "rw/tls/issuer.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

namespace rw::gateway_secret::test {

using namespace std::chrono_literals;

template <class T>
T good(tls::result<T> from) {
  BOOST_REQUIRE_MESSAGE(from.has_value(), from.error().message());
  return std::move(*from);
}

inline tls::certificate parsed(const std::string& pem) {
  auto out = tls::certificate::from_pem(pem);
  BOOST_REQUIRE_MESSAGE(out.has_value(), out.error().message());
  return *out;
}

/// The day on which most tests begin; no clock is read.
inline const wall_time day0 = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);

/// A root as cert-manager makes it: a self-signed CA that serves, too.
struct root {
  explicit root(const std::string& name, wall_time from = day0 - 24h,
                std::chrono::seconds validity = 24h * 365,
                tls::key_type key = tls::key_type::ecdsa_p256)
      : ca(good(tls::issuer::create({.common_name = name,
                                     .dns_names = {"listener.example.com"},
                                     .key = key,
                                     .not_before = from,
                                     .validity = validity}))),
        certificate(parsed(ca.certificate_pem())) {}

  tls::key_pair client(const std::string& runtime, wall_time from,
                       std::chrono::seconds validity = 24h * 60,
                       tls::key_type key = tls::key_type::ecdsa_p256) const {
    return good(ca.issue({.common_name = runtime,
                          .dns_names = {"skr-webhook.kyma-system.svc"},
                          .key = key,
                          .server_auth = true,
                          .client_auth = true,
                          .not_before = from,
                          .validity = validity}));
  }
  root_secret secret() const { return {ca.own(), certificate, {certificate}}; }
  boost::json::value object() const {
    boost::json::value out = {{"metadata", boost::json::object{{"name", "klm-watcher"}}}};
    k8s::set_secret_data(out, "tls.crt", ca.own().certificate);
    k8s::set_secret_data(out, "tls.key", ca.own().key);
    k8s::set_secret_data(out, "ca.crt", ca.own().certificate);
    return out;
  }

  tls::issuer ca;
  tls::certificate certificate;
};

/// A gateway Secret that serves with `served` and trusts `bundle`, the newest first.
inline gateway_content gateway(const root& served, std::vector<tls::certificate> bundle,
                               wall_time added_at) {
  return {.pair = served.ca.own(),
          .served = served.certificate,
          .bundle = tls::ca_bundle(bundle),
          .ca_added_at = added_at};
}

/// What a runtime looks like that trusts these, with a client certificate of `issuer`.
inline runtime_trust runtime_with(const std::vector<const root*>& trusted, const root& issuer,
                                  wall_time client_from) {
  runtime_trust out{.client_not_before = client_from,
                    .client_issuer = issuer.certificate.fingerprint()};
  for (const auto* one : trusted) out.authorities.push_back(one->certificate.fingerprint());
  return out;
}

inline k8s::object_key kyma(const std::string& name) {
  return {"kcp-system", name};
}

}  // namespace rw::gateway_secret::test
