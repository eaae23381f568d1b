#include "reactors/certificates/renewal.hpp"

#include "k8s/rfc3339.hpp"
#include "k8s/types.hpp"
#include "tls/ca_bundle.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::certificates {

namespace json = boost::json;

std::optional<validity> validity_in_status(const json::value& certificate, dialect speaks) {
  const bool gardener = speaks == dialect::gardener;
  const auto from = k8s::parse_rfc3339(
      k8s::find_string(certificate, {"status", gardener ? "issuanceDate" : "notBefore"}));
  const auto to = k8s::parse_rfc3339(
      k8s::find_string(certificate, {"status", gardener ? "expirationDate" : "notAfter"}));
  if (!from || !to) return std::nullopt;
  return validity{*from, *to};
}

bool is_being_issued(const json::value& certificate, dialect speaks) {
  if (speaks == dialect::cert_manager) {
    const auto issuing = k8s::find_condition(certificate, "Issuing");
    return issuing && issuing->status == "True";
  }
  const auto* const renew = k8s::find(certificate, {"spec", "renew"});
  const bool asked = renew != nullptr && renew->is_bool() && renew->get_bool();
  return asked || k8s::find_string(certificate, {"status", "state"}) == "Pending";
}

std::string issuer_message(const json::value& certificate, dialect speaks) {
  if (speaks == dialect::gardener) {
    return std::string(k8s::find_string(certificate, {"status", "message"}));
  }
  const auto ready = k8s::find_condition(certificate, "Ready");
  return ready && ready->status != "True" ? ready->message : std::string();
}

bool must_be_reissued(const tls::certificate& leaf, const std::optional<validity>& told,
                      const trust_bundle& trust, time_point now, std::chrono::seconds patience) {
  if (!trust.added_at || trust.authorities.empty() || now < *trust.added_at) return false;
  const auto issued = told ? std::max(leaf.not_before(), told->not_before) : leaf.not_before();
  if (issued <= *trust.added_at) {
    return !tls::is_issued_by(leaf, trust.authorities.authorities().front());
  }
  return issued + patience < now && trust.authorities.issuer_of(leaf) == nullptr;
}

reissue_request request_reissue(const json::value& certificate, dialect speaks, time_point now) {
  json::object change{
      {"metadata", json::object{{"resourceVersion", k8s::resource_version_of(certificate)}}}};
  if (speaks == dialect::gardener) {
    change["spec"] = json::object{{"renew", true}, {"ensureRenewedAfter", nullptr}};
    return {"", std::move(change)};
  }
  // A merge patch replaces a list, so all conditions go along.
  auto with = certificate;
  k8s::set_condition(with,
                     {.type = "Issuing",
                      .status = "True",
                      .reason = "ManuallyTriggered",
                      .message = "the gateway's CA bundle has grown since it was issued",
                      .observed_generation = k8s::generation_of(certificate)},
                     now);
  change["status"] = json::object{{"conditions", *k8s::find(with, {"status", "conditions"})}};
  return {"status", std::move(change)};
}

}  // namespace rw::certificates
