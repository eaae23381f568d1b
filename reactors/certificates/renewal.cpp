#include "rw/reactors/certificates/renewal.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/tls/ca_bundle.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <charconv>
#include <utility>

namespace rw::certificates {

namespace json = boost::json;

std::optional<validity> validity_in_status(const json::value& certificate, issuer_kind kind) {
  const bool gardener = kind == issuer_kind::gardener;
  const auto from = k8s::parse_rfc3339(
      k8s::find_string(certificate, {"status", gardener ? "issuanceDate" : "notBefore"}));
  const auto to = k8s::parse_rfc3339(
      k8s::find_string(certificate, {"status", gardener ? "expirationDate" : "notAfter"}));
  if (!from || !to) return std::nullopt;
  return validity{*from, *to};
}

bool is_being_issued(const json::value& certificate, issuer_kind kind, reissue_cause cause) {
  if (kind == issuer_kind::cert_manager) {
    const auto issuing = k8s::find_condition(certificate, "Issuing");
    return issuing && issuing->status == "True";
  }
  const auto* const renew = k8s::find(certificate, {"spec", "renew"});
  const bool asked = renew != nullptr && renew->is_bool() && renew->get_bool();
  const auto state = k8s::find_string(certificate, {"status", "state"});
  if (asked || state == "Pending") return true;
  const auto after =
      k8s::parse_rfc3339(k8s::find_string(certificate, {"spec", "ensureRenewedAfter"}));
  return after && *after > cause.issued && (state == "Error" || *after >= cause.since);
}

reissue_turn next_reissue(const json::value& certificate, reissue_cause cause,
                          const reissue_backoff& backoff, wall_time now) {
  const auto text = k8s::annotation(certificate, reissue_annotation);
  const auto blank = std::min(text.find(' '), text.size());
  const auto last = k8s::parse_rfc3339(text.substr(0, blank));
  // The times are whole seconds, so the order of two within one second is unknown: then it is asked
  // once more, when that second is over.
  const auto newest = std::chrono::floor<std::chrono::seconds>(std::max(cause.issued, cause.since));
  if (!last || *last < newest) return {now};
  if (*last == newest) return {std::max(now, *last + std::chrono::seconds(1))};
  unsigned count = 1;
  const auto digits = text.substr(std::min(blank + 1, text.size()));
  std::from_chars(digits.data(), digits.data() + digits.size(), count);
  count = std::clamp(count, 1U, 30U);
  const auto pause = std::min(backoff.first * (std::int64_t{1} << (count - 1)), backoff.limit);
  // A clock set back must not make the pause longer.
  return {std::min(*last, now) + pause, count + 1};
}

std::string issuer_message(const json::value& certificate, issuer_kind kind) {
  if (kind == issuer_kind::gardener) {
    return std::string(k8s::find_string(certificate, {"status", "message"}));
  }
  const auto ready = k8s::find_condition(certificate, "Ready");
  return ready && ready->status != "True" ? ready->message : std::string();
}

bool must_be_reissued(const tls::certificate& leaf, const std::optional<validity>& told,
                      const trust_bundle& trust, wall_time now, std::chrono::seconds patience) {
  if (!trust.added_at || trust.authorities.empty() || now < *trust.added_at) return false;
  const auto issued = told ? std::max(leaf.not_before(), told->not_before) : leaf.not_before();
  if (issued <= *trust.added_at) {
    return !tls::is_issued_by(leaf, trust.authorities.authorities().front());
  }
  const auto* const authority = trust.authorities.issuer_of(leaf);
  if (authority == nullptr) return issued + patience < now;
  const bool ends = authority->not_after() < now + std::chrono::hours(7 * 24) &&
                    *authority != trust.authorities.authorities().front();
  return ends && issued + std::chrono::hours(24) < now;
}

json::value request_reissue(const json::value& certificate, issuer_kind kind, unsigned attempt,
                            wall_time now) {
  json::object change{
      {"metadata", json::object{{"resourceVersion", k8s::resource_version_of(certificate)},
                                {"annotations", json::object{{reissue_annotation,
                                                              k8s::format_time(now) + " " +
                                                                  std::to_string(attempt)}}}}}};
  if (kind == issuer_kind::gardener) {
    change["spec"] = json::object{{"renew", true}, {"ensureRenewedAfter", nullptr}};
  }
  return change;
}

json::value trigger_cert_manager(const json::value& certificate, wall_time now) {
  // A merge patch replaces a list, so it carries all conditions.
  auto with = certificate;
  k8s::set_condition(with,
                     {.type = "Issuing",
                      .status = "True",
                      .reason = "ManuallyTriggered",
                      .message = "the gateway's CA bundle has grown since it was issued",
                      .observed_generation = k8s::generation_of(certificate)},
                     now);
  return json::object{
      {"metadata", json::object{{"resourceVersion", k8s::resource_version_of(certificate)}}},
      {"status", json::object{{"conditions", *k8s::find(with, {"status", "conditions"})}}}};
}

}  // namespace rw::certificates
