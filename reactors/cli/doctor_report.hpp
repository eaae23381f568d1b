#pragma once

#include "rw/reactors/shared/access_right.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
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
};

/// What is to be done about a kubeconfig that can't be used, or may not be.
inline constexpr std::string_view shadow_writes_nothing =
    "nothing is written with --shadow: start the manager without it when it is to write";
inline constexpr std::string_view new_kubeconfig =
    "have its owner, such as infrastructure-manager, write the Secret of its kubeconfig anew; for "
    "a "
    "runtime on this machine there is --allow-local-runtimes";

/// Formats a finding: one line, and a second one with the remedy.
std::string text_of(const finding& of);
boost::json::value json_of(const finding& of);

/// Returns what is wrong with a RuntimeBootstrapper of a manager in mode off: it is deleted, has
/// our finalizer, and the manager may not, or does not within 2 minutes, release it.
std::optional<finding> check_orphan(const boost::json::value& bootstrapper, bool may_release,
                                    std::chrono::system_clock::time_point now);

/// True for a host of the manifests in deploy that stands for the landscape's own: it is below
/// example.com (RFC 2606, section 3).
bool is_placeholder(std::string_view host) noexcept;

/// Formats the counts of all findings: "17 checks: 15 proven, 1 failed, 1 not proven".
std::string summary_of(const std::vector<finding>& all);

/// Returns the rights that the Roles and ClusterRoles of a text of manifests grant. Throws
/// std::invalid_argument if it is not one.
std::vector<access_right> rights_of(const std::string& manifests);
/// Returns those of one Role or ClusterRole.
std::vector<access_right> rights_of_role(const boost::json::value& role);

}  // namespace rw::cli
