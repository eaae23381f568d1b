#pragma once

#include "rw/reactors/shared/explained_alerts.hpp"
#include "rw/reactors/shared/explained_configuration.hpp"
#include "rw/reactors/shared/explained_landscape.hpp"
#include "rw/reactors/shared/explained_runtimes.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace rw {

/// Entries of one subject, a section of the runbook.
struct explanation_group {
  std::string_view title = {};
  std::string_view commands = {};  ///< one a line; WORD is the reason
  std::span<const explanation> entries = {};
};

/// The table of all reasons and alerts that the product can say.
inline constexpr explanation_group explanation_groups[] = {
    {"Runtimes", "runtime-watcher status --reason WORD -o wide\nruntime-watcher doctor",
     runtime_reasons},
    {"States of runtimes", "runtime-watcher status -o wide\nruntime-watcher doctor",
     runtime_states},
    {"Events of Kymas and Runtimes",
     "kubectl get events -n kcp-system --field-selector reason=WORD\nruntime-watcher status -o "
     "wide",
     kyma_events},
    {"The landscape", "runtime-watcher status\nruntime-watcher doctor", landscape_conditions},
    {"Verdicts on the landscape", "runtime-watcher status\nruntime-watcher doctor", fleet_levels},
    {"Watchers", "kubectl describe watchers.operator.kyma-project.io -n kcp-system",
     watcher_reasons},
    {"The CA rotation",
     "runtime-watcher status\nkubectl describe secret -n istio-system klm-istio-gateway",
     rotation_reasons},
    {"Roll-outs",
     "runtime-watcher rollout status --no-watch\nkubectl describe runtimerollouts -n kcp-system",
     rollout_reasons},
    {"RuntimeBootstrappers",
     "kubectl describe runtimebootstrappers -n kcp-system\nkubectl get runtimebootstrappers -n "
     "kcp-system -o jsonpath='{range .items[*]}{.metadata.name}: "
     "{.status.conditions[?(@.reason==\"WORD\")].message}{\"\\n\"}{end}'",
     bootstrapper_reasons},
    {"Alerts of the webhook, on a runtime", "", webhook_alerts},
    {"Alerts of the manager, in KCP", "", manager_alerts},
    {"Alerts of certificates and the CA rotation", "", rotation_alerts},
    {"Alerts of the configuration of runtimes", "", configuration_alerts},
    {"Alerts of a process", "", process_alerts},
};

/// Returns the entry of exactly this word; null: there is none.
constexpr const explanation* find_entry(std::string_view word) noexcept {
  for (const auto& group : explanation_groups) {
    // The compiler looks all words up; an algorithm with a projection takes more steps than it has.
    for (const auto& entry : group.entries) {
      if (entry.word == word) return &entry;
    }
  }
  return nullptr;
}

/// Likewise, also of an Event whose reason is that of a Watcher's condition, or a roll-out's phase,
/// with the kind before it: WatcherGatewayNotFound, RolloutCompleted.
constexpr const explanation* explain(std::string_view word) noexcept {
  if (const auto* const found = find_entry(word)) return found;
  for (const std::string_view kind : {"Watcher", "Rollout"}) {
    if (word.starts_with(kind)) return find_entry(word.substr(kind.size()));
  }
  return nullptr;
}

/// A reason, a condition's type or a phase as the product says it: `"WatcherSilent"_reason`. One
/// without an entry does not compile.
consteval const char* operator""_reason(const char* word, std::size_t size) {
  if (explain({word, size}) == nullptr) throw "this reason has no entry in explanation_groups";
  return word;
}

}  // namespace rw
