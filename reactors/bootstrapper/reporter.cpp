#include "reactors/bootstrapper/reporter.hpp"

#include "k8s/types.hpp"

namespace rw::bootstrapper {
namespace {

/// So many repairs in a row are a fight.
constexpr unsigned contested_after = 3;

}  // namespace

void reporter::note(const boost::json::value& resource, runtime_state state,
                    const std::string& reason, const std::string& message, bool changed) {
  if (!runtimes_.set(k8s::key_of(resource), state, reason, changed)) return;
  const auto about = k8s::reference_to(resource);
  switch (state) {
    case runtime_state::installed:
      return events_.normal(about, "BootstrapperReady",
                            "The bootstrapper runs with both units in place; version " +
                                (message.empty() ? std::string("unknown") : message));
    case runtime_state::not_ready:
      return events_.normal(about, "BootstrapperNotReady",
                            "The bootstrapper is not ready on the runtime: " + message);
    case runtime_state::failed:
      return events_.warning(about, "BootstrapperFailed",
                             "The runtime does not have the desired revision: " + message);
    case runtime_state::unreachable:
      return events_.warning(about, "RuntimeUnreachable",
                             "The runtime does not answer: " + message);
  }
}

void reporter::note_observed(const boost::json::value& resource, const status_input& input) {
  bool changed = false;
  for (const auto& each : input.report->units) {
    changed = changed || each.changed;
    if (!each.failed) continue;
    return note(resource, runtime_state::failed, each.failed->code.message(), each.failed->message);
  }
  const auto error = blocked_by(input);
  if (!error.empty()) return note(resource, runtime_state::failed, error, error);
  const auto& version = input.report->at(unit::bootstrapper).version;
  const auto state = installation_of(*input.report);
  if (state == installation::ready) {
    return note(resource, runtime_state::installed, {}, version, changed);
  }
  const std::string name(to_string(state));
  note(resource, runtime_state::not_ready, name, name);
}

void reporter::note_repair(const boost::json::value& resource, const status_input& input,
                           core::time_point now) {
  bool repaired = false;
  bool changed = false;
  std::string difference;
  for (const auto& each : input.report->units) {
    repaired = repaired || each.repaired;
    changed = changed || each.changed;
    if (each.repaired && !each.differences.empty()) difference = each.differences.front();
  }
  count(!blocked_by(input).empty() ? "refused"
        : repaired                 ? "repaired"
        : changed                  ? "changed"
                                   : "unchanged");
  const auto key = k8s::key_of(resource);
  const auto repairs = repaired ? backoff_.repaired(key, now) : 0;
  if (repairs != contested_after) return;
  log_.warning("repairs on a runtime are undone",
               {{"namespace", key.ns}, {"name", key.name}, {"difference", difference}});
  events_.warning(k8s::reference_to(resource), "BootstrapperContested",
                  "Repairs on the runtime are undone, " + std::to_string(repairs) +
                      " times in a row by now, last " + difference +
                      "; they are made less and less often");
}

void reporter::note_removed(const boost::json::value& resource, const std::string& abandoned) {
  const auto about = k8s::reference_to(resource);
  if (abandoned.empty()) {
    return events_.normal(about, "BootstrapperRemoved",
                          "The bootstrapper is removed from the runtime");
  }
  log_.warning("bootstrapper removal abandoned",
               {{"namespace", about.ns}, {"name", about.name}, {"reason", abandoned}});
  events_.warning(about, "BootstrapperRemovalAbandoned",
                  "The bootstrapper may still be on the runtime: " + abandoned);
}

void reporter::count(const char* result) {
  core::make_counter(metrics_, "rw_bootstrapper_syncs_total", "Number of passes over runtimes",
                     {{"result", result}})
      .Increment();
}

}  // namespace rw::bootstrapper
