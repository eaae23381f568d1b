// What the control plane wants on a runtime: its sources, as one set.

#include "k8s/types.hpp"
#include "reactors/bootstrapper/direct_sync.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::object_key;

constexpr const char* inline_name = "spec.manifests.inline";

/// All that a set depends on. Of the time only the hour: certificates expire.
std::string key_of_set(const resource_view& view, const std::vector<located_source>& from,
                       std::chrono::system_clock::time_point now) {
  json::array out;
  for (const auto& one : from) {
    out.push_back({to_string(one.of), one.name, one.found.uid(), one.found.resource_version()});
  }
  out.push_back({view.manifests_key, view.inline_manifests, view.remove_with_source});
  out.push_back({view.to.ns, view.to.configuration, view.to.pull_secret, view.to.trust_bundle});
  out.push_back(std::chrono::floor<std::chrono::hours>(now).time_since_epoch().count());
  return json::serialize(out);
}

sources_of_set read_sources(const resource_view& view, const std::vector<located_source>& from) {
  sources_of_set out{.remove_missing = view.remove_with_source};
  for (const auto& one : from) {
    auto& into = one.of == part::trust_bundle    ? out.trust_bundle
                 : one.of == part::pull_secret   ? out.pull_secret
                 : one.of == part::configuration ? out.configuration
                                                 : out.manifests;
    into.name = one.name;
    into.asked_for = !one.name.empty();
    if (one.found) into.object = one.found.parse();
  }
  if (!view.inline_manifests.empty()) {
    out.manifests = {inline_name, true, json::object(), view.inline_manifests};
    return out;
  }
  out.manifests.name += ", " + view.manifests_key;
  out.manifests.text = k8s::find_string(out.manifests.object, {"data", view.manifests_key});
  return out;
}

}  // namespace

std::vector<located_source> direct_sync::locate(const resource_view& view) const {
  std::vector<located_source> out;
  const auto look_for = [&](part of, const char* kind, const k8s::informer* in,
                            const std::string& name, const std::string& ns) {
    located_source one{.of = of};
    if (!name.empty()) {
      one.name = std::string(kind) + " " + to_string(object_key{ns, name});
      if (in != nullptr) one.found = in->objects().get(ns, name);
    }
    out.push_back(std::move(one));
  };
  const auto& ns = view.key.ns;
  look_for(part::trust_bundle, "ClusterTrustBundle", from_.trust_bundles, view.trust_bundle, {});
  look_for(part::pull_secret, "Secret", &from_.secrets, view.pull_secret, ns);
  look_for(part::configuration, "ConfigMap", &from_.config_maps, view.configuration, ns);
  if (view.inline_manifests.empty()) {
    look_for(part::manifests, "ConfigMap", &from_.config_maps, view.manifests, ns);
  } else {
    out.push_back({part::manifests, inline_name, {}});
  }
  return out;
}

gathered_set direct_sync::gather_from(const resource_view& view,
                                      const std::vector<located_source>& from,
                                      std::chrono::system_clock::time_point now) const {
  gathered_set out;
  problems wrong;
  if (!view.trust_bundle.empty() && from_.trust_bundles == nullptr) {
    wrong.push_back({"ClusterTrustBundle " + view.trust_bundle,
                     "the control plane does not serve certificates.k8s.io ClusterTrustBundles"});
  }
  out.set = gather(read_sources(view, from), view.to, now, wrong);
  if (wrong.empty() && out.set.kept.empty()) {
    check_whole(out.set.objects, view.to, out.set.configured_by, wrong);
  }
  if (!wrong.empty()) return {.invalid = describe(wrong)};
  for (const auto which : all_parts) {
    std::vector<desired_object> own;
    for (const auto& each : out.set.objects) {
      if (each.from == which) own.push_back(each);
    }
    if (!own.empty()) out.digests[which] = digest_of(own);
  }
  return out;
}

/// What is to be brought, or why the control plane has nothing that could be.
sync_request direct_sync::request_for(const resource_view& view, situation& seen) {
  sync_request out{.subject = to_string(view.key), .to = view.to, .now = in_.clock.wall()};
  out.write = seen.mode == bootstrapper_mode::direct;
  out.may_write = [this, key = view.key] { return may_write(key); };
  const auto from = locate(view);
  for (const auto& one : from) {
    if (one.name.empty()) continue;
    seen.sources.push_back({one.of, one.name, std::string(one.found.resource_version()), {}});
  }
  auto key = key_of_set(view, from, out.now);
  auto made = sets_.find(key);
  if (!made) made = sets_.keep(std::move(key), gather_from(view, from, out.now));
  if (!made->invalid.empty()) {
    out.invalid = made->invalid;
    seen.invalid = out.invalid;
    return out;
  }
  for (auto& one : seen.sources) {
    const auto digest = made->digests.find(one.of);
    if (digest != made->digests.end()) one.digest = digest->second;
  }
  out.wanted = made->set;
  return out;
}

}  // namespace rw::bootstrapper
