#include "rw/reactors/dev/issuer/status.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::dev_issuer {
namespace {

namespace json = boost::json;

/// Returns the patch of `status`. It may replace whole lists, so it is for one version only.
change of_status(const json::value& certificate, json::object status) {
  return {"status",
          json::object{{"metadata",
                        json::object{{"resourceVersion", k8s::resource_version_of(certificate)}}},
                       {"status", std::move(status)}}};
}

json::array conditions_of(const json::value& certificate) {
  const auto* const found = k8s::find(certificate, {"status", "conditions"});
  return found != nullptr && found->is_array() ? found->get_array() : json::array();
}

json::array without(json::array conditions, std::string_view type) {
  json::array out;
  for (auto& condition : conditions) {
    if (k8s::find_string(condition, {"type"}) != type) out.push_back(std::move(condition));
  }
  return out;
}

k8s::condition ready(const json::value& certificate, bool good, std::string reason,
                     std::string message) {
  return {.type = "Ready",
          .status = good ? "True" : "False",
          .reason = std::move(reason),
          .message = std::move(message),
          .observed_generation = k8s::generation_of(certificate)};
}

std::int64_t revision_of(const json::value& certificate) {
  const auto* const found = k8s::find(certificate, {"status", "revision"});
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

constexpr auto up_to_date = "Certificate is up to date and has not expired";

}  // namespace

std::optional<change> say_issuing(const json::value& certificate, issuer_kind kind,
                                  std::string_view reason, wall_time now) {
  if (kind == issuer_kind::gardener) {
    if (k8s::find_string(certificate, {"status", "state"}) == "Pending") return std::nullopt;
    return of_status(certificate, {{"state", "Pending"},
                                   {"message", "certificate requested: " + std::string(reason)},
                                   {"observedGeneration", k8s::generation_of(certificate)}});
  }
  const auto there = k8s::find_condition(certificate, "Issuing");
  if (there && there->status == "True") return std::nullopt;
  auto with = certificate;
  k8s::set_condition(with,
                     {.type = "Issuing",
                      .status = "True",
                      .reason = std::string(reason),
                      .message = "the certificate is being issued",
                      .observed_generation = k8s::generation_of(certificate)},
                     now);
  return of_status(certificate, {{"conditions", conditions_of(with)}});
}

std::optional<change> take_request(const json::value& certificate, issuer_kind kind,
                                   wall_time now) {
  if (kind != issuer_kind::gardener) return std::nullopt;
  if (k8s::find(certificate, {"spec", "renew"}) == nullptr) return std::nullopt;
  return change{
      "", json::object{{"metadata",
                        json::object{{"resourceVersion", k8s::resource_version_of(certificate)}}},
                       {"spec", json::object{{"renew", nullptr},
                                             {"ensureRenewedAfter", k8s::format_time(now)}}}}};
}

change say_issued(const json::value& certificate, issuer_kind kind, const tls::certificate& leaf,
                  const order& wanted, wall_time now) {
  const auto from = k8s::format_time(leaf.not_before());
  const auto to = k8s::format_time(leaf.not_after());
  auto with = certificate;
  if (kind == issuer_kind::gardener) {
    k8s::set_condition(with, ready(certificate, true, "CertificateIssued", up_to_date), now);
    json::array names;
    for (const auto& dns_name : leaf.dns_names()) names.emplace_back(dns_name);
    return of_status(certificate, {{"state", "Ready"},
                                   {"message", "certificate (issued at " + from + ")"},
                                   {"commonName", leaf.common_name()},
                                   {"dnsNames", std::move(names)},
                                   {"issuanceDate", from},
                                   {"expirationDate", to},
                                   {"observedGeneration", k8s::generation_of(certificate)},
                                   {"conditions", conditions_of(with)}});
  }
  k8s::set_condition(with, ready(certificate, true, "Ready", up_to_date), now);
  return of_status(certificate,
                   {{"conditions", without(conditions_of(with), "Issuing")},
                    {"notBefore", from},
                    {"notAfter", to},
                    {"renewalTime", k8s::format_time(leaf.not_after() - wanted.renew_before)},
                    {"revision", revision_of(certificate) + 1}});
}

std::optional<change> say_failed(const json::value& certificate, issuer_kind kind,
                                 const std::string& reason, wall_time now) {
  auto with = certificate;
  const bool news = k8s::set_condition(with, ready(certificate, false, "Failed", reason), now);
  if (!news) return std::nullopt;
  json::object status{{"conditions", conditions_of(with)}};
  if (kind == issuer_kind::gardener) {
    status["state"] = "Error";
    status["message"] = reason;
  }
  return of_status(certificate, std::move(status));
}

}  // namespace rw::dev_issuer
