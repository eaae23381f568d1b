#include "rw/k8s/devserver/roles.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/refusals.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::string_view group_suffix = ".rbac.authorization.k8s.io";

bool lists(const json::value& rule, std::string_view field, std::string_view wanted) {
  return std::ranges::any_of(array_at(rule, {field}), [wanted](const json::value& entry) {
    return entry.is_string() && (entry.get_string() == "*" || view(entry.get_string()) == wanted);
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

bool is_bound(const json::value& binding, const identity& user, std::string_view home) {
  return std::ranges::any_of(array_at(binding, {"subjects"}), [&](const json::value& subject) {
    const auto kind = find_string(subject, {"kind"});
    const auto name = find_string(subject, {"name"});
    if (kind == "User") return name == user.user;
    if (kind == "Group") return user.in(name);
    return kind == "ServiceAccount" && account_name(subject, home) == user.user;
  });
}

using rule_taker = std::function<bool(const json::value&)>;

bool any_of(const json::array& rules, const rule_taker& take) {
  return std::any_of(rules.begin(), rules.end(),
                     [&](const json::value& rule) { return rule.is_object() && take(rule); });
}

/// A role that a binding refers to, as its rules; nothing if there is none.
std::optional<json::array> rules_of(const cluster& in, const json::value& binding,
                                    std::string_view home) {
  const auto name = find_string(binding, {"roleRef", "name"});
  const bool of_cluster = find_string(binding, {"roleRef", "kind"}) == "ClusterRole";
  if (of_cluster && name == "cluster-admin") return every_right();
  const auto roles =
      in.objects.find((of_cluster ? "clusterroles" : "roles") + std::string(group_suffix));
  const auto role = roles ? roles->find(storage_path(of_cluster ? "" : home, name)) : nullptr;
  if (!role) return std::nullopt;
  return array_at(role->parse(), {"rules"});
}

bool any_bound_rule(const cluster& in, std::string_view kind, std::string_view ns,
                    const identity& user, const rule_taker& take) {
  const auto bindings = in.objects.find(std::string(kind) + std::string(group_suffix));
  if (!bindings) return false;
  return std::ranges::any_of(bindings->all(ns), [&](const record_ptr& record) {
    const auto binding = record->parse();
    if (!is_bound(binding, user, record->ns())) return false;
    const auto rules = rules_of(in, binding, record->ns());
    return rules && any_of(*rules, take);
  });
}

/// "/api/*" stands for all that begins with "/api/".
bool names_path(const json::value& rule, std::string_view path) {
  return std::ranges::any_of(array_at(rule, {"nonResourceURLs"}), [&](const json::value& entry) {
    if (!entry.is_string()) return false;
    const auto text = view(entry.get_string());
    return text == path ||
           (text.ends_with('*') && path.starts_with(text.substr(0, text.size() - 1)));
  });
}

/// Calls `take` with each combination of what a rule grants; false as soon as that returns false.
bool each_right(const json::value& rule, const std::function<bool(const wanted_access&)>& take) {
  static const json::array no_name{""};
  const auto texts = [](const json::array& from) {
    std::vector<std::string> all;
    for (const auto& subject : from) {
      if (subject.is_string()) all.emplace_back(view(subject.get_string()));
    }
    return all;
  };
  const auto& limits = array_at(rule, {"resourceNames"});
  const auto names = texts(limits.empty() ? no_name : limits);
  for (const auto& verb : texts(array_at(rule, {"verbs"}))) {
    for (const auto& group : texts(array_at(rule, {"apiGroups"}))) {
      for (const auto& resource : texts(array_at(rule, {"resources"}))) {
        const auto slash = std::min(resource.find('/'), resource.size());
        for (const auto& name : names) {
          const auto below = resource.substr(std::min(slash + 1, resource.size()));
          if (!take({verb, group, resource.substr(0, slash), below, {}, name})) return false;
        }
      }
    }
  }
  return true;
}

bool has_right(const cluster& in, const identity& user, std::string_view ns,
               const json::value& rule) {
  const auto held = [&](const rule_taker& take) { return any_rule(in, user, ns, take); };
  for (const auto& verb : array_at(rule, {"verbs"})) {
    for (const auto& path : array_at(rule, {"nonResourceURLs"})) {
      if (!verb.is_string() || !path.is_string()) return false;
      const auto covers = [&](const json::value& own) {
        return lists(own, "verbs", view(verb.get_string())) &&
               names_path(own, view(path.get_string()));
      };
      if (!held(covers)) return false;
    }
  }
  return each_right(rule, [&](const wanted_access& wanted) {
    return held([&](const json::value& own) { return grants(own, wanted); });
  });
}

}  // namespace

const json::array& every_right() {
  static const json::array all{
      {{"verbs", json::array{"*"}},
       {"apiGroups", json::array{"*"}},
       {"resources", json::array{"*"}}},
      {{"verbs", json::array{"*"}}, {"nonResourceURLs", json::array{"*"}}},
  };
  return all;
}

bool any_rule(const cluster& in, const identity& user, std::string_view ns,
              const rule_taker& take) {
  if (user.in("system:masters") && any_of(every_right(), take)) return true;
  if (any_bound_rule(in, "clusterrolebindings", {}, user, take)) return true;
  return !ns.empty() && any_bound_rule(in, "rolebindings", ns, user, take);
}

bool grants(const json::value& rule, const wanted_access& wanted) {
  if (!lists(rule, "verbs", wanted.verb) || !lists(rule, "apiGroups", wanted.group) ||
      !names_resource(rule, wanted)) {
    return false;
  }
  const auto& names = array_at(rule, {"resourceNames"});
  return names.empty() || std::ranges::any_of(names, [&](const json::value& name) {
           return name.is_string() && !wanted.name.empty() &&
                  view(name.get_string()) == wanted.name;
         });
}

bool is_allowed(const cluster& in, const identity& user, const wanted_access& wanted) {
  return any_rule(in, user, wanted.ns,
                  [&](const json::value& rule) { return grants(rule, wanted); });
}

bool may_visit(const cluster& in, const identity& user, std::string_view verb,
               std::string_view path) {
  static const json::value common{{"nonResourceURLs",
                                   {"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez",
                                    "/openapi", "/openapi/*", "/readyz", "/version", "/version/"}}};
  if (verb == "get" && user.in("system:authenticated") && names_path(common, path)) return true;
  return any_rule(in, user, {}, [&](const json::value& rule) {
    return lists(rule, "verbs", verb) && names_path(rule, path);
  });
}

outcome<void> check_escalation(const cluster& in, const identity& user, const json::value& before,
                               const json::value& object) {
  const auto kind = find_string(object, {"kind"});
  const bool binds = kind.ends_with("Binding");
  const auto ns = std::string(find_string(object, {"metadata", "namespace"}));
  const auto name = std::string(find_string(object, {"metadata", "name"}));
  const bool of_cluster =
      binds ? find_string(object, {"roleRef", "kind"}) == "ClusterRole" : kind == "ClusterRole";
  const std::string role = binds ? std::string(find_string(object, {"roleRef", "name"})) : name;
  const std::string roles = of_cluster ? "clusterroles" : "roles";
  const auto same = [&](std::string_view field) {
    const auto* const was = find(before, {field});
    const auto* const is = find(object, {field});
    return was != nullptr && is != nullptr && *was == *is;
  };
  if (binds ? same("subjects") && same("roleRef") : same("rules")) return {};
  const auto group = std::string(group_suffix.substr(1));
  if (is_allowed(in, user, {binds ? "bind" : "escalate", group, roles, {}, ns, role})) return {};
  const auto rules = binds ? rules_of(in, object, ns) : std::optional(array_at(object, {"rules"}));
  if (!rules) return not_found({group, roles, role});
  std::string missing;
  for (const auto& rule : *rules) {
    if (rule.is_object() && !has_right(in, user, ns, rule)) missing += "\n" + json::serialize(rule);
  }
  if (missing.empty()) return {};
  const auto plural = core::lower(kind) + "s";
  return forbidden({group, plural, name},
                   "user \"" + user.user +
                       "\" is attempting to grant RBAC permissions not currently held:" + missing);
}

problem access_denied(const identity& user, const wanted_access& wanted) {
  auto resource = wanted.resource;
  if (!wanted.subresource.empty()) resource += "/" + wanted.subresource;
  return forbidden({wanted.group, wanted.resource, wanted.name},
                   "User \"" + user.user + "\" cannot " + wanted.verb + " resource \"" + resource +
                       "\" in API group \"" + wanted.group + "\" " +
                       (wanted.ns.empty() ? std::string("at the cluster scope")
                                          : "in the namespace \"" + wanted.ns + "\""));
}

}  // namespace rw::k8s::devserver
