// Whether kubeconfigs of runtimes give the rights that the manager needs there.

#include "rw/core/within.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_pre_checks.hpp"
#include "rw/reactors/cli/manager_manifests.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
using enum finding_state;

constexpr std::uint32_t sample_size = 3;
constexpr std::string_view runtime_role = "runtime-watcher-manager";

/// Commands are for a kubeconfig of the runtime: the names in them are its own.
constexpr std::string_view on_the_runtime = "on the runtime: ";
constexpr std::string_view create_namespace = "kubectl create namespace ";

/// Applies deploy/manager/runtimes, and binds its roles, again if need be.
std::string grant_runtime_rights(const std::string& user) {
  const auto bind = [&user](const std::string& scope, const std::string& kind) {
    return " && kubectl " + scope + "create " + kind + "binding " + std::string(runtime_role) +
           " --" + kind + "=" + std::string(runtime_role) + " " + subject_flag(user) +
           " --dry-run=client -o yaml | kubectl " + scope + "auth reconcile -f -";
  };
  return "kubectl apply -f deploy/manager/runtimes/rights.yaml" + bind("", "clusterrole") +
         bind("-n " + std::string(skr_namespace) + " ", "role");
}

std::vector<access_right> of_namespace(const std::vector<access_right>& all, std::string_view ns) {
  std::vector<access_right> out;
  std::ranges::copy_if(all, std::back_inserter(out),
                       [ns](const access_right& each) { return each.ns == ns; });
  return out;
}

/// The first runtimes that have a kubeconfig, or those of --runtime.
asio::awaitable<k8s::result<std::vector<std::string>>> select_runtimes(pre_context* with) {
  if (!with->settings.runtimes.empty()) co_return with->settings.runtimes;
  const auto got = co_await with->kcp.list(secrets_type(),
                                           {.ns = std::string(kcp_namespace),
                                            .labels = std::string(kyma_name_label),
                                            .metadata_only = true},
                                           {.limit = sample_size});
  if (!got) co_return got.error();
  std::vector<std::string> out;
  for (const auto& secret : got->at("items").as_array()) {
    out.emplace_back(k8s::label(secret, kyma_name_label));
  }
  co_return out;
}

asio::awaitable<finding> check_rights(k8s::client* api, std::string kyma) {
  const auto all = rights_of(manager_manifests::runtime_rights);
  const auto missing = co_await find_missing(api, all);
  if (!missing) {
    co_return finding{failed, "runtime", kyma + ": " + missing.error().message,
                      "see the runtime's API server and its kubeconfig's user, or name other "
                      "runtimes with --runtime"};
  }
  const auto ns = co_await api->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
  const bool is_absent = !ns && ns.error().is(k8s::errc::not_found);
  std::string remedy(on_the_runtime);
  if (is_absent) remedy.append(create_namespace).append(skr_namespace);
  const auto user = co_await read_user(api);
  const auto name = user.empty() ? std::string("its kubeconfig's user") : user;
  if (!missing->empty()) {
    auto text = kyma + ": " + name + " may not";
    const auto of_cluster = of_namespace(*missing, "");
    const auto of_skr = of_namespace(*missing, skr_namespace);
    if (!of_cluster.empty()) text += ", in the cluster: " + text_of(of_cluster);
    if (!of_skr.empty()) {
      text += ", in namespace " + std::string(skr_namespace) + ": " + text_of(of_skr);
    }
    remedy += (is_absent ? " && " : "") + grant_runtime_rights(user);
    co_return finding{failed, "runtime", std::move(text), std::move(remedy)};
  }
  if (is_absent) {
    co_return finding{failed, "runtime", kyma + ": " + ns.error().message, std::move(remedy)};
  }
  co_return finding{proven, "runtime",
                    kyma + ": " + name + " has the " + std::to_string(all.size()) +
                        " rights that the manager needs to install the watcher"};
}

asio::awaitable<finding> check_runtime(pre_context* with, std::string kyma) {
  const auto kubeconfig = co_await read_kubeconfig(with->kcp, kyma);
  if (!kubeconfig) {
    co_return finding{failed, "runtime", kyma + ": " + kubeconfig.error().message,
                      "have its owner, such as infrastructure-manager, write that Secret"};
  }
  const auto api = with->runtimes.get(kyma, *kubeconfig);
  if (!api) {
    co_return finding{failed, "runtime", kyma + ": " + api.error().message,
                      "have its kubeconfig's Secret written anew"};
  }
  auto checking = check_rights(api->get(), kyma);
  const auto until = with->shared.clock.now() + with->settings.runtime_timeout;
  auto found = co_await core::within(with->shared.clock, until, std::move(checking));
  if (found) co_return std::move(*found);
  co_return finding{failed, "runtime", kyma + ": the runtime did not respond in time",
                    "raise --runtime-timeout, or name other runtimes with --runtime"};
}

}  // namespace

asio::awaitable<void> check_runtimes(pre_context* with) {
  with->journal.begin("runtimes");
  const auto kymas = co_await select_runtimes(with);
  if (!kymas) {
    co_await with->journal.report({not_proven, "runtimes", kymas.error().message,
                                   "check with a user who may read the kubeconfigs' Secrets"});
    co_return;
  }
  if (kymas->empty()) {
    co_await with->journal.report(
        {not_proven, "runtimes",
         "no runtime has a kubeconfig yet: kcp-system has no Secret with the label " +
             std::string(kyma_name_label)});
  }
  for (const auto& kyma : *kymas) {
    with->journal.begin("runtime " + kyma);
    auto found = co_await check_runtime(with, kyma);
    found.runtime = kyma;
    co_await with->journal.report(std::move(found));
  }
}

}  // namespace rw::cli
