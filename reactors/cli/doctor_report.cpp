#include "rw/reactors/cli/doctor_report.hpp"

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>

namespace rw::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t state_width = 12;
constexpr std::size_t check_width = 14;

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.append(width > out.size() ? width - out.size() : 1, ' ');
  return out;
}

/// As people read it.
std::string_view words_of(finding_state state) {
  return state == finding_state::not_proven ? "not proven" : to_string(state);
}

/// The strings of a list; a single empty one if there is no list.
std::vector<std::string> strings_of(const json::value& rule, std::string_view field) {
  std::vector<std::string> out;
  const auto* const list = k8s::find(rule, {field});
  if (list == nullptr || !list->is_array()) return {std::string()};
  for (const auto& entry : list->get_array()) out.emplace_back(entry.as_string());
  return out;
}

void add_rights(const json::value& rule, const std::string& ns, std::vector<access_right>& to) {
  for (const auto& group : strings_of(rule, "apiGroups")) {
    for (const auto& resource : strings_of(rule, "resources")) {
      const auto slash = std::min(resource.find('/'), resource.size());
      for (const auto& name : strings_of(rule, "resourceNames")) {
        for (const auto& verb : strings_of(rule, "verbs")) {
          to.push_back({verb, group, resource.substr(0, slash),
                        slash < resource.size() ? resource.substr(slash + 1) : "", ns, name});
        }
      }
    }
  }
}

}  // namespace

std::string_view to_string(finding_state state) noexcept {
  static constexpr std::array<std::string_view, 3> names{"proven", "failed", "not_proven"};
  return names[static_cast<std::size_t>(state)];
}

std::string text_of(const finding& of) {
  const auto state = of.state == finding_state::failed ? "FAILED" : words_of(of.state);
  auto out = padded(state, state_width) + padded(of.check, check_width) + of.message + "\n";
  if (!of.remedy.empty()) {
    out += std::string(state_width + check_width, ' ') + "fix: " + of.remedy + "\n";
  }
  return out;
}

json::value json_of(const finding& of) {
  json::object out{{"state", to_string(of.state)}, {"check", of.check}, {"message", of.message}};
  if (!of.reason.empty()) out["reason"] = of.reason;
  if (!of.remedy.empty()) out["fix"] = of.remedy;
  if (!of.runtime.empty()) out["runtime"] = of.runtime;
  return out;
}

std::optional<finding> check_orphan(const json::value& bootstrapper, bool may_release,
                                    std::chrono::system_clock::time_point now) {
  if (!k8s::is_being_deleted(bootstrapper) ||
      !k8s::has_finalizer(bootstrapper, bootstrapper::finalizer)) {
    return std::nullopt;
  }
  const auto since =
      k8s::parse_rfc3339(k8s::find_string(bootstrapper, {"metadata", "deletionTimestamp"}));
  const bool late = since && now > *since + std::chrono::minutes(2);
  if (may_release && !late) return std::nullopt;
  const auto name = k8s::key_of(bootstrapper).name;
  return finding{finding_state::failed, "bootstrappers",
                 "RuntimeBootstrapper " + name + " is deleted, and the manager, in mode off, " +
                     (may_release ? "has not released it" : "may not release it"),
                 may_release
                     ? bootstrapper::release_command(name)
                     : "grant deploy/manager/bootstrapper/rbac-direct.yaml, or release it: " +
                           bootstrapper::release_command(name)};
}

bool has_invalid_sources(const std::vector<finding>& findings) {
  return std::ranges::any_of(findings, [](const finding& each) {
    return each.check == "bootstrappers" &&
           each.reason == to_string(status_reason::content_rejected);
  });
}

bool is_placeholder(std::string_view host) noexcept {
  constexpr std::string_view reserved = "example.com";
  return host.ends_with(reserved) &&
         (host.size() == reserved.size() || host[host.size() - reserved.size() - 1] == '.');
}

std::string summary_of(const std::vector<finding>& all) {
  std::size_t total = 0;
  std::array<std::size_t, 3> counts{};
  for (const auto& each : all) {
    total += each.checks;
    counts[static_cast<std::size_t>(each.state)] += each.checks;
  }
  auto out = std::to_string(total) + (total == 1 ? " check:" : " checks:");
  for (const auto state :
       {finding_state::proven, finding_state::failed, finding_state::not_proven}) {
    const auto count = counts[static_cast<std::size_t>(state)];
    out += (state == finding_state::proven ? " " : ", ") + std::to_string(count) + " ";
    out += words_of(state);
  }
  return out + "\n";
}

std::string lease_remedy(const k8s::object_key& lease) {
  const doctor_settings by_default;
  const k8s::object_key usual{by_default.lease_namespace, by_default.lease_name};
  constexpr std::string_view see = "see the manager's Deployment, its pods and their logs";
  if (lease == usual) return std::string(see) + ", or apply it: " + std::string(apply_manager);
  return "check --lease-namespace and --lease-name: the manager's Lease is " +
         k8s::to_string(usual) + " by default; if " + k8s::to_string(lease) + " is right, " +
         std::string(see);
}

std::string text_of_order(std::size_t well, std::size_t all) {
  return std::to_string(well) + " of " + std::to_string(all) + (well == 1 ? " is" : " are") +
         " in order";
}

fleet_verdict judge_named(std::span<const judged_runtime> runtimes,
                          std::span<const fleet_fault> faults) {
  auto out = judge_fleet(runtimes, faults);
  std::vector<std::string> ill;
  for (const auto& each : runtimes) {
    if (each.condition == runtime_condition::ill) ill.push_back(each.kyma);
  }
  std::ranges::sort(ill);
  if (!ill.empty()) out.level = fleet_level::degraded;
  const auto well = out.count(runtime_condition::well);
  const auto shown = ill.empty() ? well : ill.size();
  out.message = std::string(to_string(out.level)) + ": " + std::to_string(shown) + " of " +
                std::to_string(out.expected()) +
                (out.expected() == 1 ? " named runtime" : " named runtimes") +
                (shown == 1 ? " is " : " are ") + (ill.empty() ? "well" : "ill: ") +
                first_of(ill, ill.size());
  const auto rest = out.expected() - well - ill.size();
  if (rest > 0) out.message += "; " + std::to_string(rest) + " not proven";
  if (!faults.empty()) out.message += "; " + faults.front().message;
  if (faults.size() > 1) out.message += ", and " + std::to_string(faults.size() - 1) + " more";
  return out;
}

std::vector<access_right> rights_of(const std::string& manifests) {
  const auto objects = k8s::parse_manifests(manifests);
  if (!objects) throw std::invalid_argument("roles: " + objects.error().message());
  std::vector<access_right> out;
  for (const auto& object : *objects) {
    const auto kind = k8s::find_string(object, {"kind"});
    if (kind != "Role" && kind != "ClusterRole") continue;
    std::ranges::move(rights_of_role(object), std::back_inserter(out));
  }
  return out;
}

std::vector<access_right> rights_of_role(const json::value& role) {
  std::vector<access_right> out;
  const auto ns = k8s::find_string(role, {"kind"}) == "Role" ? k8s::key_of(role).ns : std::string();
  const auto* const rules = k8s::find_array(role, {"rules"});
  for (const auto& rule : rules == nullptr ? json::array() : *rules) add_rights(rule, ns, out);
  return out;
}

}  // namespace rw::cli
