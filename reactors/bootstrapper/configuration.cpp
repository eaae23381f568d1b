#include "reactors/bootstrapper/configuration.hpp"

#include "k8s/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;

constexpr std::string_view trust_bundle_feature = "rt-cfg.kyma-project.io/add-cluster-trust-bundle";

bool contains(const std::vector<std::string>& list, std::string_view one) {
  return std::ranges::find(list, one) != list.end();
}

/// A registry as it stands before the first slash of an image's name, perhaps with a path.
bool is_registry(std::string_view text) {
  return !text.empty() && text.find("://") == text.npos && !text.ends_with('/') &&
         std::ranges::none_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7F; });
}

/// No element that is empty or leads upwards.
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

const json::object* object_of(const json::value& value, const findings& wrong) {
  if (!value.is_object()) wrong.add("is no JSON object");
  return value.if_object();
}

void check_overrides(const json::object& all, const findings& wrong) {
  const auto* const value = all.if_contains("overrides");
  if (value == nullptr) return wrong.add("is required");
  const auto* const overrides = object_of(*value, wrong);
  if (overrides == nullptr) return;
  for (const auto& [from, to] : *overrides) {
    auto here = wrong.at(std::string(from));
    if (!is_registry(from)) here.add("is no registry");
    if (!to.is_string() || !is_registry(to.get_string())) here.add("its value is no registry");
  }
}

/// A member that has to be a string with something in it.
std::string text_of(const json::object& in, std::string_view name, const findings& wrong) {
  const auto* const value = in.if_contains(name);
  if (value != nullptr && value->is_string() && !value->get_string().empty()) {
    return std::string(value->get_string());
  }
  wrong.add(std::string(name), value == nullptr ? "is required" : "is no string, or an empty one");
  return {};
}

void check_trust_bundle_fields(const json::value& value, const findings& wrong,
                               configuration& into) {
  const auto* const bundle = object_of(value, wrong);
  if (bundle == nullptr) return;
  into.trust_bundle = text_of(*bundle, "name", wrong);
  const auto volume = text_of(*bundle, "volumeName", wrong);
  if (!volume.empty() && !k8s::dns_label_errors(volume).empty()) {
    wrong.at("volumeName").add("\"" + volume + "\" is no name of a volume (RFC 1123 label)");
  }
  const auto mount = text_of(*bundle, "volumeMountPath", wrong);
  if (!mount.empty() && (mount.front() != '/' || mount.find(':') != mount.npos)) {
    wrong.at("volumeMountPath").add("\"" + mount + "\" is no absolute path without a colon");
  }
  const auto file = text_of(*bundle, "certWritePath", wrong);
  if (!file.empty() && !is_relative_path(file)) {
    wrong.at("certWritePath").add("\"" + file + "\" is no path below the mount path");
  }
  constexpr std::array<std::string_view, 4> fields = {"name", "volumeName", "volumeMountPath",
                                                      "certWritePath"};
  for (const auto& [name, unused] : *bundle) {
    if (std::ranges::find(fields, std::string_view(name)) == fields.end()) {
      wrong.at(std::string(name)).add("is no field of the configuration");
    }
  }
}

/// A list of features, each known and there once; those that are good.
std::vector<std::string> features_of(const json::value& value,
                                     const std::vector<std::string>& known, bool may_be_all,
                                     const findings& wrong) {
  std::vector<std::string> out;
  const auto* const list = value.if_array();
  if (list == nullptr) wrong.add("is no list");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    auto here = wrong.at(i);
    const auto& one = (*list)[i];
    if (!one.is_string()) {
      here.add("is no string");
      continue;
    }
    const std::string name(one.get_string());
    if (contains(out, name)) {
      here.add("\"" + name + "\" is there twice");
    } else if (!(may_be_all && name == all_features) && !contains(known, name)) {
      here.add("\"" + name + "\" is no feature that the version to be installed knows");
    } else {
      out.push_back(name);
    }
  }
  return out;
}

void check_namespaces(const json::value& value, const std::vector<std::string>& known,
                      const std::vector<std::string>& available, const findings& wrong) {
  const auto* const namespaces = object_of(value, wrong);
  if (namespaces == nullptr) return;
  for (const auto& [ns, list] : *namespaces) {
    auto here = wrong.at(std::string(ns));
    if (!k8s::dns_label_errors(ns).empty()) here.add("is no name of a namespace");
    for (const auto& one : features_of(list, known, true, here)) {
      if (one != all_features && !contains(available, one)) {
        here.add("\"" + one + "\" is not among availableFeatures");
      }
    }
  }
}

}  // namespace

const std::vector<std::string>& default_features() {
  static const std::vector<std::string> all = {
      "rt-cfg.kyma-project.io/alter-img-registry", "rt-cfg.kyma-project.io/add-img-pull-secret",
      std::string(trust_bundle_feature), "rt-cfg.kyma-project.io/set-fips-mode",
      "rt-cfg.kyma-project.io/set-landscape"};
  return all;
}

configuration check_configuration(const std::string& text, const std::vector<std::string>& known,
                                  findings wrong) {
  configuration out;
  const auto value = parse_json(text, wrong);
  if (!value) return out;
  const auto* const all = object_of(*value, wrong);
  if (all == nullptr) return out;
  check_overrides(*all, wrong.at("overrides"));
  if (const auto* const bundle = all->if_contains("clusterTrustBundle")) {
    check_trust_bundle_fields(*bundle, wrong.at("clusterTrustBundle"), out);
  }
  if (const auto* const available = all->if_contains("availableFeatures")) {
    out.features = features_of(*available, known, false, wrong.at("availableFeatures"));
  }
  if (const auto* const namespaces = all->if_contains("namespaceFeatures")) {
    check_namespaces(*namespaces, known, out.features, wrong.at("namespaceFeatures"));
  }
  if (contains(out.features, trust_bundle_feature) && !all->contains("clusterTrustBundle")) {
    wrong.add("clusterTrustBundle", "is required, since the feature " +
                                        std::string(trust_bundle_feature) + " is available");
  }
  constexpr std::array<std::string_view, 4> fields = {"overrides", "clusterTrustBundle",
                                                      "availableFeatures", "namespaceFeatures"};
  for (const auto& [name, unused] : *all) {
    if (std::ranges::find(fields, std::string_view(name)) == fields.end()) {
      wrong.add(std::string(name), "is no field of the configuration");
    }
  }
  return out;
}

}  // namespace rw::bootstrapper
