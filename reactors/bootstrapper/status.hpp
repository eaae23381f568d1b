#pragma once

#include "reactors/bootstrapper/decision.hpp"
#include "reactors/bootstrapper/sync.hpp"
#include "reactors/bootstrapper_mode.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// A unit as the control plane has it.
struct unit_status {
  std::string desired = {};  ///< digest of the revision of its sources; empty: they are invalid
  std::string invalid = {};  ///< errors of its sources; empty: none
  /// Digest of the newest revision, if the runtime must wait for its turn in a roll-out: then
  /// `desired` is what it is to have until then. Empty: it need not.
  std::string waiting = {};
  std::vector<std::string> warnings = {};
};

/// The result of one pass over a runtime.
struct status_input {
  bootstrapper_mode mode = bootstrapper_mode::off;
  decision decided = {};
  std::string failed = {};  ///< why the runtime was not, or not completely, observed
  std::array<unit_status, all_units.size()> units = {};
  std::optional<sync_report> report = {};
  bool observed = false;  ///< the report is complete; else it has what was done by then
};

/// Installation states, as status.state has them.
enum class installation : std::uint8_t { not_started, in_progress, ready, failed, upgrade_needed };
std::string_view to_string(installation of) noexcept;

/// `desired`: the version that is to run; empty: it is not known.
installation installation_of(const boost::json::value& deployment, std::string_view desired);
/// As a pass found it: pods that fail for good count as failed at once.
installation installation_of(const sync_report& report);

/// True if both units have the revision of their sources.
bool is_synced(const status_input& input);
/// Why one of them has not, for people; empty: nothing is invalid or rejected.
std::string blocked_by(const status_input& input);

/// The status to write; none if nothing changes.
///
/// Conditions: `Compatible` (sources are valid, and the runtime takes them), `ConfigurationSynced`
/// (both units are in place), `Installed` (the Deployment runs), `Ready` (all of these);
/// `RuntimeBootstrapperReady` in the words of Kyma Infrastructure Manager's Runtime; in mode shadow
/// `InStep` (nothing would be written). Where the runtime was not observed, because it is not
/// reachable or not ours, or is only previewed, what it may no longer be is Unknown.
std::optional<boost::json::value> next_status(const boost::json::value& resource,
                                              const status_input& input,
                                              std::chrono::system_clock::time_point now);

/// The status before the first write of new objects: the inventory, and the unit's phase Applying.
boost::json::value applying_status(const boost::json::value& resource, unit of,
                                   const inventory& objects);

}  // namespace rw::bootstrapper
