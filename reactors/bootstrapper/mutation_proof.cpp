#include "rw/reactors/bootstrapper/mutation_proof.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/validation.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using k8s::find_string;

constexpr std::string_view registry_feature = "rt-cfg.kyma-project.io/alter-img-registry";
constexpr std::string_view fips_feature = "rt-cfg.kyma-project.io/set-fips-mode";
constexpr std::string_view pod_name = "runtime-watcher-proof";
constexpr std::string_view image_path = "/runtime-watcher/proof:1";
/// A pass is soon slow; a kube-apiserver waits for a webhook for 10 s by default.
constexpr auto limit = std::chrono::seconds(5);
constexpr std::size_t most_namespaces = 8;  // that are looked at
constexpr std::size_t longest_cause = 400;

bool lists(const json::value& in, std::initializer_list<std::string_view> path,
           std::initializer_list<std::string_view> any) {
  const auto* const all = k8s::find_array(in, path);
  return all != nullptr && std::ranges::any_of(*all, [&](const json::value& each) {
           return each.is_string() &&
                  std::ranges::find(any, std::string_view(each.get_string())) != any.end();
         });
}

bool is_for_pods(const json::value& webhook) {
  const auto* const rules = k8s::find_array(webhook, {"rules"});
  return rules != nullptr && std::ranges::any_of(*rules, [](const json::value& rule) {
           return lists(rule, {"apiGroups"}, {"", "*"}) &&
                  lists(rule, {"resources"}, {"pods", "*", "*/*"}) &&
                  lists(rule, {"operations"}, {"CREATE", "*"}) &&
                  find_string(rule, {"scope"}) != "Cluster";
         });
}

bool selects(const json::value& webhook, std::string_view selector, const json::value* labels) {
  const auto* const found = k8s::find(webhook, {selector});
  if (found == nullptr) return true;
  const auto parsed = k8s::label_selector::from_json(*found);
  return parsed && parsed->matches(labels);
}

/// The first registry that another one takes the place of.
void demand_registry(const json::value& configuration, demanded_mutation& of) {
  const auto* const overrides = k8s::find(configuration, {"overrides"});
  if (overrides == nullptr || !overrides->is_object()) return;
  for (const auto& [from, to] : overrides->get_object()) {
    if (!to.is_string() || to.get_string() == from) continue;
    of.from = from;
    of.to = to.get_string();
    return;
  }
}

/// The configuration on the runtime; null: it is none.
json::value configuration_of(const revision& of) {
  for (const auto& each : of.objects) {
    if (each.from != source_kind::config) continue;
    auto out = k8s::read_json(find_string(each.object, {"data", configuration_key}));
    if (out) return std::move(*out);
  }
  return nullptr;
}

std::string cause_of(const k8s::failure& error) {
  return core::printable(core::middle_cut(error.message, longest_cause));
}

}  // namespace

std::vector<demanded_mutation> demanded_of(const json::value& configuration,
                                           const target_names& to) {
  std::vector<demanded_mutation> out;
  const auto* const namespaces = k8s::find(configuration, {"namespaceFeatures"});
  if (namespaces == nullptr || !namespaces->is_object()) return out;
  for (const auto& [ns, unused] : namespaces->get_object()) {
    const std::string_view name = ns;
    const auto has = [&](std::string_view feature) {
      return lists(configuration, {"availableFeatures"}, {feature}) &&
             lists(configuration, {"namespaceFeatures", name}, {feature, all_features});
    };
    demanded_mutation demanded{.ns = std::string(name)};
    if (has(registry_feature)) demand_registry(configuration, demanded);
    if (has(pull_secret_feature)) demanded.pull_secret = to.pull_secret;
    if (has(trust_bundle_feature)) {
      demanded.volume = find_string(configuration, {"clusterTrustBundle", "volumeName"});
    }
    demanded.environment = has(fips_feature) || has(landscape_feature);
    if (demanded != demanded_mutation{.ns = demanded.ns}) out.push_back(std::move(demanded));
  }
  const auto first = std::ranges::find(out, to.ns, &demanded_mutation::ns);
  if (first != out.end()) std::rotate(out.begin(), first, first + 1);
  return out;
}

std::vector<json::value> pod_webhooks_of(const revision& of) {
  std::vector<json::value> out;
  for (const auto& each : of.objects) {
    if (find_string(each.object, {"kind"}) != "MutatingWebhookConfiguration") continue;
    const auto* const all = k8s::find_array(each.object, {"webhooks"});
    if (all != nullptr) std::ranges::copy_if(*all, std::back_inserter(out), &is_for_pods);
  }
  return out;
}

bool is_called_in(const json::value& webhook, const json::value& ns) {
  const auto* const conditions = k8s::find_array(webhook, {"matchConditions"});
  return (conditions == nullptr || conditions->empty()) &&
         selects(webhook, "namespaceSelector", k8s::find(ns, {"metadata", "labels"})) &&
         selects(webhook, "objectSelector", nullptr);
}

/// It meets the strictest Pod Security Standard, so that nothing but the bootstrapper is tried.
json::value pod_to_mutate(const demanded_mutation& demanded) {
  const auto& registry = demanded.from.empty() ? std::string("example.com") : demanded.from;
  json::object rights{{"allowPrivilegeEscalation", false},
                      {"readOnlyRootFilesystem", true},
                      {"capabilities", {{"drop", json::array{"ALL"}}}}};
  json::object few{{"cpu", "1m"}, {"memory", "1Mi"}};
  json::object container{{"name", "proof"},
                         {"image", registry + std::string(image_path)},
                         {"resources", {{"requests", few}, {"limits", few}}},
                         {"securityContext", std::move(rights)}};
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", pod_name}, {"namespace", demanded.ns}}},
          {"spec",
           {{"automountServiceAccountToken", false},
            {"securityContext",
             {{"runAsNonRoot", true},
              {"runAsUser", 65532},
              {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
            {"containers", json::array{std::move(container)}}}}};
}

std::string missing_in(const json::value& pod, const demanded_mutation& demanded) {
  const json::value none;
  const auto* const containers = k8s::find_array(pod, {"spec", "containers"});
  const auto own = [](const json::value& each) { return find_string(each, {"name"}) == "proof"; };
  const auto* container = &none;
  if (containers != nullptr) {
    const auto found = std::ranges::find_if(*containers, own);
    if (found != containers->end()) container = &*found;
  }
  const auto names = [&](std::initializer_list<std::string_view> list, std::string_view name) {
    const auto* const all = k8s::find_array(pod, list);
    return all != nullptr && std::ranges::any_of(*all, [&](const json::value& each) {
             return find_string(each, {"name"}) == name;
           });
  };
  std::string out;
  const auto note = [&out](bool missing, const std::string& part) {
    if (missing) out += (out.empty() ? "" : ", ") + part;
  };
  const auto image = demanded.to + std::string(image_path);
  note(!demanded.to.empty() && find_string(*container, {"image"}) != image,
       "the registry " + demanded.to + " in place of " + demanded.from);
  note(!demanded.pull_secret.empty() && !names({"spec", "imagePullSecrets"}, demanded.pull_secret),
       "the pull Secret " + demanded.pull_secret);
  note(!demanded.volume.empty() && !names({"spec", "volumes"}, demanded.volume),
       "the trust bundle's volume " + demanded.volume);
  const auto* const variables = k8s::find_array(*container, {"env"});
  note(demanded.environment && (variables == nullptr || variables->empty()),
       "the variables of its features");
  return out;
}

mutation_proof judge_failure(const k8s::failure& error, std::string_view ns,
                             const std::vector<json::value>& webhooks) {
  const auto says = [&](const std::string& part) {
    return error.message.find(part) != std::string::npos;
  };
  const std::string pod = "a Pod in the namespace " + std::string(ns);
  if (error.is(k8s::errc::timed_out)) {
    return {.error = "no response to the creation of " + pod + " within " +
                     std::to_string(limit.count()) + " s"};
  }
  for (const auto& each : webhooks) {
    const auto name = "webhook \"" + std::string(find_string(each, {"name"})) + "\"";
    const bool judged = says(name + " denied the request") || says("failed calling " + name);
    if (judged) return {.error = "the bootstrapper does not admit " + pod + ": " + cause_of(error)};
  }
  return {.skipped = pod + " could not be tried: " + cause_of(error)};
}

asio::awaitable<k8s::result<mutation_proof>> prove_mutation(k8s::client* api, target_names to,
                                                            revision_ptr in_place) {
  const auto webhooks = pod_webhooks_of(*in_place);
  if (webhooks.empty()) co_return mutation_proof();
  auto all = demanded_of(configuration_of(*in_place), to);
  if (all.size() > most_namespaces) all.resize(most_namespaces);
  for (const auto& demanded : all) {
    const auto ns = co_await api->get(namespaces_type(), {{}, demanded.ns});
    if (!ns && k8s::is_unhealthy(ns.error())) co_return ns.error();
    const bool called = ns && std::ranges::any_of(webhooks, [&](const json::value& each) {
                          return is_called_in(each, *ns);
                        });
    if (!called) continue;
    const k8s::call_options bounds{.deadline = limit, .retry = false};
    const auto pod = co_await api->create(*k8s::well_known_type("v1", "Pod"),
                                          pod_to_mutate(demanded), {.dry_run = true}, bounds);
    if (!pod) {
      const auto& error = pod.error();
      if (k8s::is_unhealthy(error) && !error.is(k8s::errc::timed_out)) co_return error;
      co_return judge_failure(error, demanded.ns, webhooks);
    }
    const auto missing = missing_in(*pod, demanded);
    if (missing.empty()) co_return mutation_proof();
    co_return mutation_proof{
        .error = "a Pod in the namespace " + demanded.ns + " does not get " + missing +
                 " (a pod of the bootstrapper applies the features that were available when it "
                 "started)"};
  }
  co_return mutation_proof{
      .skipped =
          "its webhook is called in no namespace of namespaceFeatures in which something "
          "can be seen"};
}

}  // namespace rw::bootstrapper
