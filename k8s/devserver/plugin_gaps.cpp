#include "rw/k8s/devserver/plugin_gaps.hpp"

#include "rw/k8s/devserver/json_access.hpp"

#include <boost/json/object.hpp>

#include <algorithm>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Returns true if the quota counts objects of the resource, or what they ask for.
bool counts(std::string_view entry, const resource& of) {
  const auto is = [&](std::string_view resource) { return of.storage_key == resource; };
  if (entry == of.plural || entry == "count/" + of.storage_key) return true;
  if (is("services")) return entry.starts_with("services.");
  if (is("persistentvolumeclaims")) {
    return entry == "requests.storage" || entry.find(".storageclass.") != std::string_view::npos;
  }
  const bool of_pods = entry == "cpu" || entry == "memory" || entry == "ephemeral-storage" ||
                       entry.starts_with("requests.") || entry.starts_with("limits.") ||
                       entry.starts_with("hugepages-");
  return is("pods") && of_pods;
}

template <class Visit>
void each(const cluster& in, const std::string& storage_key, std::string_view ns, Visit visit) {
  const auto objects = in.objects.find(storage_key);
  if (!objects) return;
  for (const auto& record : objects->all(ns)) visit(record->parse());
}

std::string name_of(const json::value& object) {
  return "\"" + std::string(find_string(object, {"metadata", "name"})) + "\"";
}

/// Adds a gap if a class is the default, and the object names none.
void add_default_class(const cluster& in, const std::string& classes, std::string_view annotation,
                       std::string_view kind, std::vector<std::string>& gaps) {
  each(in, classes, {}, [&](const json::value& object) {
    if (find_string(object, {"metadata", "annotations", annotation}) != "true") return;
    gaps.push_back(std::string(kind) + " " + name_of(object) +
                   ": this API server sets no default class");
  });
}

void add_quotas(const cluster& in, const resource& of, std::string_view ns,
                std::vector<std::string>& gaps) {
  each(in, "resourcequotas", ns, [&](const json::value& quota) {
    const auto* const hard = find(quota, {"spec", "hard"});
    if (hard == nullptr || !hard->is_object()) return;
    const auto covers = [&](const auto& entry) { return counts(entry.key(), of); };
    if (std::ranges::none_of(hard->get_object(), covers)) return;
    gaps.push_back("ResourceQuota " + name_of(quota) + ": this API server enforces no quotas");
  });
}

}  // namespace

void add_plugin_gaps(const cluster& in, const resource& of, std::string_view ns,
                     const json::value& object, std::vector<std::string>& gaps) {
  const auto is = [&](std::string_view storage_key) { return of.storage_key == storage_key; };
  if (!ns.empty()) add_quotas(in, of, ns, gaps);
  if (is("pods") || is("persistentvolumeclaims")) {
    each(in, "limitranges", ns, [&](const json::value& range) {
      gaps.push_back("LimitRange " + name_of(range) + ": this API server applies no limits");
    });
  }
  if (is("pods") && !find_string(object, {"spec", "runtimeClassName"}).empty()) {
    gaps.emplace_back("spec.runtimeClassName: this API server reads no RuntimeClasses");
  }
  if (is("persistentvolumeclaims") && find(object, {"spec", "storageClassName"}) == nullptr) {
    add_default_class(in, "storageclasses.storage.k8s.io",
                      "storageclass.kubernetes.io/is-default-class", "StorageClass", gaps);
  }
  if (is("ingresses.networking.k8s.io") && find(object, {"spec", "ingressClassName"}) == nullptr) {
    add_default_class(in, "ingressclasses.networking.k8s.io",
                      "ingressclass.kubernetes.io/is-default-class", "IngressClass", gaps);
  }
}

}  // namespace rw::k8s::devserver
