#pragma once

#include "reactors/bootstrapper/applier.hpp"
#include "reactors/remote_watch.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::bootstrapper {

/// A revision that a runtime has rejected; it is not tried again for a while.
struct rejected_revision {
  std::string digest = {};  ///< empty: none
  rejection because = {};
};

struct sync_request {
  target_names to = {};
  bool write = true;  ///< false: reads and dry runs only
  bool adopt = false;
  /// For each unit the valid revisions, the most desired first: of the sources as they are, then of
  /// the last good contents. None: the unit is left as it is.
  std::array<std::vector<revision_ptr>, all_units.size()> revisions = {};
  std::array<rejected_revision, all_units.size()> rejected = {};
  /// A newer revision of unit `bootstrapper`, which the runtime is not to have yet. Where another
  /// writer has brought it, or a part of it, the unit is left as it is. Null: there is none.
  revision_ptr withheld = {};
  recorded_state state = {};
  std::function<bool()> may_write = {};  ///< asked before each write; empty: always
  /// Persists an inventory in the control plane; called before the first write of objects that
  /// `state` does not have. If it fails, so does the sync, with `errc::fenced`.
  std::function<boost::asio::awaitable<k8s::result<void>>(unit, inventory)> record = {};
};

struct unit_report {
  /// Digest of the revision in place; empty: none is, as a whole.
  std::string applied = {};
  std::string version = {};                 ///< of that revision
  std::optional<rejection> rejected = {};   ///< the first revision
  bool repaired = false;                    ///< what was in place had drifted
  bool changed = false;                     ///< objects were, or may have been, written or removed
  bool ahead = false;                       ///< another writer brought what is withheld
  std::optional<k8s::failure> failed = {};  ///< transient; the unit may be half applied
  std::vector<std::string> differences = {};
  std::vector<std::string> warnings = {};
};

struct sync_report {
  std::array<unit_report, all_units.size()> units = {};
  inventory objects = {};  ///< to be recorded
  std::size_t writes = 0;
  watched_set left = {};               ///< the objects as they were left
  boost::json::value deployment = {};  ///< the bootstrapper's; null: it does not exist
  std::string pod_error = {};          ///< why its pods will not become ready; empty: none is known

  const unit_report& at(unit of) const { return units[static_cast<std::size_t>(of)]; }
};

/// Makes a runtime have, for each unit, the first of the given revisions that it takes, as a whole:
///
///   1. Plan: discover kinds, read the objects, check their managers, dry-run each write.
///   2. Where new objects come, record the union of the old and the new inventory in KCP.
///   3. Apply what differs, in a safe order; remove what the revision does not have.
///
/// A rejection in step 1 leaves the runtime as it is; one in step 3 is followed by the next
/// revision, the last good one; where there is none, and none was in place, what was created is
/// removed. Cut short anywhere, the next call ends with one whole revision: each object carries the
/// digest of what it was applied from, so leftovers of another revision are seen. Where nothing
/// differs, nothing is written.
///
/// Credentials come first, and neither unit's rejection holds up the other. Fails with what
/// concerns the runtime as a whole: unreachable, `fenced`. `into` has what was done by then, also
/// when the call is cancelled.
boost::asio::awaitable<k8s::result<void>> sync(std::shared_ptr<k8s::client> api,
                                               const apply_options* options, sync_request request,
                                               sync_report* into);

/// Removes all objects of an inventory that are still ours. Namespaces stay. The number of writes.
boost::asio::awaitable<k8s::result<std::size_t>> undeploy(std::shared_ptr<k8s::client> api,
                                                          const apply_options* options,
                                                          inventory objects,
                                                          std::function<bool()> may_write);

}  // namespace rw::bootstrapper
