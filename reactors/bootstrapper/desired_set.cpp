#include "reactors/bootstrapper/desired_set.hpp"

#include "k8s/types.hpp"
#include "reactors/bootstrapper/configuration.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/bootstrapper/material.hpp"
#include "reactors/bootstrapper/runtime_store.hpp"
#include "reactors/content_digest.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

json::value object_of(std::string_view api_version, std::string_view kind, std::string_view ns,
                      std::string_view name) {
  json::object metadata{{"name", name}};
  if (!ns.empty()) metadata["namespace"] = ns;
  json::value out{{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}};
  k8s::set_label(out, synced_by_label, synced_by);
  return out;
}

void copy(const json::value& from, json::value& to, std::string_view field) {
  const auto* const value = k8s::find(from, {field});
  if (value != nullptr && !value->is_null()) to.as_object()[field] = *value;
}

bool is(const json::value& object, std::string_view kind, std::string_view ns,
        std::string_view name) {
  const auto key = k8s::key_of(object);
  return find_string(object, {"kind"}) == kind && key.name == name && (key.ns == ns || ns.empty());
}

const json::value* find_object(const std::vector<desired_object>& in, std::string_view kind,
                               std::string_view ns, std::string_view name) {
  const auto found = std::ranges::find_if(
      in, [&](const desired_object& one) { return is(one.object, kind, ns, name); });
  return found == in.end() ? nullptr : &found->object;
}

std::string text_of_configuration(const json::value& config_map) {
  return std::string(find_string(config_map, {"data", configuration_key}));
}

const json::value* configuration_in(const std::vector<desired_object>& objects) {
  const auto found = std::ranges::find_if(
      objects, [](const desired_object& one) { return one.from == part::configuration; });
  return found == objects.end() ? nullptr : &found->object;
}

/// One call of `gather`.
class gathering {
 public:
  gathering(const sources_of_set& from, const target_names& to,
            std::chrono::system_clock::time_point now, problems& wrong)
      : from_(from), to_(to), now_(now), wrong_(wrong) {}

  desired_set run() {
    if (wanted(part::trust_bundle, from_.trust_bundle)) add_trust_bundle();
    if (wanted(part::pull_secret, from_.pull_secret)) add_pull_secret();
    if (wanted(part::configuration, from_.configuration)) add_configuration();
    if (wanted(part::manifests, from_.manifests)) add_manifests();
    if (wrong_.empty()) check_size();
    return std::move(out_);
  }

 private:
  /// Whether the source is to be read; one that is missing may have to be kept.
  bool wanted(part which, const source& one) {
    if (!one.asked_for) return false;
    if (!one.object.is_null()) return true;
    if (!from_.remove_missing) out_.kept.push_back(which);
    return false;
  }

  void add(part from, json::value object) { out_.objects.push_back({from, std::move(object)}); }

  void add_trust_bundle() {
    const auto& object = from_.trust_bundle.object;
    check_trust_bundle(object, now_, {wrong_, from_.trust_bundle.name});
    const auto name = to_.trust_bundle.empty() ? k8s::key_of(object).name : to_.trust_bundle;
    auto made = object_of(find_string(object, {"apiVersion"}), "ClusterTrustBundle", {}, name);
    json::object spec{{"trustBundle", find_string(object, {"spec", "trustBundle"})}};
    const auto signer = find_string(object, {"spec", "signerName"});
    if (!signer.empty()) spec["signerName"] = signer;
    made.as_object()["spec"] = std::move(spec);
    add(part::trust_bundle, std::move(made));
  }

  void add_pull_secret() {
    const auto& object = from_.pull_secret.object;
    check_pull_secret(object, {wrong_, from_.pull_secret.name});
    auto made = object_of("v1", "Secret", to_.ns, to_.pull_secret);
    copy(object, made, "type");
    copy(object, made, "data");
    add(part::pull_secret, std::move(made));
  }

  void add_configuration() {
    const auto& object = from_.configuration.object;
    findings wrong(wrong_, from_.configuration.name);
    if (k8s::find(object, {"data", configuration_key}) == nullptr) {
      wrong.add("data[" + std::string(configuration_key) + "]", "is missing");
    }
    auto made = object_of("v1", "ConfigMap", to_.ns, to_.configuration);
    copy(object, made, "data");
    copy(object, made, "binaryData");
    add(part::configuration, std::move(made));
    out_.configured_by = from_.configuration.name;
  }

  bool gives_way(const json::value& object) const {
    return (from_.configuration.asked_for && is(object, "ConfigMap", to_.ns, to_.configuration)) ||
           (from_.pull_secret.asked_for && is(object, "Secret", to_.ns, to_.pull_secret)) ||
           (from_.trust_bundle.asked_for &&
            std::ranges::any_of(out_.objects, [&](const desired_object& one) {
              return one.from == part::trust_bundle &&
                     is(object, "ClusterTrustBundle", {}, k8s::key_of(one.object).name);
            }));
  }

  void add_manifests() {
    if (from_.manifests.text.empty()) {
      findings(wrong_, from_.manifests.name).add("is missing or empty");
      return;
    }
    auto all = check_manifests(from_.manifests.text, to_.ns, {wrong_, from_.manifests.name});
    for (auto& one : all.objects) {
      if (gives_way(one)) continue;
      k8s::set_label(one, synced_by_label, synced_by);
      add(part::manifests, std::move(one));
    }
  }

  /// Aliases in the manifests let a short text stand for a long one.
  void check_size() {
    std::size_t bytes = 0;
    for (const auto& one : out_.objects) bytes += json::serialize(one.object).size();
    if (bytes <= runtime_store::most) return;
    findings(wrong_, "the set")
        .add("has " + std::to_string(bytes) + " bytes, more than the " +
             std::to_string(runtime_store::most) + " that a runtime can keep for a return to it");
  }

  const sources_of_set& from_;
  const target_names& to_;
  const std::chrono::system_clock::time_point now_;
  problems& wrong_;
  desired_set out_;
};

}  // namespace

std::string_view to_string(part of) noexcept {
  switch (of) {
    case part::trust_bundle:
      return "trustBundle";
    case part::pull_secret:
      return "pullSecret";
    case part::configuration:
      return "config";
    case part::manifests:
      return "manifests";
  }
  return "";
}

std::optional<part> parse_part(std::string_view text) noexcept {
  for (const auto one : all_parts) {
    if (to_string(one) == text) return one;
  }
  return std::nullopt;
}

desired_set gather(const sources_of_set& from, const target_names& to,
                   std::chrono::system_clock::time_point now, problems& wrong) {
  return gathering(from, to, now, wrong).run();
}

void check_whole(const std::vector<desired_object>& objects, const target_names& to,
                 const std::string& configured_by, problems& wrong) {
  const auto* const config_map = configuration_in(objects);
  if (config_map == nullptr) return;
  const auto* const deployment = find_object(objects, "Deployment", to.ns, deployment_name);
  const auto known = deployment == nullptr ? default_features() : features_of(*deployment);
  findings all(wrong, configured_by.empty() ? "ConfigMap " + to_string(k8s::key_of(*config_map))
                                            : configured_by);
  const std::string key(configuration_key);
  const auto configured =
      check_configuration(text_of_configuration(*config_map), known, all.at(key));
  const auto bundle = std::ranges::find_if(
      objects, [](const desired_object& one) { return one.from == part::trust_bundle; });
  if (bundle == objects.end() || configured.trust_bundle.empty()) return;
  const auto name = k8s::key_of(bundle->object).name;
  if (name == configured.trust_bundle) return;
  all.at(key + ", clusterTrustBundle.name")
      .add("is \"" + configured.trust_bundle + "\", but the bundle is called \"" + name +
           "\" on the runtime");
}

std::string digest_of(const json::value& object) {
  return content_digest().add(object).hex();
}

std::string digest_of(const std::vector<desired_object>& objects) {
  std::vector<std::string> each;
  for (const auto& one : objects) {
    each.push_back(content_digest().add(to_string(one.from)).add(one.object).hex());
  }
  std::ranges::sort(each);
  content_digest all;
  for (const auto& one : each) all.add(one);
  return all.hex();
}

std::string short_digest(std::string_view digest) {
  return std::string(digest.substr(0, 16));
}

std::vector<std::string> unknown_features(const std::vector<desired_object>& objects,
                                          const target_names& to,
                                          const std::vector<std::string>& known) {
  const auto* const config_map = configuration_in(objects);
  if (config_map == nullptr) return {};
  const auto* const deployment = find_object(objects, "Deployment", to.ns, deployment_name);
  const auto own = deployment == nullptr ? default_features() : features_of(*deployment);
  problems unused;
  const auto configured =
      check_configuration(text_of_configuration(*config_map), own, {unused, {}});
  std::vector<std::string> out;
  for (const auto& one : configured.features) {
    if (std::ranges::find(known, one) == known.end()) out.push_back(one);
  }
  return out;
}

}  // namespace rw::bootstrapper
