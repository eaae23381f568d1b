#pragma once

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/bootstrapper/desired_set.hpp"
#include "rw/reactors/runtime_controller/remote_watch.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rw::bootstrapper {

/// An object on a runtime that is managed here.
struct inventory_entry {
  unit of = unit::bootstrapper;
  k8s::group_version_kind gvk = {};
  k8s::object_key key = {};  ///< of a cluster-scoped object without namespace
  bool created = false;      ///< since the unit was last in place as a whole

  /// The same object in whichever version.
  bool same_object(const inventory_entry& other) const noexcept {
    return gvk.group == other.gvk.group && gvk.kind == other.gvk.kind && key == other.key;
  }
  friend bool operator==(const inventory_entry&, const inventory_entry&) = default;
};
using inventory = std::vector<inventory_entry>;
boost::json::value write_inventory(const inventory& objects);
/// As a unit of the status has them.
boost::json::object write_contents(const content_digests& of);

/// Why a runtime can't have a revision. Trying again soon helps only with an unknown kind.
struct rejection {
  enum class reason : std::uint8_t { rejected_by_runtime, unknown_kind, foreign_object };
  reason cause = reason::rejected_by_runtime;
  std::string message = {};
};

/// A revision that a runtime has rejected; it is not tried again for a while.
struct rejected_revision {
  std::string digest = {};  ///< empty: none
  rejection because = {};
  core::time_point until = {};
};

/// One unit of a runtime during a pass.
struct unit_state {
  // What the runtime is to have.

  /// The valid revisions, the most desired first: of the sources as they are, then of the last good
  /// contents. None: the unit is left as it is.
  std::vector<revision_ptr> revisions = {};
  std::string desired = {};  ///< digest of the one to be reached; empty: the sources are invalid
  std::string invalid = {};  ///< errors of the sources; empty: none
  /// What becomes of the last valid content of sources that do not exist, by their names.
  std::map<std::string, std::string> missing = {};
  bool removal = false;  ///< the first revision is without a source that is missing
  std::optional<std::chrono::system_clock::time_point> recheck_at = {};  ///< of a later removal
  /// The newest revision, if the runtime must wait for its turn in a roll-out; null: it need not,
  /// or Kyma Infrastructure Manager has begun it, so that it was completed.
  revision_ptr withheld = {};
  bool sourceless = false;  ///< the revisions are of earlier contents: the source has none
  /// Of credentials: digest of the revision of what is stored as the newest, if that is newer than
  /// what the runtime has; empty: it is not.
  std::string newer = {};
  bool lost = false;  ///< what is in place stays as it is, and is not stored
  rejected_revision skipped = {};
  /// What the runtime has, or had before it began to become another one, of the stored contents;
  /// null: it has nothing, or that is not known.
  revision_ptr had = {};

  // What it has, and what was done.

  std::string in_place = {};  ///< digest, as it was recorded before; empty: none is, as a whole
  std::string applied = {};   ///< the same now
  std::string applying = {};  ///< digest of what may be half there, where none is in place
  /// Of what is in place, or was before `applying`; of credentials, also where others took them.
  content_digests contents = {};
  content_digests applying_contents = {};   ///< of what may be half there
  std::string version = {};                 ///< of the applied revision
  std::optional<rejection> rejected = {};   ///< the first revision
  bool repaired = false;                    ///< what was in place had drifted
  bool unrepaired = false;                  ///< likewise, and the runtime has refused the repair
  bool changed = false;                     ///< objects were, or may have been, written or removed
  bool kept = false;                        ///< credentials that must not go back
  bool ahead = false;                       ///< another writer began what was withheld
  std::optional<k8s::failure> failed = {};  ///< transient; the unit may be half applied
  std::vector<std::string> differences = {};
  std::vector<std::string> warnings = {};  ///< of the sources, and of dry runs
  bool not_stored = false;  ///< a content, which may be stored later: until then it can be lost

  /// True if the desired revision is in place.
  bool is_applied() const noexcept {
    return invalid.empty() && !desired.empty() && applied == desired && !failed && !unrepaired;
  }
};

/// Whether the bootstrapper's webhook mutates pods as the configuration in place demands
/// (mutation_proof.hpp). Both empty: it does, or that was not to be proven.
struct mutation_proof {
  std::string error = {};    ///< why it does not
  std::string skipped = {};  ///< why that is not known
};

/// A runtime during a pass.
struct sync_state {
  std::array<unit_state, all_units.size()> units = {};
  inventory objects = {};  ///< superset of what was applied and not removed since
  std::size_t writes = 0;
  /// The objects as they were left: by the pass's writes and attempts, else as it first read them.
  watched_set left = {};
  boost::json::value deployment = {};  ///< the bootstrapper's; null: it does not exist
  std::string pod_error = {};          ///< why its pods will not become ready; empty: none is known
  mutation_proof proof = {};           ///< of a Deployment that is ready

  unit_state& at(unit of) { return units[static_cast<std::size_t>(of)]; }
  const unit_state& at(unit of) const { return units[static_cast<std::size_t>(of)]; }
};

/// What a RuntimeBootstrapper's status remembers between passes: inventory, and what is in place.
/// Nothing of it is read from a runtime.
sync_state read_state(const boost::json::value& resource);

}  // namespace rw::bootstrapper
