#include "rw/reactors/shared/trust_bundle.hpp"

#include "rw/k8s/objects/types.hpp"

#include <utility>

namespace rw {

trust_bundle read_trust_bundle(const boost::json::value& gateway_secret) {
  trust_bundle out;
  const auto added = k8s::annotation(gateway_secret, ca_added_annotation);
  if (const auto time = k8s::parse_rfc3339(added)) {
    out.added_at = std::chrono::floor<std::chrono::seconds>(*time);
  }
  const auto pem = k8s::secret_data(gateway_secret, authorities_entry);
  if (!pem) {
    out.problem = "ca.crt is missing";
    return out;
  }
  auto parsed = tls::ca_bundle::parse(*pem);
  if (parsed) {
    out.authorities = std::move(*parsed);
  } else {
    out.problem = "ca.crt is damaged: " + parsed.error().message();
    out.authorities = tls::ca_bundle::salvage(*pem);
  }
  return out;
}

}  // namespace rw
