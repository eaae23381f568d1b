#include "rw/k8s/devserver/roles.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/refusals.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <string_view>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::string_view group_suffix = ".rbac.authorization.k8s.io";

const json::array& list_at(const json::value& from, std::string_view field) {
  static const json::array none;
  const auto* found = find(from, {field});
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

bool lists(const json::value& rule, std::string_view field, std::string_view wanted) {
  return std::ranges::any_of(list_at(rule, field), [wanted](const json::value& one) {
    return one.is_string() && (one.get_string() == "*" || view(one.get_string()) == wanted);
  });
}

/// "pods", "pods/log", "*/scale", "*".
bool names_resource(const json::value& rule, const wanted_access& wanted) {
  auto full = wanted.resource;
  if (!wanted.subresource.empty()) full += "/" + wanted.subresource;
  if (lists(rule, "resources", full)) return true;
  return !wanted.subresource.empty() && lists(rule, "resources", "*/" + wanted.subresource);
}

std::string account_name(const json::value& subject, std::string_view home) {
  const auto ns = find_string(subject, {"namespace"});
  return "system:serviceaccount:" + std::string(ns.empty() ? home : ns) + ":" +
         std::string(find_string(subject, {"name"}));
}

bool is_bound(const json::value& binding, const identity& who, std::string_view home) {
  return std::ranges::any_of(list_at(binding, "subjects"), [&](const json::value& subject) {
    const auto kind = find_string(subject, {"kind"});
    const auto name = find_string(subject, {"name"});
    if (kind == "User") return name == who.user;
    if (kind == "Group") return who.in(name);
    return kind == "ServiceAccount" && account_name(subject, home) == who.user;
  });
}

bool role_grants(const cluster& in, const json::value& binding, std::string_view home,
                 const wanted_access& wanted) {
  const auto name = find_string(binding, {"roleRef", "name"});
  const bool of_cluster = find_string(binding, {"roleRef", "kind"}) == "ClusterRole";
  if (of_cluster && name == "cluster-admin") return true;
  const auto roles =
      in.objects.find((of_cluster ? "clusterroles" : "roles") + std::string(group_suffix));
  const auto role = roles ? roles->find(storage_path(of_cluster ? "" : home, name)) : nullptr;
  if (!role) return false;
  const auto object = role->parse();
  return std::ranges::any_of(list_at(object, "rules"),
                             [&](const json::value& rule) { return grants(rule, wanted); });
}

bool any_binding_grants(const cluster& in, std::string_view kind, std::string_view ns,
                        const identity& who, const wanted_access& wanted) {
  const auto bindings = in.objects.find(std::string(kind) + std::string(group_suffix));
  if (!bindings) return false;
  return std::ranges::any_of(bindings->all(ns), [&](const record_ptr& one) {
    const auto binding = one->parse();
    return is_bound(binding, who, one->ns()) && role_grants(in, binding, one->ns(), wanted);
  });
}

}  // namespace

bool grants(const json::value& rule, const wanted_access& wanted) {
  if (!lists(rule, "verbs", wanted.verb) || !lists(rule, "apiGroups", wanted.group) ||
      !names_resource(rule, wanted)) {
    return false;
  }
  const auto& names = list_at(rule, "resourceNames");
  return names.empty() || std::ranges::any_of(names, [&](const json::value& one) {
           return one.is_string() && !wanted.name.empty() && view(one.get_string()) == wanted.name;
         });
}

bool is_allowed(const cluster& in, const identity& who, const wanted_access& wanted) {
  if (who.in("system:masters")) return true;
  if (any_binding_grants(in, "clusterrolebindings", {}, who, wanted)) return true;
  return !wanted.ns.empty() && any_binding_grants(in, "rolebindings", wanted.ns, who, wanted);
}

problem access_denied(const identity& who, const wanted_access& wanted) {
  auto resource = wanted.resource;
  if (!wanted.subresource.empty()) resource += "/" + wanted.subresource;
  return forbidden({wanted.group, wanted.resource, wanted.name},
                   "User \"" + who.user + "\" cannot " + wanted.verb + " resource \"" + resource +
                       "\" in API group \"" + wanted.group + "\" " +
                       (wanted.ns.empty() ? std::string("at the cluster scope")
                                          : "in the namespace \"" + wanted.ns + "\""));
}

}  // namespace rw::k8s::devserver
