#pragma once

#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/runtime_rollout/decision.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace rw::runtime_rollout {

/// operator.kyma-project.io/v1alpha1, RuntimeRollout.
const k8s::resource_type& runtime_rollouts_type();

/// Settings of a roll-out, where its spec has none of its own.
struct defaults {
  std::string canaries = "1%";  ///< a share, or a label selector of Runtimes
  share max_unavailable = {10, true};
  share failure_budget = {2, true};
  std::chrono::milliseconds soak = std::chrono::seconds(10);
};

/// A step's runtimes: "5", "10%" or a label selector that is not empty.
bool is_canaries(std::string_view text);

/// A RuntimeRollout's spec with defaults.
struct rollout_spec {
  limits with = {};
  bool paused = false;
  std::string resume = {};
  std::string promote = {};
  std::string revision = {};  ///< digest of a content to be pinned; empty: none
  std::string invalid = {};   ///< fields replaced by the defaults, and why; for people
};
rollout_spec read_spec(const boost::json::value& object, const defaults& otherwise);

/// The object as it is created.
boost::json::value make_rollout(std::string_view component);

/// The names of all fields that a status may have.
std::vector<std::string_view> status_fields();

state read_state(const boost::json::value& object);

/// The present step for people: "step 2 of 4 (10%)"; empty: there are no steps, or all have ended.
std::string step_text(const state& of);

/// What has become of `spec.revision`.
struct pin {
  std::string revision = {};  ///< that is pinned; empty: none
  std::string refused = {};   ///< reason, CamelCase: NotInHistory, NotKept, UnsupportedWireVersion,
                              ///< KimWrites; empty: it is not
};
/// Only a content of the history that is kept can be pinned, whose program understands this
/// manager, and none while another writer applies the contents of the sources: it would undo what
/// is pinned.
pin decide_pin(const std::string& revision, const state& of);

/// The status to write; none if nothing changes. Its phase is Completed if all runtimes have the
/// content, Partial if some that were set aside do not.
///
/// Conditions, as kstatus reads them (sigs.k8s.io/cli-utils): `Ready` is True when all runtimes
/// have the content; `Reconciling` while they get it, or a person has paused; `Stalled` when
/// failures have paused, a step can't be verified, or the content can't be stored. `WavesBypassed`:
/// another writer applied the content to runtimes before their turn. `Pinned`: the content of
/// `spec.revision` is rolled out, and newer content of the sources waits.
std::optional<boost::json::value> next_status(const boost::json::value& object,
                                              const rollout_decision& decided,
                                              const rollout_spec& spec, wall_time now,
                                              const std::vector<content_source>& waiting = {});

/// The status to write where the pinned content can't be read, so that nothing is decided; none if
/// nothing changes. `Stalled` is True, and `Pinned` False, reason ContentLost.
std::optional<boost::json::value> unreadable_status(const boost::json::value& object,
                                                    const std::string& pinned,
                                                    const std::string& error, wall_time now);

}  // namespace rw::runtime_rollout
