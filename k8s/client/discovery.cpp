#include "rw/k8s/client/discovery.hpp"

#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

namespace rw::k8s {
namespace {

namespace json = boost::json;

std::vector<std::string> strings(const json::array& from) {
  std::vector<std::string> out;
  for (const auto& entry : from) {
    if (entry.is_string()) out.emplace_back(std::string_view(entry.get_string()));
  }
  return out;
}

std::optional<discovered_resource> resource_of(const json::value& from,
                                               const group_version_kind& of) {
  discovered_resource out;
  out.type.gvk = of;
  out.type.gvk.kind = find_string(from, {"kind"});
  out.type.plural = find_string(from, {"name"});
  const auto* namespaced = find(from, {"namespaced"});
  out.type.namespaced = namespaced != nullptr && namespaced->is_bool() && namespaced->get_bool();
  if (const auto* verbs = find_array(from, {"verbs"})) out.verbs = strings(*verbs);
  if (out.type.plural.empty() || out.type.gvk.kind.empty()) return std::nullopt;
  return out;
}

/// The number that a version begins with: managed clusters write "20+".
std::optional<unsigned> number_of(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<std::vector<discovered_resource>> resources_of(const json::value& response,
                                                             const group_version_kind& of) {
  const auto* list = find_array(response, {"resources"});
  if (list == nullptr) return std::nullopt;
  std::vector<discovered_resource> out;
  std::set<std::string> with_status;
  for (const auto& entry : *list) {
    auto found = resource_of(entry, of);
    if (!found) return std::nullopt;
    const auto slash = found->type.plural.find('/');
    if (slash == std::string::npos) {
      out.push_back(std::move(*found));
    } else if (found->type.plural.substr(slash) == "/status") {
      with_status.insert(found->type.plural.substr(0, slash));
    }
  }
  for (auto& each : out) each.has_status = with_status.contains(each.type.plural);
  return out;
}

std::optional<std::vector<std::string>> versions_of(const json::value& response,
                                                    std::string_view group) {
  if (group.empty()) {
    const auto* versions = find_array(response, {"versions"});
    return versions == nullptr ? std::nullopt : std::optional(strings(*versions));
  }
  const auto* groups = find_array(response, {"groups"});
  if (groups == nullptr) return std::nullopt;
  std::vector<std::string> out;
  const auto at = std::ranges::find_if(
      *groups, [&](const json::value& entry) { return find_string(entry, {"name"}) == group; });
  if (at == groups->end()) return out;
  const auto* versions = find_array(*at, {"versions"});
  if (versions == nullptr) return std::nullopt;
  for (const auto& version : *versions) out.emplace_back(find_string(version, {"version"}));
  const auto preferred = std::ranges::find(out, find_string(*at, {"preferredVersion", "version"}));
  if (preferred != out.end()) std::rotate(out.begin(), preferred, preferred + 1);
  return out;
}

std::optional<std::pair<unsigned, unsigned>> server_version_of(const json::value& response) {
  const auto major = number_of(find_string(response, {"major"}));
  const auto minor = number_of(find_string(response, {"minor"}));
  if (!major || !minor) return std::nullopt;
  return std::pair(*major, *minor);
}

void discovery_cache::keep(const std::string& api_version,
                           const std::vector<discovered_resource>& found, core::time_point now) {
  auto& kept = by_version_[api_version];
  kept.until = now + lifetime;
  kept.types.clear();
  for (const auto& resource : found) kept.types.push_back(resource.type);
}

std::optional<resource_type> discovery_cache::find(const group_version_kind& gvk,
                                                   core::time_point now) const {
  const auto at = by_version_.find(gvk.api_version());
  if (at == by_version_.end() || at->second.until <= now) return std::nullopt;
  for (const auto& type : at->second.types) {
    if (type.gvk.kind == gvk.kind) return type;
  }
  return std::nullopt;
}

}  // namespace rw::k8s
