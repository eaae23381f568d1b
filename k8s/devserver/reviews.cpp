#include "rw/k8s/devserver/reviews.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/roles.hpp"
#include "rw/k8s/devserver/write_rules.hpp"
#include "rw/k8s/devserver/writes.hpp"

#include <boost/json/array.hpp>

#include <utility>

// Kubernetes, "pkg/apis/authorization/validation" and "pkg/registry/core/serviceaccount/storage".

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::int64_t shortest_token = 600;  // seconds
constexpr std::int64_t longest_token = std::int64_t{1} << 32;

cause invalid_value(std::string field, std::string_view reason) {
  return {std::move(field), "FieldValueInvalid", "Invalid value: " + std::string(reason)};
}

json::value user_info(const identity& user) {
  json::object info{{"username", user.user},
                    {"groups", json::array(user.groups.begin(), user.groups.end())}};
  if (!user.credential.empty()) {
    info["extra"] = {
        {"authentication.kubernetes.io/credential-id", json::array{"JTI=" + user.credential}}};
  }
  return info;
}

std::vector<cause> errors_of(const call& to, const json::value& review) {
  std::vector<cause> found;
  const auto* const resource = find(review, {"spec", "resourceAttributes"});
  const auto* const other = find(review, {"spec", "nonResourceAttributes"});
  if (resource != nullptr && other != nullptr) {
    found.push_back(invalid_value("spec.nonResourceAttributes",
                                  "cannot be specified in combination with resourceAttributes"));
  } else if (resource == nullptr && other == nullptr) {
    found.push_back(invalid_value(
        "spec.resourceAttributes",
        "exactly one of nonResourceAttributes or resourceAttributes must be specified"));
  }
  if (to.view.of->kind == "SelfSubjectAccessReview") return found;
  const auto* const groups = find(review, {"spec", "groups"});
  const bool has_groups = groups != nullptr && !groups->as_array().empty();
  if (find_string(review, {"spec", "user"}).empty() && !has_groups) {
    found.push_back(invalid_value("spec.user", "at least one of user or group must be specified"));
  }
  if (!to.view.of->namespaced) return found;
  if (other != nullptr) {
    found.push_back(
        invalid_value("spec.nonResourceAttributes", "disallowed on this kind of request"));
  }
  if (resource != nullptr && find_string(*resource, {"namespace"}) != to.key.ns) {
    found.push_back(
        invalid_value("spec.resourceAttributes.namespace", "must match metadata.namespace"));
  }
  return found;
}

wanted_access wanted_in(const json::value& attributes) {
  const auto text = [&](std::string_view field) {
    return std::string(find_string(attributes, {field}));
  };
  return {text("verb"),        text("group"),     text("resource"),
          text("subresource"), text("namespace"), text("name")};
}

identity subject_of(const json::value& review) {
  identity user{std::string(find_string(review, {"spec", "user"})), {}};
  const auto* const groups = find(review, {"spec", "groups"});
  if (groups == nullptr) return user;
  for (const auto& group : groups->as_array()) user.groups.emplace_back(group.as_string());
  return user;
}

/// What every user may do: the cluster roles system:basic-user, system:discovery and
/// system:public-info-viewer.
void add_common_rules(json::array& resources, json::array& paths) {
  resources.push_back({{"verbs", json::array{"create"}},
                       {"apiGroups", json::array{"authorization.k8s.io"}},
                       {"resources", {"selfsubjectaccessreviews", "selfsubjectrulesreviews"}}});
  resources.push_back({{"verbs", json::array{"create"}},
                       {"apiGroups", json::array{"authentication.k8s.io"}},
                       {"resources", json::array{"selfsubjectreviews"}}});
  paths.push_back({{"verbs", json::array{"get"}},
                   {"nonResourceURLs",
                    {"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi",
                     "/openapi/*", "/readyz", "/version", "/version/"}}});
  paths.push_back(
      {{"verbs", json::array{"get"}},
       {"nonResourceURLs", {"/healthz", "/livez", "/readyz", "/version", "/version/"}}});
}

/// Checks that what a token is bound to exists.
outcome<void> check_bound(const call& to, const json::value& request) {
  const auto* const bound = find(request, {"spec", "boundObjectRef"});
  if (bound == nullptr) return {};
  const auto kind = find_string(*bound, {"kind"});
  const std::string plural = kind == "Pod"      ? "pods"
                             : kind == "Secret" ? "secrets"
                             : kind == "Node"   ? "nodes"
                                                : "";
  if (plural.empty()) {
    return bad_request("cannot bind token to object of type " +
                       std::string(find_string(*bound, {"apiVersion"})) + ", " + std::string(kind));
  }
  const auto name = find_string(*bound, {"name"});
  const auto objects = to.in->objects.find(plural);
  const auto found =
      objects ? objects->find(storage_path(plural == "nodes" ? "" : to.key.ns, name)) : nullptr;
  const auto uid = find_string(*bound, {"uid"});
  if (!found) return not_found({"", plural, name});
  if (!uid.empty() && find_string(found->parse(), {"metadata", "uid"}) != uid) {
    return conflict({"", plural, name}, "the UID in the bound object reference does not match");
  }
  return {};
}

/// Sets a TokenRequest's defaults, and checks it: `audiences` where it has none.
outcome<json::value> complete_token_request(const call& to, json::value request,
                                            const std::vector<std::string>& audiences) {
  auto& fields = request.get_object();
  fields["metadata"] = {{"name", to.key.name}, {"namespace", to.key.ns}};
  auto& spec = object_in(fields, "spec");
  set_default(spec, "expirationSeconds", 3600);
  set_default(spec, "boundObjectRef", nullptr);
  const auto* const given = spec.if_contains("audiences");
  if (given == nullptr || !given->is_array() || given->get_array().empty()) {
    spec["audiences"] = json::array(audiences.begin(), audiences.end());
  }
  const auto lifetime = integer_at(request, {"spec", "expirationSeconds"}).value_or(0);
  if (lifetime >= shortest_token && lifetime <= longest_token) return request;
  return invalid({"authentication.k8s.io", "TokenRequest", to.key.name},
                 {invalid_value("spec.expirationSeconds",
                                lifetime < shortest_token
                                    ? "may not specify a duration less than 10 minutes"
                                    : "may not specify a duration larger than 2^32 seconds")});
}

outcome<json::value> parse_token_request(const call& to, const http::request& from,
                                         const std::vector<std::string>& audiences) {
  auto request = parse_part(to, from);
  if (request.has_error()) return request.error();
  if (!to.objects()->find(to.path())) return not_found(to.target());
  return complete_token_request(to, std::move(*request), audiences);
}

}  // namespace

bool is_own_review(std::string_view group, std::string_view plural) noexcept {
  return (group == "authorization.k8s.io" || group == "authentication.k8s.io") &&
         plural.starts_with("selfsubject");
}

bool account_exists(const cluster& in, const identity& user) {
  if (user.account_uid.empty()) return true;
  const auto accounts = in.objects.find("serviceaccounts");
  const auto account =
      accounts ? accounts->find(storage_path(user.account.ns, user.account.name)) : nullptr;
  return account && find_string(account->parse(), {"metadata", "uid"}) == user.account_uid;
}

outcome<json::value> reviews::access_of(const call& to, const json::value& review) const {
  const bool own = to.view.of->kind == "SelfSubjectAccessReview";
  const auto user = own ? to.by : subject_of(review);
  bool allowed = !parts_.authorization;
  if (const auto* const attributes = find(review, {"spec", "resourceAttributes"})) {
    const auto wanted = wanted_in(*attributes);
    allowed = allowed || is_allowed(*to.in, user, wanted) ||
              (wanted.verb == "create" && is_own_review(wanted.group, wanted.resource));
  } else {
    const auto* const path = find(review, {"spec", "nonResourceAttributes"});
    allowed = allowed ||
              may_visit(*to.in, user, find_string(*path, {"verb"}), find_string(*path, {"path"}));
  }
  return json::value{{"allowed", allowed}};
}

outcome<json::value> reviews::rules_of(const call& to, const json::value& review) const {
  const auto ns = find_string(review, {"spec", "namespace"});
  if (ns.empty()) return bad_request("no namespace on request");
  json::array resources;
  json::array paths;
  add_common_rules(resources, paths);
  const auto take = [&](const json::value& rule) {
    auto right = rule.as_object();
    if (right.contains("nonResourceURLs")) {
      paths.push_back(std::move(right));
    } else {
      resources.push_back(std::move(right));
    }
    return false;
  };
  if (parts_.authorization) {
    any_rule(*to.in, to.by, ns, take);
  } else {
    for (const auto& right : every_right()) take(right);
  }
  return json::value{{"resourceRules", std::move(resources)},
                     {"nonResourceRules", std::move(paths)},
                     {"incomplete", false}};
}

json::value reviews::token_of(const call& to, const json::value& review) const {
  const auto user = parts_.users.identify_token(find_string(review, {"spec", "token"}), to.in->name,
                                                parts_.clock.wall());
  if (user.has_error() || !account_exists(*to.in, *user)) {
    return {{"user", json::object()}, {"error", "the token is not valid"}};
  }
  return {{"authenticated", true},
          {"user", user_info(*user)},
          {"audiences", json::array(parts_.audiences.begin(), parts_.audiences.end())}};
}

outcome<json::value> reviews::status_of(const call& to, const json::value& review) const {
  const auto& kind = to.view.of->kind;
  if (kind == "SelfSubjectRulesReview") return rules_of(to, review);
  if (kind == "SelfSubjectReview") return json::value{{"userInfo", user_info(to.by)}};
  if (kind == "TokenReview") return token_of(to, review);
  return access_of(to, review);
}

outcome<json::value> reviews::parse(const call& to, const http::request& from) const {
  if (!to.view.of->review) return parse_token_request(to, from, parts_.audiences);
  auto review = parse_object(to, from);
  if (review.has_error()) return review.error();
  const auto with = write_options::parse(to);
  if (with.has_error()) return with.error();
  auto good = check_envelope(to, *review);
  if (good.has_error()) return good.error();
  good = prune_unknown(to, *review, *with);
  if (good.has_error()) return good.error();
  if (to.view.of->kind.ends_with("AccessReview")) {
    if (auto found = errors_of(to, *review); !found.empty()) {
      return invalid(to.what_kind(), std::move(found));
    }
  }
  return review;
}

outcome<json::value> reviews::issue(const call& to, json::value given) const {
  const auto account = to.objects()->find(to.path());
  if (!account) return not_found(to.target());
  // Webhooks may have changed it.
  auto request = complete_token_request(to, std::move(given), parts_.audiences);
  if (request.has_error()) return request.error();
  const auto& spec = request->at("spec");
  if (!spec.at("boundObjectRef").is_null()) {
    const auto good = check_bound(to, *request);
    if (good.has_error()) return good.error();
  }
  const auto end =
      parts_.clock.wall() + std::chrono::seconds(spec.at("expirationSeconds").as_int64());
  const auto uid = std::string(find_string(account->parse(), {"metadata", "uid"}));
  auto token = parts_.users.issue(to.in->name, {to.key.ns, to.key.name, uid}, spec.at("audiences"),
                                  parts_.clock.wall(), end);
  if (token.has_error()) return token.error();
  request->as_object()["status"] = {{"token", *token}, {"expirationTimestamp", format_time(end)}};
  return request;
}

void reviews::respond(const call& to, json::value object, http::response& into) const {
  if (!to.view.of->review) {
    const auto made = issue(to, std::move(object));
    return made.has_error() ? answer(into, made.error()) : answer(into, 201, *made);
  }
  auto status = status_of(to, object);
  if (status.has_error()) return answer(into, status.error());
  object.as_object()["status"] = std::move(*status);
  answer(into, 201, object);
  if (to.view.of->kind == "SelfSubjectRulesReview") {
    to.warnings->emplace_back(
        "kube-apiserver 1.34 lists one more rule of paths for all users, which is not known here");
  }
}

}  // namespace rw::k8s::devserver
