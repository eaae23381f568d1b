#include "reactors/admission/decide.hpp"

#include <algorithm>

namespace rw::admission {
namespace {

bool is_status(std::string_view subresource) noexcept {
  constexpr std::string_view status = "status";
  return std::ranges::equal(subresource, status, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

}  // namespace

first_look look(bool dry_run, std::string_view operation, std::string_view subresource,
                std::span<const std::string> watched) noexcept {
  using part = first_look::part;
  if (dry_run) return {.settled = verdict::dry_run};
  if (operation == "CREATE") return {};
  if (operation == "DELETE") return {.prefers_old_object = true};
  if (operation == "CONNECT") return {.settled = verdict::connect_unsupported};
  if (operation != "UPDATE") return {.settled = verdict::unknown_operation};
  if (subresource.empty()) return {.compare = part::spec};
  if (is_status(subresource)) return {.compare = part::status};
  if (std::ranges::find(watched, subresource) != watched.end()) return {};
  return {.settled = verdict::invalid_subresource};
}

std::optional<review_version> parse_review_version(std::string_view api_version) noexcept {
  if (api_version == "admission.k8s.io/v1") return review_version::v1;
  if (api_version == "admission.k8s.io/v1beta1") return review_version::v1beta1;
  return std::nullopt;
}

void split_api_version(std::string_view api_version, rw::group_version_kind& into) {
  const auto slash = api_version.find('/');
  const bool core = slash == std::string_view::npos;
  into.group = core ? std::string_view() : api_version.substr(0, slash);
  into.version = core ? api_version : api_version.substr(slash + 1);
}

bool parse_owner(std::string_view annotation, rw::object_key& owner) {
  const auto slash = annotation.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == annotation.size()) return false;
  const auto name = annotation.substr(slash + 1);
  if (name.find('/') != std::string_view::npos) return false;
  owner.ns = annotation.substr(0, slash);
  owner.name = name;
  return true;
}

}  // namespace rw::admission
