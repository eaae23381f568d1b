#include "rw/k8s/devserver/discovery.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <string_view>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

struct group {
  std::string name;
  std::vector<std::string> versions;
};

/// Returns the groups in order, without the core group; the first version is the preferred one.
std::vector<group> groups_of(const cluster& in) {
  std::vector<group> groups;
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    if (kind->group.empty()) return;
    auto at = std::find_if(groups.begin(), groups.end(),
                           [&](const group& g) { return g.name == kind->group; });
    if (at == groups.end()) at = groups.insert(groups.end(), group{kind->group, {}});
    for (const auto& version : kind->versions) {
      const auto known = std::find(at->versions.begin(), at->versions.end(), version.name);
      if (version.served && known == at->versions.end()) at->versions.push_back(version.name);
    }
  });
  std::erase_if(groups, [](const group& g) { return g.versions.empty(); });
  return groups;
}

json::value describe(const group& of) {
  json::array versions;
  for (const auto& version : of.versions) {
    versions.push_back({{"groupVersion", of.name + "/" + version}, {"version", version}});
  }
  auto preferred = versions.front();
  return {{"name", of.name},
          {"versions", std::move(versions)},
          {"preferredVersion", std::move(preferred)}};
}

json::array strings(const std::vector<std::string>& from) {
  return json::array(from.begin(), from.end());
}

json::array verbs_of(const resource& of) {
  if (of.review) return {"create"};
  if (of.read_only) return {"get", "list", "watch"};
  json::array verbs{"create", "delete"};
  if (of.deletes_collections) verbs.emplace_back("deletecollection");
  for (const auto* verb : {"get", "list", "patch", "update", "watch"}) verbs.emplace_back(verb);
  return verbs;
}

json::object describe(const resource& of) {
  json::object result{{"name", of.plural},
                      {"singularName", of.singular},
                      {"namespaced", of.namespaced},
                      {"kind", of.kind},
                      {"verbs", verbs_of(of)}};
  if (!of.short_names.empty()) result["shortNames"] = strings(of.short_names);
  if (!of.categories.empty()) result["categories"] = strings(of.categories);
  return result;
}

json::object describe_subresource(const resource& of, std::string_view name) {
  return {{"name", of.plural + "/" + std::string(name)},
          {"singularName", ""},
          {"namespaced", of.namespaced},
          {"kind", of.kind},
          {"verbs", {"get", "patch", "update"}}};
}

std::optional<json::value> resources_of(const cluster& in, std::string_view of_group,
                                        std::string_view version) {
  json::array all;
  in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
    if (kind->group != of_group) return;
    const auto* served = kind->find(version);
    if (served == nullptr) return;
    all.push_back(describe(*kind));
    if (served->scale) {
      auto scale = describe_subresource(*kind, "scale");
      scale["group"] = "autoscaling";
      scale["version"] = "v1";
      scale["kind"] = "Scale";
      all.push_back(std::move(scale));
    }
    if (served->status) all.push_back(describe_subresource(*kind, "status"));
    for (const auto& each : own_subresources()) {
      if (each.storage_key != kind->storage_key || kind->custom) continue;
      auto below = describe_subresource(*kind, each.name);
      if (each.group != kind->group) {
        below["group"] = each.group;
        below["version"] = each.version;
      }
      below["kind"] = each.kind;
      below["verbs"] = strings(words(each.verbs));
      all.push_back(std::move(below));
    }
  });
  if (all.empty()) return {};
  auto name = std::string(of_group);
  if (!name.empty()) name += '/';
  return json::value{{"kind", "APIResourceList"},
                     {"apiVersion", "v1"},
                     {"groupVersion", name + std::string(version)},
                     {"resources", std::move(all)}};
}

json::object kind_of(std::string_view group, std::string_view version, std::string_view kind) {
  return {{"group", group}, {"version", version}, {"kind", kind}};
}

/// Returns the resource in one version in the form of aggregated discovery.
json::object describe_whole(const resource& of, const served_version& in) {
  json::object result{{"resource", of.plural},
                      {"responseKind", kind_of(of.group, in.name, of.kind)},
                      {"scope", of.namespaced ? "Namespaced" : "Cluster"},
                      {"singularResource", of.singular},
                      {"verbs", verbs_of(of)}};
  if (!of.short_names.empty()) result["shortNames"] = strings(of.short_names);
  if (!of.categories.empty()) result["categories"] = strings(of.categories);
  json::array below;
  const auto add = [&](std::string_view name, json::object kind) {
    below.push_back({{"subresource", name},
                     {"responseKind", std::move(kind)},
                     {"verbs", {"get", "patch", "update"}}});
  };
  if (in.scale) add("scale", kind_of("autoscaling", "v1", "Scale"));
  if (in.status) add("status", kind_of(of.group, in.name, of.kind));
  for (const auto& each : own_subresources()) {
    if (each.storage_key != of.storage_key || of.custom) continue;
    add(each.name, kind_of(each.group, each.version, each.kind));
    below.back().as_object()["verbs"] = strings(words(each.verbs));
  }
  if (!below.empty()) result["subresources"] = std::move(below);
  return result;
}

json::object describe_whole(const cluster& in, const group& of) {
  json::array versions;
  for (const auto& version : of.versions) {
    json::array all;
    in.kinds.for_each([&](const std::shared_ptr<const resource>& kind) {
      const auto* served = kind->group == of.name ? kind->find(version) : nullptr;
      if (served != nullptr) all.push_back(describe_whole(*kind, *served));
    });
    versions.push_back(
        {{"version", version}, {"resources", std::move(all)}, {"freshness", "Current"}});
  }
  json::object metadata{{"creationTimestamp", nullptr}};
  if (!of.name.empty()) metadata["name"] = of.name;
  return {{"metadata", std::move(metadata)}, {"versions", std::move(versions)}};
}

}  // namespace

bool wants_aggregated_discovery(std::string_view accept) {
  const auto first = accept.substr(0, accept.find(','));
  const auto names = [&](std::string_view parameter) {
    return first.find(parameter) != std::string_view::npos;
  };
  return names("application/json") && names("g=apidiscovery.k8s.io") && names("v=v2") &&
         !names("v=v2beta1") && names("as=APIGroupDiscoveryList");
}

std::optional<json::value> discover_all(const cluster& in, const std::vector<std::string>& path) {
  if (path.size() != 1 || (path[0] != "api" && path[0] != "apis")) return {};
  json::array items;
  if (path[0] == "api") {
    items.push_back(describe_whole(in, {"", {"v1"}}));
  } else {
    for (const auto& group : groups_of(in)) items.push_back(describe_whole(in, group));
  }
  return json::value{{"kind", "APIGroupDiscoveryList"},
                     {"apiVersion", "apidiscovery.k8s.io/v2"},
                     {"metadata", json::object()},
                     {"items", std::move(items)}};
}

std::optional<json::value> discover(const cluster& in, const std::vector<std::string>& path) {
  if (path.empty()) {
    return json::value{{"paths",
                        {"/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2",
                         "/openapi/v3", "/readyz", "/version"}}};
  }
  if (path[0] == "api" && path.size() == 1) {
    return json::value{{"kind", "APIVersions"},
                       {"versions", json::array{"v1"}},
                       {"serverAddressByClientCIDRs", json::array()}};
  }
  if (path[0] == "api" && path.size() == 2) return resources_of(in, "", path[1]);
  if (path[0] != "apis" || path.size() > 3) return {};
  if (path.size() == 3) return resources_of(in, path[1], path[2]);
  json::array all;
  for (const auto& group : groups_of(in)) {
    auto text = describe(group);
    if (path.size() == 1) {
      all.push_back(std::move(text));
    } else if (group.name == path[1]) {
      text.as_object()["kind"] = "APIGroup";
      text.as_object()["apiVersion"] = "v1";
      return text;
    }
  }
  if (path.size() == 2) return {};
  return json::value{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(all)}};
}

json::value version_info(std::string_view version) {
  const auto digits = version.substr(version.starts_with('v') ? 1 : 0);
  const auto dot = std::min(digits.find('.'), digits.size());
  const auto minor = digits.substr(std::min(dot + 1, digits.size()));
  return {{"major", digits.substr(0, dot)},
          {"minor", minor.substr(0, minor.find_first_not_of("0123456789"))},
          {"gitVersion", version},
          {"gitCommit", ""},
          {"gitTreeState", ""},
          {"buildDate", "1970-01-01T00:00:00Z"},
          {"goVersion", ""},
          {"compiler", ""},
          {"platform", ""}};
}

}  // namespace rw::k8s::devserver
