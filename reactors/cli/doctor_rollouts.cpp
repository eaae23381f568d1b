// The checks of roll-outs, and of RuntimeBootstrappers that nothing acts on.

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/bootstrapper/invalid_sources.hpp"
#include "rw/reactors/bootstrapper/resource.hpp"
#include "rw/reactors/cli/doctor_app.hpp"
#include "rw/reactors/cli/rollout_text.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/definition.hpp"
#include "rw/reactors/shared/fleet_verdict.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rw::cli {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using enum finding_state;

constexpr const char* apply_definitions = "kubectl apply -f deploy/crds";

/// The fields of a status that the definition of RuntimeRollouts would drop.
std::string dropped_fields(const json::value& definition) {
  const auto* const versions = k8s::find_array(definition, {"spec", "versions"});
  std::string out;
  for (const auto& each : versions == nullptr ? json::array() : *versions) {
    const auto& type = runtime_rollout::runtime_rollouts_type();
    if (k8s::find_string(each, {"name"}) != type.gvk.version) continue;
    const auto* const known =
        k8s::find(each, {"schema", "openAPIV3Schema", "properties", "status", "properties"});
    for (const auto& field : runtime_rollout::status_fields()) {
      if (known != nullptr && k8s::find(*known, {field}) != nullptr) continue;
      out += (out.empty() ? "" : ", ") + std::string(field);
    }
  }
  return out;
}

}  // namespace

asio::awaitable<void> doctor_app::check_rollouts() {
  const bool bootstraps = leader_.bootstrapper != bootstrapper_mode::off;
  if (leader_.rollout_none || (leader_.shadow && !bootstraps)) {
    co_await report_by_settings(proven, "rollouts", "nothing is rolled out in waves");
    co_return;
  }
  const auto before = findings_.size();
  const auto& type = runtime_rollout::runtime_rollouts_type();
  const auto definition = co_await kcp_->get(definitions_type(), {{}, to_string(type)});
  const auto dropped = definition ? dropped_fields(*definition) : std::string();
  if (!dropped.empty()) {
    const std::string reason(definition_outdated);
    co_await report({failed,
                     "rollouts",
                     reason +
                         ": the definition of RuntimeRollouts is older than this version, and "
                         "drops status." +
                         dropped + ": nothing new reaches any runtime",
                     apply_definitions,
                     reason,
                     {},
                     to_string(type)});
  }
  const auto ns = co_await kcp_->get(namespaces_type(), {{}, leader_.state_namespace}, true);
  if (!ns && ns.error().is(k8s::errc::not_found)) {
    co_await report_by_settings(
        failed, "rollouts",
        "Namespace " + leader_.state_namespace +
            " does not exist: no roll-out is completed, as its content can't be stored",
        "kubectl create namespace " + leader_.state_namespace +
            " && kubectl apply -f deploy/manager/rbac.yaml");
  }
  std::string phases;
  bool any_held = false;
  for (const auto* const name : {"watcher", "bootstrapper"}) {
    if (name == std::string_view("watcher") ? leader_.shadow : !bootstraps) continue;
    const auto got = co_await kcp_->get(type, {std::string(kcp_namespace), name});
    const auto rollout = "RuntimeRollout " + std::string(kcp_namespace) + "/" + name;
    if (!got) {
      co_await report_by_settings(not_proven, "rollouts", got.error().message,
                                  "the leading manager creates it: see leader, kinds and rights");
      continue;
    }
    note_rollout(*got);
    if (const auto fault = fault_of_rollout(*got)) {
      const auto stalled = k8s::find_condition(*got, "Stalled");
      const bool is_stalled = stalled && stalled->status == "True";
      const auto message = k8s::find_string(*got, {"status", "message"});
      co_await report(failed, "rollouts",
                      rollout +
                          (is_stalled ? " is stalled: " + stalled->reason
                                      : " is paused: " + std::string(k8s::find_string(
                                                             *got, {"status", "reason"}))) +
                          (message.empty() ? "" : "; " + std::string(message)),
                      fault->next);
      continue;
    }
    const auto phase = k8s::find_string(*got, {"status", "phase"});
    if (auto pinned = waiting_sources(*got); !pinned.empty()) {
      co_await report(not_proven, "rollouts", rollout + ": " + pinned);
    } else if (phase == "Partial") {
      const auto next = report_of(*got, {}).next;
      co_await report(not_proven, "rollouts",
                      rollout + " is partial: runtimes that were set aside lack the content",
                      next.empty() ? "runtime-watcher rollout status " + std::string(name) : next);
    }
    phases +=
        (phases.empty() ? "" : ", ") + std::string(name) + " is in phase " + std::string(phase);
    const auto held = held_note(*got);
    any_held = any_held || !held.empty();
    phases += held;
  }
  // A pause or a pin is deliberate, and said beside what was found.
  if (findings_.size() == before || any_held) {
    const bool any_invalid = has_invalid_sources(findings_);
    if (any_invalid) phases += "; see bootstrappers: sources are invalid";
    co_await report(any_invalid ? not_proven : proven, "rollouts", std::move(phases));
  }
}

asio::awaitable<void> doctor_app::check_sources() {
  const auto list = co_await kcp_->list(bootstrapper::runtime_bootstrappers_type(),
                                        {.ns = std::string(kcp_namespace)});
  const auto* const items = list ? k8s::find_array(*list, {"items"}) : nullptr;
  bootstrapper::invalid_sources invalid;
  for (const auto& each : items == nullptr ? json::array() : *items) invalid.note(each);
  for (auto& each : invalid.faults()) {
    co_await report(
        {failed, "bootstrappers", std::move(each.message), std::move(each.next), each.reason});
  }
  std::set<std::string> known;
  std::map<std::string, std::vector<std::string>> missing;  // resources, by the message
  for (const auto& each : items == nullptr ? json::array() : *items) {
    auto name = k8s::key_of(each).name;
    const auto compatible = k8s::find_condition(each, "Compatible");
    if (compatible && compatible->reason == "SourceMissing") {
      missing[compatible->message].push_back(name);
    }
    known.insert(std::move(name));
  }
  for (const auto& [message, names] : missing) {
    co_await report({not_proven, "bootstrappers",
                     "SourceMissing: " + message + " (" + first_of(names, names.size()) + ")",
                     "create it again, unless it is to be gone", "SourceMissing"});
  }
  if (list) co_await check_without_bootstrapper(&known);
}

/// Names the Runtimes in mode direct that nothing is written to.
asio::awaitable<void> doctor_app::check_without_bootstrapper(const std::set<std::string>* known) {
  const auto list = co_await kcp_->list(runtimes_type(),
                                        {.ns = std::string(kcp_namespace), .metadata_only = true});
  std::vector<std::string> names;
  const auto* const items = list ? k8s::find_array(*list, {"items"}) : nullptr;
  for (const auto& each : items == nullptr ? json::array() : *items) {
    auto name = k8s::key_of(each).name;
    const bool direct = mode_of(each, leader_.bootstrapper) == bootstrapper_mode::direct;
    if (!direct || known->contains(name) || k8s::is_being_deleted(each)) continue;
    if (k8s::annotation(each, bootstrapper::opt_out_annotation) == "true") name += " (opted out)";
    names.push_back(std::move(name));
  }
  if (names.empty()) co_return;
  co_await report(
      {not_proven, "bootstrappers",
       "NoResource: nothing is written to Runtimes in mode direct without a "
       "RuntimeBootstrapper: " +
           first_of(names, names.size()),
       "create them, or start the manager with --create-runtime-bootstrappers; one that "
       "opted out has the annotation " +
           std::string(bootstrapper::opt_out_annotation),
       "NoResource"});
}

/// Those that are deleted in mode off: the manager releases them where it may.
asio::awaitable<void> doctor_app::check_orphans() {
  if (leader_.bootstrapper != bootstrapper_mode::off) {
    co_await check_sources();
    co_return;
  }
  const auto& type = bootstrapper::runtime_bootstrappers_type();
  const auto list =
      co_await kcp_->list(type, {.ns = std::string(kcp_namespace), .metadata_only = true});
  const auto* const items = list ? k8s::find_array(*list, {"items"}) : nullptr;
  for (const auto& each : items == nullptr ? json::array() : *items) {
    if (!k8s::is_being_deleted(each)) continue;
    access_right patch{.verb = "patch",
                       .group = type.gvk.group,
                       .resource = type.plural,
                       .ns = std::string(kcp_namespace)};
    const auto may = co_await has_right(*as_manager_, std::move(patch));
    auto found = check_orphan(each, !may || *may, now());
    if (found)
      co_await report_by_settings(found->state, found->check, found->message, found->remedy);
  }
}

}  // namespace rw::cli
