#include "rw/reactors/bootstrapper/validation.hpp"

#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/object.hpp"
#include "rw/k8s/objects/qualified_name.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/tls/ca_bundle.hpp"
#include "rw/tls/certificate.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 4> configuration_fields = {
    "overrides", "clusterTrustBundle", "availableFeatures", "namespaceFeatures"};

bool is_label(std::string_view text) {
  return k8s::dns_label_errors(text).empty();
}

/// A registry as in an image's name before the first slash, perhaps with a path.
bool is_registry(std::string_view text) {
  return !text.empty() && text.find("://") == text.npos && !text.ends_with('/') &&
         std::ranges::none_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7F; });
}

bool is_absolute_path(std::string_view path) {
  return path.starts_with('/') && path.find(':') == path.npos;
}

/// No element is empty or leads upwards.
bool is_relative_path(std::string_view path) {
  const auto text = '/' + std::string(path);
  return !path.empty() && text.find("//") == text.npos && (text + '/').find("/../") == text.npos;
}

/// A required text of `clusterTrustBundle`.
struct text_rule {
  std::string_view name;
  bool (*valid)(std::string_view);
  std::string_view violation;
};
constexpr std::array<text_rule, 4> bundle_rules = {{
    {"name", [](std::string_view) { return true; }, ""},
    {"volumeName", is_label, "is no name of a volume (RFC 1123 label)"},
    {"volumeMountPath", is_absolute_path, "is no absolute path without a colon"},
    {"certWritePath", is_relative_path, "is no path below the mount path"},
}};

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

std::optional<json::value> parse_json(std::string_view text, const field_path& path) {
  auto read = k8s::read_json(text);
  if (read) return std::move(*read);
  path.error(read.error().message);
  return std::nullopt;
}

/// The member of this name; null if there is none, or it is no object, which is an error.
const json::object* object_at(const json::object& in, std::string_view name,
                              const field_path& path) {
  const auto* const value = in.if_contains(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) path.at(name).error("is no JSON object");
  return value->if_object();
}

template <class Known>
void warn_unknown_fields(const json::object& in, const Known& is_known, const field_path& path) {
  for (const auto& [name, unused] : in) {
    if (!is_known(name)) path.at(name).warning("is no field of the configuration");
  }
}

void validate_overrides(const json::object& config, const field_path& path) {
  const auto field = path.at("overrides");
  if (!config.contains("overrides")) return field.error("is required");
  const auto* const overrides = object_at(config, "overrides", path);
  if (overrides == nullptr) return;
  for (const auto& [from, to] : *overrides) {
    if (!is_registry(from)) field.at(from).error("is no registry");
    const bool valid = to.is_string() && is_registry(to.get_string());
    if (!valid) field.at(from).error("its value is no registry");
  }
}

/// The bundle's name.
std::string validate_bundle_reference(const json::object& bundle, const field_path& path) {
  for (const auto& rule : bundle_rules) {
    const auto field = path.at(rule.name);
    const auto* const value = bundle.if_contains(rule.name);
    if (value == nullptr) {
      field.error("is required");
    } else if (!value->is_string() || value->get_string().empty()) {
      field.error("is no string, or an empty one");
    } else if (!rule.valid(value->get_string())) {
      field.error("\"" + std::string(value->get_string()) + "\" " + std::string(rule.violation));
    }
  }
  warn_unknown_fields(
      bundle,
      [](std::string_view name) {
        return std::ranges::find(bundle_rules, name, &text_rule::name) != bundle_rules.end();
      },
      path);
  const auto* const name = bundle.if_contains("name");
  return name != nullptr && name->is_string() ? std::string(name->get_string()) : std::string();
}

/// The valid entries of a list of features: known ones, or also `all`.
std::vector<std::string> validate_features(const json::value& value, const abilities& runs,
                                           bool all_is_valid, const field_path& path) {
  std::vector<std::string> out;
  if (!value.is_array()) {
    path.error("is no list");
    return out;
  }
  std::size_t index = 0;
  for (const auto& each : value.get_array()) {
    const auto entry = path.at(index++);
    const std::string name(each.is_string() ? std::string_view(each.get_string()) : "");
    if (!each.is_string()) {
      entry.error("is no string");
    } else if (contains(out, name)) {
      entry.warning("\"" + name + "\" is listed twice");
    } else if (!(all_is_valid && name == all_features) && !contains(runs.features, name)) {
      entry.error("\"" + name +
                  "\" is no feature that the version to be installed knows; the annotation " +
                  std::string(features_annotation) + " of its Deployment lists those that it does");
    } else if (name == landscape_feature && !runs.landscape) {
      entry.error("\"" + name + "\" needs the argument --landscape of the bootstrapper");
    } else {
      out.push_back(name);
    }
  }
  return out;
}

void validate_registry(const json::value& entry, const field_path& path) {
  if (!entry.is_object()) return path.error("is no JSON object");
  // Kubelet takes it: images of that registry are pulled without a name.
  if (entry.get_object().empty()) return path.warning("has no credentials");
  const auto has = [&](std::string_view name) { return !k8s::find_string(entry, {name}).empty(); };
  if (has("auth")) {
    const auto plain = k8s::base64_decode(k8s::find_string(entry, {"auth"}));
    const bool valid = plain && plain->find(':') != plain->npos && !plain->starts_with(':');
    if (!valid) path.at("auth").error("is not base64 of user:password");
    return;
  }
  const bool token = has("identitytoken") || has("registrytoken");
  if (!token && !(has("username") && has("password"))) path.error("has no credentials");
}

}  // namespace

std::string describe(const std::vector<std::string>& all, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < std::min(all.size(), most); ++i) out += (i == 0 ? "" : "; ") + all[i];
  if (all.size() > most) out += "; and " + std::to_string(all.size() - most) + " more";
  return out;
}

const std::vector<std::string>& default_features() {
  static const std::vector<std::string> all = {
      "rt-cfg.kyma-project.io/alter-img-registry", std::string(pull_secret_feature),
      std::string(trust_bundle_feature), "rt-cfg.kyma-project.io/set-fips-mode",
      std::string(landscape_feature)};
  return all;
}

bool abilities::know(std::string_view feature) const {
  return contains(features, feature) && (feature != landscape_feature || landscape);
}

configuration validate_configuration(std::string_view text, const abilities& runs,
                                     const field_path& path) {
  configuration out;
  const auto value = parse_json(text, path);
  if (!value) return out;
  if (!value->is_object()) {
    path.error("is no JSON object");
    return out;
  }
  const auto& config = value->get_object();
  validate_overrides(config, path);
  const auto bundle_path = path.at("clusterTrustBundle");
  const auto* const bundle = object_at(config, "clusterTrustBundle", path);
  if (bundle != nullptr) out.trust_bundle = validate_bundle_reference(*bundle, bundle_path);
  const auto* const available = config.if_contains("availableFeatures");
  if (available != nullptr) {
    out.available = validate_features(*available, runs, false, path.at("availableFeatures"));
    out.features = out.available;
  }
  // To the bootstrapper an empty list is none.
  const bool any =
      available != nullptr && (!available->is_array() || !available->get_array().empty());
  const auto namespaces_path = path.at("namespaceFeatures");
  const auto* const namespaces = object_at(config, "namespaceFeatures", path);
  if (namespaces != nullptr && !any) {
    namespaces_path.warning("has no effect without availableFeatures");
  }
  for (const auto& [ns, list] : namespaces == nullptr ? json::object() : *namespaces) {
    const auto entry = namespaces_path.at(ns);
    if (!is_label(ns)) entry.error("is no name of a namespace");
    for (const auto& name : validate_features(list, runs, true, entry)) {
      if (name == all_features || contains(out.available, name)) continue;
      if (!contains(out.features, name)) out.features.push_back(name);
      if (!any) continue;
      entry.error("\"" + name + "\" is not among availableFeatures");
    }
  }
  if (contains(out.available, trust_bundle_feature) && !config.contains("clusterTrustBundle")) {
    bundle_path.error("is required, since the feature " + std::string(trust_bundle_feature) +
                      " is available");
  }
  warn_unknown_fields(
      config,
      [](std::string_view name) {
        return std::ranges::find(configuration_fields, name) != configuration_fields.end();
      },
      path);
  return out;
}

void validate_pull_secret(const json::value& secret, const field_path& path) {
  const auto type = k8s::find_string(secret, {"type"});
  if (type != pull_secret_type) {
    path.at("type").error("is \"" + std::string(type) + "\" and not " +
                          std::string(pull_secret_type));
  }
  const auto text = k8s::secret_data(secret, pull_secret_key);
  const auto data = path.at("data[" + std::string(pull_secret_key) + "]");
  if (!text) return data.error("is missing or not base64");
  const auto config = parse_json(*text, data);
  if (!config) return;
  const auto* const auths = k8s::find(*config, {"auths"});
  const auto entries = data.at("auths");
  if (auths == nullptr || !auths->is_object()) return entries.error("is missing or no JSON object");
  if (auths->get_object().empty()) entries.error("has no registry");
  for (const auto& [registry, entry] : auths->get_object()) {
    if (registry.empty()) entries.error("has a registry without a name");
    validate_registry(entry, entries.at(registry));
  }
}

void validate_trust_bundle(const json::value& bundle, std::chrono::system_clock::time_point now,
                           const field_path& path) {
  const std::string pem(k8s::find_string(bundle, {"spec", "trustBundle"}));
  const auto field = path.at("spec.trustBundle");
  if (pem.empty()) return field.error("is missing or empty");
  constexpr std::string_view begin = "-----BEGIN ";
  std::size_t number = 0;
  for (auto at = pem.find(begin); at != pem.npos; at = pem.find(begin, at + 1)) {
    ++number;
    if (std::string_view(pem).substr(at + begin.size()).starts_with("CERTIFICATE-----")) continue;
    return field.error("PEM block " + std::to_string(number) + " is no CERTIFICATE");
  }
  // Go passes over blocks that it can't read (crypto/x509, AppendCertsFromPEM).
  const auto whole = tls::load_pem_bundle(pem);
  const auto certificates = whole ? *whole : tls::ca_bundle::salvage(pem).authorities();
  if (certificates.empty()) return field.error(whole.error().message());
  if (!whole) field.warning(whole.error().message());
  std::set<std::string> fingerprints;
  std::size_t expired = 0;
  number = 0;
  for (const auto& each : certificates) {
    const auto label = "certificate " + std::to_string(++number) + " (" + each.subject() + ") ";
    if (!each.is_ca()) field.warning(label + "is no CA's");
    if (!fingerprints.insert(each.fingerprint()).second) field.warning(label + "is listed twice");
    if (each.not_after() >= now) continue;
    ++expired;
    field.warning(label + "expired on " + k8s::format_time(each.not_after()));
  }
  if (expired == certificates.size()) field.error("all certificates have expired");
}

}  // namespace rw::bootstrapper
