#include "rw/reactors/dev/issuer/order.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/trust_bundle.hpp"
#include "rw/tls/material.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <vector>

namespace rw::dev_issuer {
namespace {

namespace json = boost::json;

constexpr auto default_duration = std::chrono::hours(24 * 90);

/// Parses a Go duration of hours, minutes and seconds ("1440h0m0s"); returns nothing for other
/// text, and for zero.
std::optional<std::chrono::seconds> parse_go_duration(std::string_view text) {
  constexpr std::int64_t most = 1'000'000'000;
  std::int64_t sum = 0;
  std::int64_t number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
      if (number > most) return std::nullopt;
      continue;
    }
    const std::int64_t unit = c == 'h' ? 3600 : c == 'm' ? 60 : c == 's' ? 1 : 0;
    if (number < 0 || unit == 0) return std::nullopt;
    sum += number * unit;
    number = -1;
  }
  if (number >= 0 || sum <= 0) return std::nullopt;
  return std::chrono::seconds(sum);
}

std::vector<std::string> strings_at(const json::value& in,
                                    std::initializer_list<std::string_view> path) {
  std::vector<std::string> out;
  const auto* const found = k8s::find(in, path);
  if (found == nullptr || !found->is_array()) return out;
  for (const auto& entry : found->get_array()) {
    if (entry.is_string()) out.emplace_back(entry.get_string());
  }
  return out;
}

bool has(const std::vector<std::string>& in, std::string_view text) {
  return std::ranges::find(in, text) != in.end();
}

/// Returns the key type of `spec.privateKey`; nothing if it is not supported.
std::optional<tls::key_type> key_of(const json::value& certificate) {
  const auto algorithm = k8s::find_string(certificate, {"spec", "privateKey", "algorithm"});
  const auto* const size_at = k8s::find(certificate, {"spec", "privateKey", "size"});
  const std::int64_t size = size_at != nullptr && size_at->is_int64() ? size_at->get_int64() : 0;
  if (algorithm == "ECDSA") {
    return size == 0 || size == 256 ? std::optional(tls::key_type::ecdsa_p256) : std::nullopt;
  }
  if (!algorithm.empty() && algorithm != "RSA") return std::nullopt;
  switch (size) {
    case 0:
    case 2048:
      return tls::key_type::rsa_2048;
    case 3072:
      return tls::key_type::rsa_3072;
    case 4096:
      return tls::key_type::rsa_4096;
    default:
      return std::nullopt;
  }
}

json::object labels_of(const json::value& certificate, issuer_kind kind) {
  const auto* const found = kind == issuer_kind::gardener
                                ? k8s::find(certificate, {"spec", "secretLabels"})
                                : k8s::find(certificate, {"spec", "secretTemplate", "labels"});
  return found != nullptr && found->is_object() ? found->get_object() : json::object();
}

/// Returns the certificate of a Secret, if its key belongs to it.
std::optional<tls::certificate> certificate_in(const json::value& secret) {
  const auto text = [&](std::string_view entry) {
    return k8s::secret_data(secret, entry).value_or(std::string());
  };
  const auto made = tls::material::from_text({text(certificate_entry), text(key_entry), {}});
  return made ? made->leaf() : std::nullopt;
}

bool is_asked_for(const json::value& certificate, const std::optional<tls::certificate>& leaf,
                  issuer_kind kind) {
  if (kind == issuer_kind::cert_manager) {
    const auto issuing = k8s::find_condition(certificate, "Issuing");
    return issuing && issuing->status == "True";
  }
  if (k8s::find(certificate, {"spec", "renew"}) != nullptr) return true;
  if (k8s::find_string(certificate, {"status", "state"}) == "Pending") return true;
  const auto after =
      k8s::parse_rfc3339(k8s::find_string(certificate, {"spec", "ensureRenewedAfter"}));
  return leaf && after && leaf->not_before() < *after;
}

bool is_for(const tls::certificate& leaf, const order& wanted) {
  auto names = leaf.dns_names();
  auto asked = wanted.request.dns_names;
  std::ranges::sort(names);
  std::ranges::sort(asked);
  return leaf.common_name() == wanted.request.common_name && names == asked;
}

}  // namespace

std::string_view issuer_of(const json::value& certificate) noexcept {
  return k8s::find_string(certificate, {"spec", "issuerRef", "name"});
}

boost::system::result<order, problem> read_order(const json::value& certificate, issuer_kind kind,
                                                 tls::key_type key, bool honour_private_key) {
  order out;
  const auto spec = [&](std::string_view name) {
    return k8s::find_string(certificate, {"spec", name});
  };
  out.secret = {k8s::key_of(certificate).ns, std::string(spec("secretName"))};
  if (out.secret.name.empty()) return problem{"spec.secretName is missing"};
  out.labels = labels_of(certificate, kind);

  out.request.common_name = spec("commonName");
  out.request.dns_names = strings_at(certificate, {"spec", "dnsNames"});
  out.request.uris = strings_at(certificate, {"spec", "uris"});
  out.request.ips = strings_at(certificate, {"spec", "ipAddresses"});
  const auto usages = strings_at(certificate, {"spec", "usages"});
  out.request.server_auth = has(usages, "server auth");
  out.request.client_auth = has(usages, "client auth");

  out.request.key = key;
  if (honour_private_key) {
    const auto asked = key_of(certificate);
    if (!asked) return problem{"spec.privateKey requests a key type that is not supported"};
    out.request.key = *asked;
  }
  out.request.validity = default_duration;
  if (const auto text = spec("duration"); !text.empty()) {
    const auto parsed = parse_go_duration(text);
    if (!parsed) return problem{"spec.duration is no duration: " + std::string(text)};
    out.request.validity = *parsed;
  }
  out.renew_before = out.request.validity / 3;
  if (const auto text = spec("renewBefore"); !text.empty()) {
    const auto parsed = parse_go_duration(text);
    if (!parsed || *parsed >= out.request.validity) {
      return problem{"spec.renewBefore is no duration shorter than spec.duration: " +
                     std::string(text)};
    }
    out.renew_before = *parsed;
  }
  return out;
}

std::string_view reason_to_issue(const json::value& certificate, const json::value& secret,
                                 const order& wanted, issuer_kind kind, wall_time now) {
  const auto leaf = certificate_in(secret);
  if (is_asked_for(certificate, leaf, kind)) return "ManuallyTriggered";
  if (secret.is_null()) return "DoesNotExist";
  if (!leaf) return "InvalidKeyPair";
  if (!is_for(*leaf, wanted)) return "SecretMismatch";
  if (leaf->not_after() - wanted.renew_before <= now) return "Renewing";
  return {};
}

std::optional<wall_time> renewal_of(const json::value& secret, const order& wanted) {
  const auto leaf = certificate_in(secret);
  if (!leaf) return std::nullopt;
  return leaf->not_after() - wanted.renew_before;
}

json::value secret_for(const json::value& certificate, const order& wanted,
                       const tls::key_pair& issued, std::string_view authority) {
  json::object annotations{{"cert-manager.io/certificate-name", k8s::key_of(certificate).name},
                           {"cert-manager.io/common-name", wanted.request.common_name},
                           {"cert-manager.io/issuer-name", issuer_of(certificate)}};
  json::value out{{"apiVersion", "v1"},
                  {"kind", "Secret"},
                  {"type", "kubernetes.io/tls"},
                  {"metadata", json::object{{"name", wanted.secret.name},
                                            {"namespace", wanted.secret.ns},
                                            {"labels", wanted.labels},
                                            {"annotations", std::move(annotations)}}}};
  k8s::set_secret_data(out, certificate_entry, issued.certificate);
  k8s::set_secret_data(out, key_entry, issued.key);
  k8s::set_secret_data(out, authorities_entry, authority);
  return out;
}

}  // namespace rw::dev_issuer
