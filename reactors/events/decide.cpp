#include "rw/reactors/events/decide.hpp"

#include "rw/core/http/message.hpp"

#include <algorithm>

namespace rw::admission {

first_look look(bool dry_run, std::string_view operation, std::string_view subresource,
                std::span<const std::string> watched) noexcept {
  using part = first_look::part;
  if (dry_run) return {.settled = review_effect::dry_run};
  if (operation == "CREATE") return {};
  if (operation == "DELETE") return {.prefers_old_object = true};
  if (operation == "CONNECT") return {.settled = review_effect::connect_unsupported};
  if (operation != "UPDATE") return {.settled = review_effect::unknown_operation};
  if (subresource.empty()) return {.compare = part::spec};
  if (http::iequals(subresource, "status")) return {.compare = part::status};
  if (std::ranges::find(watched, subresource) != watched.end()) return {};
  return {.settled = review_effect::invalid_subresource};
}

std::optional<review_version> parse_review_version(std::string_view api_version,
                                                   std::string_view kind) noexcept {
  if (!kind.empty() && kind != "AdmissionReview") return std::nullopt;
  if (api_version.empty() || api_version == "admission.k8s.io/v1") return review_version::v1;
  if (api_version == "admission.k8s.io/v1beta1") return review_version::v1beta1;
  return std::nullopt;
}

review_effect make_event(const event_parts& parts, rw::watch_event& event) {
  const auto name = parts.object_name.empty() ? parts.name : parts.object_name;
  const bool untyped = parts.kind.empty();
  const auto kind = untyped ? parts.object_kind : parts.kind;
  if (name.empty() || kind.empty()) return review_effect::unidentified;
  // An apiVersion such as "apps/v1", or "v1" of the core group.
  const auto& group_version = parts.object_api_version;
  const auto slash = std::min(group_version.find('/'), group_version.size());
  const bool core = slash == group_version.size();
  const auto group = !untyped ? parts.group
                     : core   ? std::string_view()
                              : group_version.substr(0, slash);
  const auto version = !untyped ? parts.version
                       : core   ? group_version
                                : group_version.substr(slash + 1);
  // The request for a Namespace has its own name as its namespace (k8s.io/apiserver, RequestInfo).
  const bool is_namespace = group.empty() && kind == "Namespace";
  const bool has_namespace = !parts.object_name.empty() && !parts.object_ns.empty();
  const auto ns = has_namespace ? parts.object_ns : is_namespace ? std::string_view() : parts.ns;
  if (!names_fit({name, ns, group, version, kind})) return review_effect::name_too_long;
  event.watched = {std::string(ns), std::string(name)};
  event.gvk = {std::string(group), std::string(version), std::string(kind)};
  return review_effect::event;
}

}  // namespace rw::admission
