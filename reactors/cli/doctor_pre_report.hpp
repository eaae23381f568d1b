#pragma once

#include "rw/reactors/cli/doctor_report.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/reactors/shared/access_right.hpp"

#include <boost/json/value.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::cli {

/// The oldest version of Kubernetes that KCP may have, as the chart's kubeVersion says.
inline constexpr std::pair<unsigned, unsigned> oldest_kubernetes{1, 21};

/// What `doctor --pre` checks one after the other.
enum class pre_group : std::uint8_t { kcp, manager, runtimes };

/// Returns "kcp", "manager", "runtimes".
std::string_view to_string(pre_group group) noexcept;
/// Returns the heading of a group.
std::string_view heading_of(pre_group group) noexcept;

boost::json::value json_of(pre_group group, const finding& of);

/// Formats rights of one namespace by their verbs: "create, patch deployments.apps, services; bind
/// roles.rbac.authorization.k8s.io".
std::string text_of(const std::vector<access_right>& rights);

/// Returns the kubectl commands, in one line, that give `user` rights, which are of one namespace,
/// or of the cluster, by roles of a name. They may be repeated, also with further rights.
std::string grant_command(std::string_view user, std::string_view role_name,
                          const std::vector<access_right>& rights);

/// What comes before commands that grant rights in KCP: the user that was chosen lacks these, so
/// the flags by which it was chosen would not help.
inline constexpr std::string_view as_administrator = "as an administrator of KCP: ";

/// Returns the command that installs Istio in KCP, with the flags by which the user has chosen it.
/// istioctl does not impersonate.
std::string install_istio_command(const kcp_access& kcp);
/// Returns that for cert-manager, likewise.
std::string install_cert_manager_command(const kcp_access& kcp);

/// A Kyma for which no Secret has a kubeconfig. `error`: says so; `kymas`: those of KCP, nothing if
/// it does not tell them; `accessible`: those with such a Secret.
finding no_kubeconfig(const std::string& kyma, const std::string& error,
                      const std::optional<std::vector<std::string>>& kymas,
                      const std::vector<std::string>& accessible);

/// Returns the command that makes a role or a binding (the arguments of `kubectl create`) what it
/// is to be, whether it exists or not. `ns` may be empty.
std::string reconcile_command(std::string_view ns, const std::string& described);

/// Returns the flag of kubectl's that names a user or ServiceAccount as a subject; with a
/// placeholder where the user is not known.
std::string subject_flag(std::string_view user);

}  // namespace rw::cli
