#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/access_right.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// What a check has shown of a part of an installation.
enum class finding_state : std::uint8_t {
  proven,      ///< it is in order
  failed,      ///< it is not
  not_proven,  ///< neither: something that the check needs is missing, or switched off
};

/// Returns "proven", "failed", "not_proven".
std::string_view to_string(finding_state state) noexcept;

/// What a check of `runtime-watcher doctor` has found.
struct finding {
  finding_state state = finding_state::proven;
  std::string check = {};    ///< "rights"
  std::string message = {};  ///< one sentence: the object, and its defect
  std::string remedy = {};   ///< what to do; empty if nothing is to be done
  /// The word that `status` shows for it, which the message names, too; empty: it has none there.
  std::string reason = {};
  std::string runtime = {};  ///< Kyma of the one runtime that it is about; empty: it is of more
  /// What several may be found of with one reason, as the manager names it: a resource
  /// ("kymas.operator.kyma-project.io"), a Watcher.
  std::string about = {};
  /// Number of checks in the sum of all findings. A line that sums others up counts only those that
  /// have no line of their own.
  std::size_t checks = 1;
};

inline constexpr std::string_view apply_manager = "kubectl apply -k deploy/manager";
inline constexpr std::string_view shadow_writes_nothing =
    "nothing is written with --shadow: start the manager without it when it is to write";

/// Formats a finding: one line, and a second one with the remedy.
std::string text_of(const finding& of);
boost::json::value json_of(const finding& of);

/// Returns what is wrong with a RuntimeBootstrapper of a manager in mode off: it is deleted, has
/// our finalizer, and the manager may not, or does not within 2 minutes, release it.
std::optional<finding> check_orphan(const boost::json::value& bootstrapper, bool may_release,
                                    std::chrono::system_clock::time_point now);

/// True if one of them is of sources of the bootstrapper that are invalid in KCP.
bool has_invalid_sources(const std::vector<finding>& findings);

/// True for a host of the manifests in deploy that stands for the landscape's own: it is below
/// example.com (RFC 2606, section 3).
bool is_placeholder(std::string_view host) noexcept;

/// Formats the counts of all findings: "17 checks: 15 proven, 1 failed, 1 not proven".
std::string summary_of(const std::vector<finding>& all);

/// Returns what to do where no manager holds the Lease. Of another Lease than the default one the
/// flags come first, as a second manager would not take it.
std::string lease_remedy(const k8s::object_key& lease);

/// Formats how many of the runtimes are in order: "1 of 2 is in order".
std::string text_of_order(std::size_t well, std::size_t all);

/// Judges the runtimes that the user has named. They are no landscape: whether it has an outage is
/// not known from them, so the level is `degraded` where one of them is ill.
fleet_verdict judge_named(std::span<const judged_runtime> runtimes,
                          std::span<const fleet_fault> faults);

/// Returns the rights that the Roles and ClusterRoles of a text of manifests grant. Throws
/// std::invalid_argument if it is not one.
std::vector<access_right> rights_of(const std::string& manifests);
/// Returns those of one Role or ClusterRole.
std::vector<access_right> rights_of_role(const boost::json::value& role);

}  // namespace rw::cli
