#include "rw/reactors/certificates/rendering.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>

namespace rw::certificates {
namespace {

namespace json = boost::json;

constexpr std::string_view suffix = "-webhook-tls";
constexpr std::string_view purpose_label = "operator.kyma-project.io/purpose";
constexpr std::string_view purpose = "klm-watcher-cert-manager";
constexpr std::string_view manager = "lifecycle-manager";
constexpr std::size_t longest_common_name = 64;
constexpr std::size_t longest_name = 253;

/// Checks for a host name that an issuer accepts: letters, digits, hyphens and dots, perhaps "*."
/// first.
bool is_host_name(std::string_view text) {
  if (text.starts_with("*.")) text.remove_prefix(2);
  if (text.empty() || text.size() > longest_name || text.find("..") != std::string_view::npos) {
    return false;
  }
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return plain(text.front()) && plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-' || c == '.'; });
}

json::array dns_names(std::string_view domain, const certificate_options& options) {
  const auto service = std::string(skr_webhook_name) + "." + std::string(skr_namespace) + ".svc";
  json::array names;
  const auto add = [&](std::string_view name) {
    const bool there = std::ranges::any_of(
        names, [&](const json::value& present) { return present.get_string() == name; });
    if (!there) names.emplace_back(name);
  };
  add(domain);
  for (const auto& extra : options.extra_dns_names) add(extra);
  add(service + ".cluster.local");
  add(service);
  return names;
}

json::object secret_labels() {
  return {{purpose_label, purpose}, {managed_by_label, manager}};
}

std::string in_hours(std::chrono::hours time) {
  return std::to_string(time.count()) + "h";
}

json::object private_key(tls::key_type key) {
  switch (key) {
    case tls::key_type::rsa_2048:
      return {{"algorithm", "RSA"}, {"size", 2048}};
    case tls::key_type::rsa_3072:
      return {{"algorithm", "RSA"}, {"size", 3072}};
    case tls::key_type::rsa_4096:
      return {{"algorithm", "RSA"}, {"size", 4096}};
    case tls::key_type::ecdsa_p256:
      break;
  }
  return {{"algorithm", "ECDSA"}, {"size", 256}};
}

void speak_cert_manager(json::object& spec, const certificate_options& options) {
  spec["renewBefore"] = in_hours(options.renew_before);
  spec["secretTemplate"] = json::object{{"labels", secret_labels()}};
  // Without its group: lifecycle-manager's last request did not have it, so cert-manager 1.13.0 to
  // 1.19.0 would treat it as another issuer, and issue again (cert-manager issue 8158).
  spec["issuerRef"] = json::object{{"name", options.issuer}, {"kind", "Issuer"}};
  spec["privateKey"] = private_key(options.key);
  spec["privateKey"].as_object()["encoding"] = "PKCS1";
  spec["privateKey"].as_object()["rotationPolicy"] = "Always";
  spec["usages"] = json::array{"digital signature", "key encipherment"};
}

void speak_gardener(json::object& spec, const certificate_options& options) {
  spec["secretLabels"] = secret_labels();
  spec["issuerRef"] = json::object{{"name", options.issuer}, {"namespace", options.issuer_ns}};
  spec["privateKey"] = private_key(options.key);
}

/// Parses a Go duration of whole hours, minutes and seconds, such as "1440h0m0s"; returns -1 for
/// other text.
std::int64_t seconds_of(std::string_view text) {
  std::int64_t sum = 0;
  std::int64_t number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
      if (number > 1'000'000'000) return -1;
      continue;
    }
    const std::int64_t unit = c == 'h' ? 3600 : c == 'm' ? 60 : c == 's' ? 1 : 0;
    if (number < 0 || unit == 0) return -1;
    sum += number * unit;
    number = -1;
  }
  return number < 0 && !text.empty() ? sum : -1;
}

bool same_duration(const json::value& a, const json::value& b) {
  if (!a.is_string() || !b.is_string()) return false;
  const auto seconds = seconds_of(a.get_string());
  return seconds >= 0 && seconds == seconds_of(b.get_string());
}

bool is_duration(std::string_view member) {
  return member == "duration" || member == "renewBefore";
}

}  // namespace

std::string certificate_name(std::string_view kyma) {
  return std::string(kyma) + std::string(suffix);
}

std::optional<std::string> kyma_of(std::string_view certificate) {
  if (!certificate.ends_with(suffix) || certificate.size() == suffix.size()) return std::nullopt;
  certificate.remove_suffix(suffix.size());
  return std::string(certificate);
}

std::string secret_selector() {
  return std::string(purpose_label) + "=" + std::string(purpose);
}

boost::system::result<json::value, core::text_error> certificate_for(
    const json::value& kyma, const certificate_options& options) {
  const auto runtime = k8s::label(kyma, runtime_id_label);
  const auto domain = k8s::annotation(kyma, skr_domain_annotation);
  const auto name = certificate_name(k8s::key_of(kyma).name);
  const auto label = "label " + std::string(runtime_id_label);
  const auto annotation = "annotation " + std::string(skr_domain_annotation);
  if (runtime.empty()) return core::text_error{label + " is missing or empty"};
  if (runtime.size() > longest_common_name) {
    return core::text_error{label + " is longer than a certificate's common name can be (64)"};
  }
  if (domain.empty()) return core::text_error{annotation + " is missing or empty"};
  if (!is_host_name(domain))
    return core::text_error{annotation + " is no host name: " + std::string(domain)};
  if (name.size() > longest_name)
    return core::text_error{"the Kyma's name is too long for " + name};

  json::object spec{{"commonName", runtime},
                    {"dnsNames", dns_names(domain, options)},
                    {"duration", in_hours(options.duration)},
                    {"secretName", name}};
  if (options.kind == issuer_kind::cert_manager) {
    speak_cert_manager(spec, options);
  } else {
    speak_gardener(spec, options);
  }
  const auto& type = certificates_type(options.kind);
  return json::value{
      {"apiVersion", type.gvk.api_version()},
      {"kind", type.gvk.kind},
      {"metadata", json::object{{"name", name},
                                {"namespace", options.ns},
                                {"labels", json::object{{managed_by_label, manager}}}}},
      {"spec", std::move(spec)}};
}

bool keep_key(json::value& wanted, const json::value& existing) {
  const auto* const there = k8s::find(existing, {"spec", "privateKey"});
  auto& own = wanted.at("spec").as_object()["privateKey"].as_object();
  if (there == nullptr || !there->is_object()) return false;
  bool differs = false;
  for (const char* field : {"algorithm", "size"}) {
    const auto* const at = there->get_object().if_contains(field);
    if (at == nullptr || *at == own[field]) continue;
    own[field] = *at;
    differs = true;
  }
  return differs;
}

bool covers(const json::value& existing, const json::value& wanted) {
  const auto* const members = wanted.if_object();
  if (members == nullptr) return existing == wanted;
  const auto* const there = existing.if_object();
  return there != nullptr && std::ranges::all_of(*members, [&](const auto& member) {
           const auto* const at = there->if_contains(member.key());
           if (at == nullptr) return false;
           return covers(*at, member.value()) ||
                  (is_duration(member.key()) && same_duration(*at, member.value()));
         });
}

}  // namespace rw::certificates
