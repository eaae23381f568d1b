// Whether kubeconfigs of runtimes give the rights that the manager needs there.

#include "rw/core/within.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/cli/doctor_kubeconfig.hpp"
#include "rw/reactors/cli/doctor_pre_checks.hpp"
#include "rw/reactors/cli/manager_manifests.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using enum finding_state;

constexpr std::uint32_t sample_size = 3;
constexpr std::string_view runtime_role = "runtime-watcher-manager";
constexpr std::string_view direct_role = "runtime-watcher-bootstrapper";

/// Commands are for a kubeconfig of the runtime: the names in them are its own.
constexpr std::string_view on_the_runtime = "on the runtime: ";
constexpr std::string_view create_namespace = "kubectl create namespace ";

/// Applies deploy/manager/runtimes, and binds its roles, again if need be.
std::string grant_runtime_rights(const std::string& user) {
  const auto bind = [&user](std::string_view ns, const std::string& kind) {
    return " && " +
           reconcile_command(ns, kind + "binding " + std::string(runtime_role) + " --" + kind +
                                     "=" + std::string(runtime_role) + " " + subject_flag(user));
  };
  return "kubectl apply -f deploy/manager/runtimes/rights.yaml" + bind("", "clusterrole") +
         bind(skr_namespace, "role");
}

/// Rights by their namespaces.
std::map<std::string, std::vector<access_right>> by_namespace(
    const std::vector<access_right>& all) {
  std::map<std::string, std::vector<access_right>> out;
  for (const auto& each : all) out[each.ns].push_back(each);
  return out;
}

/// ", in the cluster: get nodes, in namespace a: get pods".
std::string rights_by_namespace(const std::vector<access_right>& all) {
  std::string out;
  for (const auto& [ns, rights] : by_namespace(all)) {
    out += ns.empty() ? ", in the cluster: " : ", in namespace " + ns + ": ";
    out += text_of(rights);
  }
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

/// A runtime whose API server does not say what the kubeconfig's user may do.
finding unknown_rights(const std::string& kyma, const k8s::failure& error) {
  return {failed, "runtime", kyma + ": " + error.message,
          error.is(k8s::errc::address_refused)
              ? kubeconfig_remedy("", error)
              : "see the runtime's API server and its kubeconfig's user, or name other runtimes "
                "with --runtime"};
}

/// Checks the rights to install the watcher.
asio::awaitable<finding> check_rights(k8s::client* api, std::string kyma, std::string user) {
  const auto all = rights_of(manager_manifests::runtime_rights);
  const auto missing = co_await find_missing(api, all);
  if (!missing) co_return unknown_rights(kyma, missing.error());
  const auto ns = co_await api->get(namespaces_type(), {{}, std::string(skr_namespace)}, true);
  const bool is_absent = !ns && ns.error().is(k8s::errc::not_found);
  if (!ns && !is_absent && missing->empty()) co_return unknown_rights(kyma, ns.error());
  std::string remedy(on_the_runtime);
  if (is_absent) remedy.append(create_namespace).append(skr_namespace);
  const auto name = user.empty() ? std::string("its kubeconfig's user") : user;
  if (!missing->empty()) {
    remedy += (is_absent ? " && " : "") + grant_runtime_rights(user);
    co_return finding{failed, "runtime",
                      kyma + ": " + name + " may not" + rights_by_namespace(*missing),
                      std::move(remedy)};
  }
  if (is_absent) {
    co_return finding{failed, "runtime", kyma + ": " + ns.error().message, std::move(remedy)};
  }
  co_return finding{proven, "runtime",
                    kyma + ": " + name + " has the " + std::to_string(all.size()) +
                        " rights that the manager needs to install the watcher"};
}

/// Returns the rights that the client's user lacks to write the objects of mode `direct`, and to
/// watch them in all namespaces.
asio::awaitable<k8s::result<std::vector<access_right>>> missing_for_direct(
    k8s::client* api, const std::vector<json::value>* objects, std::string default_ns) {
  std::vector<access_right> out;
  std::set<std::string> checked;
  for (const auto& object : *objects) {
    k8s::group_version_kind gvk;
    gvk.kind = k8s::find_string(object, {"kind"});
    k8s::parse_api_version(k8s::find_string(object, {"apiVersion"}), gvk);
    const auto served = co_await api->find(gvk);
    if (!served && !served.error().is(k8s::errc::not_found)) co_return served.error();
    const auto type = served ? std::optional(*served) : find_definition(*objects, gvk);
    if (!type) continue;  // a pass names it: UnknownKind
    auto ns = type->namespaced ? k8s::key_of(object).ns : std::string();
    if (type->namespaced && ns.empty()) ns = default_ns;
    const bool grants = type->gvk.group == "rbac.authorization.k8s.io";
    if (!checked.insert(k8s::to_string(*type) + "/" + ns).second && !grants) continue;
    const written_object written{&object, *type, ns};
    std::vector<std::string> verbs{"get", "create", "patch"};
    if (*type != namespaces_type()) verbs.emplace_back("delete");
    const auto lacking = co_await missing_to_write(api, written, verbs, objects);
    if (!lacking) co_return lacking.error();
    std::ranges::copy(*lacking, std::back_inserter(out));
    std::vector<access_right> watching{{"list", type->gvk.group, type->plural},
                                       {"watch", type->gvk.group, type->plural}};
    const auto unseen = co_await find_missing(api, std::move(watching));
    if (!unseen) co_return unseen.error();
    std::ranges::copy(*unseen, std::back_inserter(out));
  }
  co_return out;
}

/// Checks the rights that mode `direct` needs.
asio::awaitable<finding> check_direct_rights(k8s::client* api,
                                             const std::vector<json::value>* objects,
                                             std::string default_ns, std::string kyma,
                                             std::string user) {
  const auto missing = co_await missing_for_direct(api, objects, std::move(default_ns));
  if (!missing) co_return unknown_rights(kyma, missing.error());
  const auto name = user.empty() ? std::string("its kubeconfig's user") : user;
  if (missing->empty()) {
    co_return finding{proven, "runtime",
                      kyma + ": " + name + " may write the " + std::to_string(objects->size()) +
                          " objects of the Runtime Bootstrapper"};
  }
  std::string command;
  for (const auto& [ns, rights] : by_namespace(*missing)) {
    command += (command.empty() ? "" : " && ") + grant_command(user, direct_role, rights);
  }
  co_return finding{
      failed, "runtime",
      kyma + ": for the Runtime Bootstrapper " + name + " may not" + rights_by_namespace(*missing),
      std::string(on_the_runtime) + command};
}

asio::awaitable<std::vector<finding>> check_cluster(pre_context* with, k8s::client* api,
                                                    std::string kyma,
                                                    const std::vector<json::value>* objects) {
  const auto user = co_await read_user(api);
  std::vector<finding> out;
  auto found = co_await check_rights(api, kyma, user);
  out.push_back(std::move(found));
  if (objects->empty()) co_return out;
  const auto& target = with->planned.settings.runtime_config.direct.to;
  found = co_await check_direct_rights(api, objects, target.ns, kyma, user);
  out.push_back(std::move(found));
  co_return out;
}

/// The Kymas of KCP; nothing if their kind is not served yet, or they may not be listed.
asio::awaitable<std::optional<std::vector<std::string>>> read_kymas(k8s::client* kcp) {
  const auto got =
      co_await kcp->list(kymas_type(), {.ns = std::string(kcp_namespace), .metadata_only = true});
  if (!got) {
    expect_response(got.error());
    co_return std::nullopt;
  }
  std::vector<std::string> out;
  for (const auto& kyma : got->at("items").as_array()) out.push_back(k8s::key_of(kyma).name);
  co_return out;
}

/// Of a Kyma for which no Secret has a kubeconfig, whose name may be mistyped.
asio::awaitable<finding> find_near_names(pre_context* with, std::string kyma, std::string error) {
  const auto kymas = co_await read_kymas(&with->kcp);
  const auto secrets =
      co_await with->kcp.list(secrets_type(), {.ns = std::string(kcp_namespace),
                                               .labels = std::string(kyma_name_label),
                                               .metadata_only = true});
  if (!secrets) expect_response(secrets.error());
  std::vector<std::string> accessible;
  if (secrets) {
    for (const auto& secret : secrets->at("items").as_array()) {
      accessible.emplace_back(k8s::label(secret, kyma_name_label));
    }
  }
  co_return no_kubeconfig(kyma, error, kymas, accessible);
}

asio::awaitable<std::vector<finding>> check_runtime(pre_context* with, std::string kyma,
                                                    const std::vector<json::value>* objects) {
  const auto single = [](finding of) { return std::vector<finding>{std::move(of)}; };
  const auto kubeconfig = co_await read_kubeconfig(with->kcp, kyma);
  if (!kubeconfig) {
    const auto& error = kubeconfig.error();
    if (!error.is(k8s::errc::not_configured)) expect_response(error);  // the Secret has none
    if (error.is(k8s::errc::not_found)) {
      auto absent = co_await find_near_names(with, kyma, error.message);
      co_return single(std::move(absent));
    }
    co_return single(
        error.is(k8s::errc::forbidden)
            ? finding{not_proven, "runtime", kyma + ": " + error.message,
                      "check with a user who may read the kubeconfigs' Secrets"}
            : finding{failed, "runtime", kyma + ": " + error.message,
                      "have its owner, such as infrastructure-manager, write that Secret"});
  }
  const auto api = with->runtimes.get(kyma, *kubeconfig);
  if (!api) {
    const auto& error = api.error();
    const auto secret = co_await name_kubeconfig_secret(&with->kcp, kyma);
    co_return single({failed, "runtime", kyma + ": " + unusable_kubeconfig(secret, kyma, error),
                      kubeconfig_remedy(secret, error)});
  }
  auto checking = check_cluster(with, api->get(), kyma, objects);
  const auto until = with->shared.clock.now() + with->settings.runtime_timeout;
  auto found = co_await core::within(with->shared.clock, until, std::move(checking));
  if (found) co_return std::move(*found);
  co_return single({failed, "runtime", kyma + ": the runtime did not respond in time",
                    "raise --runtime-timeout, or name other runtimes with --runtime"});
}

}  // namespace

asio::awaitable<void> check_runtimes(pre_context* with) {
  with->journal.begin("runtimes");
  const auto kymas = co_await select_runtimes(with);
  if (!kymas) {
    expect_response(kymas.error());
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
  const auto objects = co_await read_direct_objects(with);
  for (const auto& kyma : *kymas) {
    with->journal.begin("runtime " + kyma);
    auto all = co_await check_runtime(with, kyma, &objects);
    for (auto& found : all) {
      found.runtime = kyma;
      co_await with->journal.report(std::move(found));
    }
  }
}

}  // namespace rw::cli
