#include "reactors/bootstrapper/validation.hpp"

#include "k8s/base64.hpp"
#include "k8s/qualified_name.hpp"
#include "k8s/types.hpp"
#include "tls/certificate.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <set>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;

constexpr std::string_view trust_bundle_feature = "rt-cfg.kyma-project.io/add-cluster-trust-bundle";

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

/// A registry as in an image's name before the first slash, perhaps with a path.
bool is_registry(std::string_view text) {
  return !text.empty() && text.find("://") == text.npos && !text.ends_with('/') &&
         std::ranges::none_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7F; });
}

/// No element is empty or leads upwards.
bool is_relative_path(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  while (!path.empty()) {
    const auto end = std::min(path.find('/'), path.size());
    const auto element = path.substr(0, end);
    if (element.empty() || element == "..") return false;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return true;
}

const json::object* object_at(const json::value* value, const field_path& path) {
  if (value == nullptr) return nullptr;
  if (!value->is_object()) path.error("is no JSON object");
  return value->if_object();
}

void warn_unknown_fields(const json::object& in, std::initializer_list<std::string_view> known,
                         const field_path& path) {
  for (const auto& [name, unused] : in) {
    if (std::ranges::find(known, std::string_view(name)) != known.end()) continue;
    path.at(std::string(name)).warning("is no field of the configuration");
  }
}

std::string required_text(const json::object& in, const std::string& name, const field_path& path) {
  const auto* const value = in.if_contains(name);
  if (value != nullptr && value->is_string() && !value->get_string().empty()) {
    return std::string(value->get_string());
  }
  path.error(name, value == nullptr ? "is required" : "is no string, or an empty one");
  return {};
}

void validate_overrides(const json::object& config, const field_path& path) {
  if (!config.contains("overrides")) return path.error("is required");
  const auto* const overrides = object_at(config.if_contains("overrides"), path);
  if (overrides == nullptr) return;
  for (const auto& [from, to] : *overrides) {
    const auto entry = path.at(std::string(from));
    if (!is_registry(from)) entry.error("is no registry");
    if (!to.is_string() || !is_registry(to.get_string())) entry.error("its value is no registry");
  }
}

std::string validate_bundle_reference(const json::object& bundle, const field_path& path) {
  auto name = required_text(bundle, "name", path);
  const auto volume = required_text(bundle, "volumeName", path);
  if (!volume.empty() && !k8s::dns_label_errors(volume).empty()) {
    path.error("volumeName", "\"" + volume + "\" is no name of a volume (RFC 1123 label)");
  }
  const auto mount = required_text(bundle, "volumeMountPath", path);
  if (!mount.empty() && (mount.front() != '/' || mount.find(':') != mount.npos)) {
    path.error("volumeMountPath", "\"" + mount + "\" is no absolute path without a colon");
  }
  const auto file = required_text(bundle, "certWritePath", path);
  if (!file.empty() && !is_relative_path(file)) {
    path.error("certWritePath", "\"" + file + "\" is no path below the mount path");
  }
  warn_unknown_fields(bundle, {"name", "volumeName", "volumeMountPath", "certWritePath"}, path);
  return name;
}

/// The valid entries of a list of features.
std::vector<std::string> validate_features(const json::value& value,
                                           const std::vector<std::string>& known,
                                           bool all_is_allowed, const field_path& path) {
  std::vector<std::string> out;
  const auto* const list = value.if_array();
  if (list == nullptr) path.error("is no list");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto entry = path.at(i);
    if (!(*list)[i].is_string()) {
      entry.error("is no string");
      continue;
    }
    std::string name((*list)[i].get_string());
    if (contains(out, name)) {
      entry.warning("\"" + name + "\" is listed twice");
    } else if (!(all_is_allowed && name == all_features) && !contains(known, name)) {
      entry.error("\"" + name + "\" is no feature that the version to be installed knows");
    } else {
      out.push_back(std::move(name));
    }
  }
  return out;
}

void validate_namespaces(const json::object& namespaces, const std::vector<std::string>& known,
                         const std::vector<std::string>* available, const field_path& path) {
  for (const auto& [ns, list] : namespaces) {
    const auto entry = path.at(std::string(ns));
    if (!k8s::dns_label_errors(ns).empty()) entry.error("is no name of a namespace");
    for (const auto& name : validate_features(list, known, true, entry)) {
      if (available == nullptr || name == all_features || contains(*available, name)) continue;
      entry.error("\"" + name + "\" is not among availableFeatures");
    }
  }
}

void validate_registry(const json::value& entry, const field_path& path) {
  if (!entry.is_object()) return path.error("is no JSON object");
  const auto has = [&](std::string_view name) { return !k8s::find_string(entry, {name}).empty(); };
  if (has("auth")) {
    const auto plain = k8s::base64_decode(k8s::find_string(entry, {"auth"}));
    const bool valid = plain && plain->find(':') != plain->npos && !plain->starts_with(':');
    if (!valid) path.error("auth", "is not base64 of user:password");
    return;
  }
  const bool token = has("identitytoken") || has("registrytoken");
  if (!token && !(has("username") && has("password"))) path.error("has no credentials");
}

}  // namespace

const std::vector<std::string>& default_features() {
  static const std::vector<std::string> all = {
      "rt-cfg.kyma-project.io/alter-img-registry", "rt-cfg.kyma-project.io/add-img-pull-secret",
      std::string(trust_bundle_feature), "rt-cfg.kyma-project.io/set-fips-mode",
      "rt-cfg.kyma-project.io/set-landscape"};
  return all;
}

configuration validate_configuration(const std::string& text, const std::vector<std::string>& known,
                                     const field_path& path) {
  configuration out;
  const auto value = parse_json(text, path);
  const auto* const config = object_at(value ? &*value : nullptr, path);
  if (config == nullptr) return out;
  validate_overrides(*config, path.at("overrides"));
  const auto bundle_path = path.at("clusterTrustBundle");
  const auto* const bundle = object_at(config->if_contains("clusterTrustBundle"), bundle_path);
  if (bundle != nullptr) out.trust_bundle = validate_bundle_reference(*bundle, bundle_path);
  const auto* const available = config->if_contains("availableFeatures");
  if (available != nullptr) {
    out.features = validate_features(*available, known, false, path.at("availableFeatures"));
  }
  const auto namespaces_path = path.at("namespaceFeatures");
  const auto* const namespaces =
      object_at(config->if_contains("namespaceFeatures"), namespaces_path);
  if (namespaces != nullptr) {
    if (available == nullptr) namespaces_path.warning("has no effect without availableFeatures");
    validate_namespaces(*namespaces, known, available == nullptr ? nullptr : &out.features,
                        namespaces_path);
  }
  if (contains(out.features, trust_bundle_feature) && !config->contains("clusterTrustBundle")) {
    bundle_path.error("is required, since the feature " + std::string(trust_bundle_feature) +
                      " is available");
  }
  warn_unknown_fields(
      *config, {"overrides", "clusterTrustBundle", "availableFeatures", "namespaceFeatures"}, path);
  return out;
}

void validate_pull_secret(const json::value& secret, const field_path& path) {
  const auto type = k8s::find_string(secret, {"type"});
  if (type != pull_secret_type) {
    path.error("type", "is \"" + std::string(type) + "\" and not " + std::string(pull_secret_type));
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
    validate_registry(entry, entries.at(std::string(registry)));
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
  const auto certificates = tls::load_pem_bundle(pem);
  if (!certificates) return field.error(certificates.error().message());
  std::set<std::string> fingerprints;
  std::size_t expired = 0;
  number = 0;
  for (const auto& each : *certificates) {
    const auto label = "certificate " + std::to_string(++number) + " (" + each.subject() + ") ";
    if (!each.is_ca()) field.warning(label + "is no CA's");
    if (!fingerprints.insert(each.fingerprint()).second) field.warning(label + "is listed twice");
    if (each.not_after() >= now) continue;
    ++expired;
    field.warning(label + "expired on " + k8s::format_time(each.not_after()));
  }
  if (expired == certificates->size()) field.error("all certificates have expired");
}

}  // namespace rw::bootstrapper
