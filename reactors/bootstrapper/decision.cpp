#include "rw/reactors/bootstrapper/decision.hpp"

#include "rw/reactors/shared/explanations.hpp"

namespace rw::bootstrapper {
namespace {

sync_decision decide_deletion(const runtime_facts& facts) {
  if (!facts.has_finalizer) return {};
  if (!facts.has_objects) return {action::release, "NothingDeployed"_reason, {}};
  if (!facts.runtime_exists)
    return {action::release, "RuntimeNotFound"_reason, "the Runtime is gone"};
  if (facts.runtime_deleting) {
    return {action::release, "RuntimeDeleting"_reason, "the Runtime is being deleted"};
  }
  if (facts.of_former_runtime) {
    return {action::release, "RuntimeReplaced"_reason, "the Runtime was deleted and created again"};
  }
  if (facts.mode != bootstrapper_mode::direct) {
    return {action::release, "NotInCharge"_reason,
            "the runtime's mode is " + std::string(to_string(facts.mode))};
  }
  if (!facts.no_access.empty()) return {action::wait, "NoAccess"_reason, facts.no_access};
  if (facts.runtime_suspended) {
    return {action::wait, "RuntimeSuspended"_reason, "the Runtime is suspended"};
  }
  return {action::undeploy, "Deleting"_reason, {}};
}

}  // namespace

sync_decision decide(const runtime_facts& facts, bool create) {
  const bool direct = facts.mode == bootstrapper_mode::direct;
  const bool shadow = facts.mode == bootstrapper_mode::shadow;
  if (!facts.exists) {
    if (!facts.runtime_exists || facts.runtime_deleting || !(direct || shadow)) return {};
    if (create && !facts.opted_out) return {action::create, {}, {}};
    if (shadow) return {};
    return facts.opted_out
               ? sync_decision{action::none, "OptedOut"_reason,
                               "its RuntimeBootstrapper was deleted, as an annotation says"}
               : sync_decision{action::none, "NoResource"_reason, "it has no RuntimeBootstrapper"};
  }
  if (facts.deleting) return decide_deletion(facts);
  if (!facts.invalid.empty()) return {action::reject, "Invalid"_reason, facts.invalid};
  if (!facts.runtime_exists) {
    return {action::wait, "RuntimeNotFound"_reason, "there is no Runtime of this name"};
  }
  if (facts.runtime_deleting) {
    return {action::wait, "RuntimeDeleting"_reason, "the Runtime is being deleted"};
  }
  if (facts.mode_unknown) {
    return {action::wait, "BootstrapperModeUnknown"_reason,
            "the Runtime's annotation " + std::string(bootstrapper_mode_annotation) +
                " names no mode: it must be off, signal, shadow or direct"};
  }
  if (!direct && !shadow) {
    return {action::wait, "NotInCharge"_reason,
            "the runtime's mode is " + std::string(to_string(facts.mode))};
  }
  if (facts.suspended) return {action::wait, "Suspended"_reason, "spec.suspend is true"};
  if (direct && facts.runtime_suspended) {
    return {action::wait, "RuntimeSuspended"_reason, "the Runtime is suspended"};
  }
  if (!facts.no_access.empty()) return {action::wait, "NoAccess"_reason, facts.no_access};
  return {shadow ? action::preview : action::sync, {}, {}};
}

}  // namespace rw::bootstrapper
