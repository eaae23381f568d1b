#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/gateway_secret/secrets.hpp"
#include "rw/reactors/shared/cluster_state.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::gateway_secret {

struct rotation_options {
  /// From the addition of the CA until the gateway serves with it.
  std::chrono::seconds grace = std::chrono::hours(4 * 24);
  /// After the grace period the switch does not wait for runtimes.
  bool time_only = false;
  /// Time from the observation of a Secret on a runtime until it is in effect: kubelet may take
  /// that long to update the pods. It ends when all pods say that they have loaded it.
  core::duration propagation = std::chrono::seconds(150);
  /// A runtime that has not converged for so long through a fault of its own no longer blocks the
  /// switch. Not 0, as the restart of an API server should not let the gateway switch before its
  /// cluster.
  std::chrono::seconds excuse_after = std::chrono::hours(24);
  /// So many runtimes at once no longer block it: this part of the fleet, but at least so many;
  /// with 0 %, none.
  std::size_t excused_percent = 5;
  std::size_t excused_least = 3;
  /// This long before the served certificate expires the switch no longer waits for the grace
  /// period, only for the runtimes: a root renewed again and again within the grace period would
  /// otherwise postpone it until no client trusts the gateway.
  std::chrono::seconds urgent = std::chrono::hours(7 * 24);
  /// This long before the served certificate expires the switch does not wait for runtimes either.
  std::chrono::seconds before_expiry = std::chrono::hours(24);
  /// Maximum time from the addition of the CA to the switch; 0: until shortly before the expiry.
  std::chrono::seconds limit{0};
  /// This long before either, the missing runtimes are reported once more, as a warning.
  std::chrono::seconds notice = std::chrono::hours(3 * 24);
  /// An expired CA is dropped after this margin, as clocks differ.
  std::chrono::seconds expiry_margin = std::chrono::hours(1);
  /// caAddedToBundleAt may be this far ahead of the clock: another replica's clock wrote it. A
  /// later time is wrong, and would make every client certificate look old indefinitely.
  std::chrono::seconds clock_skew = std::chrono::minutes(5);
  /// Maximum size of the bundle. A Secret holds a MiB, and every admission configuration carries
  /// it.
  std::size_t authorities = 100;
};

/// The trust that every runtime needs before the gateway serves with another certificate.
struct trust_demand {
  std::string authority = {};  ///< fingerprint of the CA that it must trust
  std::string newest = {};     ///< fingerprint of the newest CA, which may be another one
  wall_time since = {};        ///< time of the newest CA's addition
};

/// The part of a demand that a runtime does not meet.
struct shortfall {
  std::string_view reason = {};  ///< text; empty: it meets the demand
  bool excused = false;  ///< it has failed too long by itself, and the switch does not wait for it
  std::optional<wall_time> recheck_at = {};  ///< when time alone changes the result
};

/// A runtime meets the demand if it trusts the authority, with a certificate that was issued since:
/// by that authority, by the newest, or later than `since` (certificates have whole seconds, so one
/// of the same second is not later), and if that has been so for the propagation delay or all its
/// pods say that they have loaded it. They speak for their own runtime only: one that forges
/// heartbeats loses its own connection. The state of its pods does not matter otherwise: running
/// pods reload the files, and starting pods read them.
shortfall lacks(const cluster_state& of, const trust_demand& demand,
                const rotation_options& options, wall_time now);

/// Returns when the gateway switches in any case: before the served certificate expires, by
/// `before_expiry` or half of the time that was left when the CA was added, or at the limit.
wall_time switch_deadline(wall_time added, wall_time expires, const rotation_options& options);

/// The input of a plan.
struct observed {
  std::optional<root_secret> root = {};
  std::string root_error = {};  ///< why there is none
  std::optional<gateway_content> gateway = {};
  /// The last valid gateway Secret that this process has observed: the source of repairs if a
  /// client damages or deletes it.
  std::optional<gateway_content> last_whole = {};
};

enum class rotation_step : std::uint8_t {
  create,         ///< the gateway Secret
  repair_pair,    ///< certificate or key were unusable
  repair_bundle,  ///< ca.crt was damaged, or lacked the authority of the served certificate
  repair_time,    ///< caAddedToBundleAt was missing, invalid, or ahead of the clock
  add_authority,  ///< prepended to the bundle
  drop_expired,   ///< removed from the bundle
  switch_server,  ///< the gateway serves with the root's certificate from now on
};

/// The phase of the rotation; its changes are logged.
enum class rotation_phase : std::uint8_t {
  no_root,       ///< the root Secret is missing or unusable: nothing to rotate to
  settled,       ///< the gateway serves with the root's certificate
  grace,         ///< the new CA is in the bundle, and the grace period runs
  distributing,  ///< the grace period is over, and runtimes are missing
  blocked,       ///< requires a person
};
std::string_view name_of(rotation_phase phase) noexcept;
/// Returns the reason, in CamelCase, of a phase that needs a person; empty for the others.
std::string_view reason_of(rotation_phase phase) noexcept;

struct rotation_plan {
  std::vector<rotation_step> steps = {};      ///< the steps of `write`, for logs and events
  std::optional<gateway_content> write = {};  ///< nothing: the Secret is up to date for now
  rotation_phase phase = rotation_phase::settled;
  std::string waiting = {};  ///< condition that blocks progress, as text
  std::size_t missing = 0;   ///< runtimes that the switch waits for
  std::size_t excused = 0;   ///< runtimes that lack it, too, and are not waited for
  /// Since when the switch is due; nothing: it is not.
  std::optional<wall_time> due_since = {};
  /// What holds up a switch that is due, where waiting excuses nobody, as a reason in CamelCase;
  /// empty: nothing, or it is excused in time.
  std::string_view held_up_by = {};
  std::optional<trust_demand> demand = {};   ///< while a switch is pending
  std::optional<wall_time> deadline = {};    ///< of the switch; nothing: time alone decides
  bool near_deadline = false;                ///< within the notice
  std::string left_behind = {};              ///< runtimes that the switch did not wait for, as text
  std::optional<wall_time> recheck_at = {};  ///< when time alone changes the plan

  bool has(rotation_step step) const noexcept;
};

/// Plans the next step of the CA rotation. Pure: the same input gives the same plan, and no step
/// once its write is done.
///
/// A root CA that the bundle lacks is prepended, and caAddedToBundleAt becomes now (never earlier
/// than it was). From then on client certificates are issued again and runtimes get the bundle. The
/// gateway switches to the root's certificate in a later write, when
///
/// - the grace period since the *latest* addition has passed, or the served certificate is about to
///   expire, and
/// - every runtime meets the demand (`lacks`), but for a few that have failed for long through a
///   fault of their own, or the deadline has passed (neither applies with `time_only`);
///
/// or at once if the served certificate has expired or is unusable, since then no client can lose
/// its connection. A root that changes again before the switch is the next one to wait for: the
/// served certificate stays the one that every runtime trusts, and its CA stays in the bundle.
///
/// A runtime left behind rejects the gateway until the installer has written the bundle to it (by
/// its kubeconfig, which needs no gateway); its watcher keeps the events until then.
///
/// An expired CA is dropped even if runtimes hold it: no client accepts its certificates. The
/// root's and the served certificate's stay.
///
/// Damage is repaired without removing trust: see `step`.
rotation_plan make_plan(const observed& state, const cluster_states& clusters,
                        const rotation_options& options, wall_time now);

}  // namespace rw::gateway_secret
