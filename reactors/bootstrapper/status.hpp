#pragma once

#include "reactors/bootstrapper/desired_set.hpp"
#include "reactors/bootstrapper/sync.hpp"
#include "reactors/bootstrapper_mode.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::bootstrapper {

/// A source as it was read for a sync.
struct source_stamp {
  part of = part::manifests;
  std::string source = {};            ///< "ConfigMap kcp-system/a"
  std::string resource_version = {};  ///< empty: the runtime's own is kept
  std::string digest = {};            ///< of the objects that it makes

  friend bool operator==(const source_stamp&, const source_stamp&) = default;
};

/// What is known of one runtime at the end of a look at it.
struct situation {
  bootstrapper_mode mode = bootstrapper_mode::off;
  bool suspended = false;
  bool deleting = false;
  std::string waiting = {};  ///< why nothing is done now, though nothing is wrong
  std::string invalid = {};  ///< why the spec or the sources can't be used
  std::string failed = {};   ///< why the runtime was not, or not wholly, looked at
  std::optional<sync_report> report = {};
  std::vector<source_stamp> sources = {};
};

/// How the bootstrapper's installation is doing, in the words of status.state.
enum class installation : std::uint8_t { not_started, in_progress, ready, failed, upgrade_needed };
std::string_view to_string(installation of) noexcept;

/// `wanted`: the version that the set brings that is wanted; empty: it is not known.
installation installation_of(const boost::json::value& deployment, std::string_view wanted);

/// The status that tells it. None if it tells that already, so that nothing is written when nothing
/// changed.
///
/// Conditions: `Compatible` (what is wanted is valid, and the runtime takes it),
/// `ConfigurationSynced` (it is in place there), `Installed` (the Deployment runs), `Ready` (all of
/// these); `RuntimeBootstrapperReady` in the words of Kyma Infrastructure Manager's Runtime; in
/// mode shadow `InStep` (nothing would be written); `RecordTrusted`, false, after a look that found
/// a record on the runtime that is not as it was written. What is not known stays as it was, but
/// for `Ready`.
std::optional<boost::json::value> next_status(const boost::json::value& resource,
                                              const situation& seen,
                                              std::chrono::system_clock::time_point now);

}  // namespace rw::bootstrapper
