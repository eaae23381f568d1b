#include "rw/reactors/cli/doctor_pre_report.hpp"

#include "rw/reactors/cli/near_names.hpp"
#include "rw/reactors/cli/shell_word.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace rw::cli {
namespace {

namespace json = boost::json;

/// The resources that rights have the same verbs for, by these verbs; all separated by commas.
std::map<std::string, std::string> resources_by_verbs(const std::vector<access_right>& rights,
                                                      const std::string& separator) {
  std::map<std::string, std::set<std::string>> verbs;
  for (const auto& right : rights) {
    auto resource = right.resource + (right.group.empty() ? "" : "." + right.group);
    if (!right.subresource.empty()) resource += "/" + right.subresource;
    verbs[std::move(resource)].insert(right.verb);
  }
  const auto append = [&separator](std::string& to, const std::string& each) {
    to += (to.empty() ? "" : separator) + each;
  };
  std::map<std::string, std::string> out;
  for (const auto& [resource, of] : verbs) {
    std::string all;
    for (const auto& verb : of) append(all, verb);
    append(out[all], resource);
  }
  return out;
}

/// " --flag value" where there is a value.
std::string flag_text(std::string_view name, const std::string& value) {
  return value.empty() ? std::string() : " " + std::string(name) + " " + shell_word(value);
}

}  // namespace

std::string install_istio_command(const kcp_access& kcp) {
  return "istioctl install" + flag_text("--kubeconfig", kcp.kubeconfig) +
         flag_text("--context", kcp.context);
}

std::string install_cert_manager_command(const kcp_access& kcp) {
  auto out =
      "helm install cert-manager cert-manager --repo https://charts.jetstack.io -n cert-manager "
      "--create-namespace --set crds.enabled=true" +
      flag_text("--kubeconfig", kcp.kubeconfig) + flag_text("--kube-context", kcp.context) +
      flag_text("--kube-as-user", kcp.as);
  for (const auto& group : kcp.as_groups) out += flag_text("--kube-as-group", group);
  return out;
}

finding no_kubeconfig(const std::string& kyma, const std::string& error,
                      const std::optional<std::vector<std::string>>& kymas,
                      const std::vector<std::string>& accessible) {
  const std::string owner = "have its owner, such as infrastructure-manager, write that Secret";
  finding out{finding_state::failed, "runtime", kyma + ": " + error, owner};
  if (kymas && std::ranges::find(*kymas, kyma) != kymas->end()) return out;
  auto known = accessible;
  if (kymas) known.insert(known.end(), kymas->begin(), kymas->end());
  std::ranges::sort(known);
  known.erase(std::ranges::unique(known).begin(), known.end());
  if (kymas) {
    out.message = unknown_kyma(kyma, known);
    out.remedy = "correct the name, or create that Kyma first";
    return out;
  }
  const auto near = near_names(kyma, known);
  if (near.empty()) return out;
  out.message += "; did you mean " + first_of(near, near.size()) + "?";
  out.remedy = "correct the name, or " + owner;
  return out;
}

std::string_view to_string(pre_group group) noexcept {
  static constexpr std::array<std::string_view, 3> names{"kcp", "manager", "runtimes"};
  return names[static_cast<std::size_t>(group)];
}

std::string_view heading_of(pre_group group) noexcept {
  static constexpr std::array<std::string_view, 3> headings{"KCP", "What the manager needs",
                                                            "Runtimes"};
  return headings[static_cast<std::size_t>(group)];
}

json::value json_of(pre_group group, const finding& of) {
  auto out = json_of(of).as_object();
  out["group"] = to_string(group);
  return out;
}

std::string text_of(const std::vector<access_right>& rights) {
  std::string out;
  for (const auto& [verbs, resources] : resources_by_verbs(rights, ", ")) {
    out += (out.empty() ? "" : "; ") + verbs + " " + resources;
  }
  return out;
}

std::string subject_flag(std::string_view user) {
  constexpr std::string_view account = "system:serviceaccount:";
  if (user.empty()) return "--user=USER";
  if (!user.starts_with(account)) return "--user=" + shell_word(user);
  return "--serviceaccount=" + shell_word(user.substr(account.size()));
}

std::string reconcile_command(std::string_view ns, const std::string& described) {
  const auto kubectl = ns.empty() ? std::string("kubectl ") : "kubectl -n " + shell_word(ns) + " ";
  return kubectl + "create " + described + " --dry-run=client -o yaml | " + kubectl +
         "auth reconcile -f -";
}

std::string grant_command(std::string_view user, std::string_view role_name,
                          const std::vector<access_right>& rights) {
  const auto& ns = rights.front().ns;
  const std::string role = ns.empty() ? "clusterrole" : "role";
  std::string out;
  std::size_t number = 0;
  for (const auto& [verbs, resources] : resources_by_verbs(rights, ",")) {
    const auto name =
        std::string(role_name) + (++number > 1 ? "-" + std::to_string(number) : std::string());
    out +=
        (out.empty() ? "" : " && ") +
        reconcile_command(ns, role + " " + name + " --verb=" + verbs + " --resource=" + resources) +
        " && " +
        reconcile_command(
            ns, role + "binding " + name + " --" + role + "=" + name + " " + subject_flag(user));
  }
  return out;
}

}  // namespace rw::cli
