#pragma once

#include "rw/reactors/bootstrapper/decision.hpp"
#include "rw/reactors/bootstrapper/state.hpp"
#include "rw/reactors/shared/bootstrapper_mode.hpp"
#include "rw/reactors/shared/content_gate.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::bootstrapper {

/// The result of one pass over a runtime.
struct status_input {
  bootstrapper_mode mode = bootstrapper_mode::off;
  sync_decision decided = {};
  std::string failed = {};  ///< why the runtime was not, or not completely, observed
  sync_state state = {};
  bool observed = false;  ///< the state is complete; else it has what was done by then
};

/// In the words of Kyma Infrastructure Manager.
inline constexpr std::string_view runtime_condition = "RuntimeBootstrapperReady";

/// Installation states, as status.state has them.
enum class installation : std::uint8_t { not_started, in_progress, ready, failed, upgrade_needed };
std::string_view to_string(installation of) noexcept;

/// `desired`: the version that is to run; empty: it is not known.
installation installation_of(const boost::json::value& deployment, std::string_view desired);
/// As a pass found it: pods that fail for good count as failed at once, and a Deployment whose
/// webhook does not mutate pods as in progress.
installation installation_of(const sync_state& state);

/// Why a unit has not the revision of its sources, for people; empty: nothing is invalid or
/// rejected.
std::string blocked_by(const sync_state& state);

/// What a status says of unit `bootstrapper` on the runtime, for its roll-out.
content_facts facts_of(const boost::json::value& resource);

/// The status to write; none if nothing changes.
///
/// Conditions: `Compatible` (sources exist and are valid, and the runtime takes them),
/// `ConfigurationSynced` (both units are in place), `Installed` (the Deployment runs), `Ready` (all
/// of these, but that the last valid content of a missing source will do);
/// `RuntimeBootstrapperReady` in the words of Kyma Infrastructure Manager's Runtime; in mode shadow
/// `InStep` (nothing would be written). Where the runtime was not observed, because it is not
/// reachable or not ours, or is only previewed, what it may no longer be is Unknown.
std::optional<boost::json::value> next_status(const boost::json::value& resource,
                                              const status_input& input,
                                              std::chrono::system_clock::time_point now);

/// The status before the first write of a revision that is not in place, or of new objects: the
/// inventory, and the unit's phase Applying with the revision that it is to have. Unless that is
/// the one in place, none is from now on.
boost::json::value applying_status(const boost::json::value& resource, unit of, const revision& to,
                                   const inventory& objects);

}  // namespace rw::bootstrapper
