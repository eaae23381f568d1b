#pragma once

#include "rw/reactors/bootstrapper/plan.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <functional>
#include <memory>

namespace rw::bootstrapper {

struct sync_request {
  target_names to = {};
  bool write = true;  ///< false: reads and dry runs only
  bool adopt = false;
  std::function<bool()> may_write = {};  ///< asked before each write; empty: always
  /// Asked before a unit's first write, and before that is recorded: false fails the sync with
  /// `errc::fenced`. Empty: it may.
  std::function<bool(unit, const revision_ptr&)> may_begin = {};
  /// Persists in the control plane that a unit is about to become this revision, and
  /// the inventory; called before the first write of a revision that is not in place, or of objects
  /// that the state does not have. If it fails, nothing of the unit is written, and so does the
  /// unit; with `errc::fenced` the sync.
  std::function<boost::asio::awaitable<k8s::result<void>>(unit, revision_ptr, inventory)> record =
      {};
};

/// Makes a runtime have, for each unit, the first of the given revisions that it takes, as a whole:
///
///   1. Plan: discover kinds, read the objects, check their managers, dry-run each write.
///   2. Record in KCP which revision comes, and the union of the old and the new inventory, unless
///      that is what it has.
///   3. Apply what differs, in a safe order; remove what the revision does not have.
///
/// A rejection in step 1 leaves the runtime as it is; one in step 3 is followed by the next
/// revision, the last good one; where there is none, and none was in place, what was created is
/// removed. Cut short anywhere, the next call ends with one whole revision: each object carries the
/// digest of what it was applied from, so leftovers of another revision are seen. Where nothing
/// differs, nothing is written.
///
/// A unit that waits for its turn in a roll-out is kept whole: what a pass that was cut short has
/// left of another revision is repaired. Where Kyma Infrastructure Manager has begun the newest
/// revision, it is completed to that one.
///
/// Where the Deployment is ready then, its webhook must mutate a Pod (mutation_proof.hpp).
///
/// Credentials come first, and neither unit's rejection holds up the other. Fails with what
/// concerns the runtime as a whole: unreachable, `fenced`. `state` says what is to be had, and then
/// what was done, also when the call is cancelled.
boost::asio::awaitable<k8s::result<void>> sync(std::shared_ptr<k8s::client> api,
                                               const apply_settings* options, sync_request request,
                                               sync_state* state);

/// Removes all objects of an inventory that are still ours. Namespaces stay. The number of writes.
boost::asio::awaitable<k8s::result<std::size_t>> undeploy(std::shared_ptr<k8s::client> api,
                                                          const apply_settings* options,
                                                          inventory objects,
                                                          std::function<bool()> may_write);

}  // namespace rw::bootstrapper
