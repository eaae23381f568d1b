#pragma once

#include "core/clock.hpp"
#include "reactors/gateway_secret/secrets.hpp"
#include "reactors/shared/rollout.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw::gateway_secret {

struct rotation_options {
  /// From when the CA was added until the gateway serves with it.
  std::chrono::seconds grace = std::chrono::hours(4 * 24);
  /// After the grace period the switch does not wait for what runtimes were observed with.
  bool time_only = false;
  /// What a runtime holds is in effect so long after it was observed there: until then kubelet may
  /// not have brought it to the pods.
  core::duration propagation = std::chrono::seconds(90);
  /// A runtime that has been out of reach for so long does not hold the switch up any more. Not 0,
  /// as the restart of an API server should not let the gateway run ahead of its cluster.
  std::chrono::seconds unreachable_after = std::chrono::hours(1);
  /// So long before the served certificate expires the switch does not wait for the grace period
  /// any more, only for the runtimes: a root that is renewed again and again within the grace
  /// period would otherwise put it off until nobody trusts the gateway.
  std::chrono::seconds urgent = std::chrono::hours(7 * 24);
  /// So long before the served certificate expires the switch does not wait for runtimes either.
  std::chrono::seconds before_expiry = std::chrono::hours(24);
  /// Nor longer than this after the CA was added; 0: until shortly before the expiry.
  std::chrono::seconds limit{0};
  /// So long before either, who is missing is reported once more, as a warning.
  std::chrono::seconds notice = std::chrono::hours(3 * 24);
  /// A CA is dropped so long after it has expired, as clocks differ.
  std::chrono::seconds expiry_margin = std::chrono::hours(1);
  /// caAddedToBundleAt may be so far ahead of this clock: another replica's was. Beyond, it is
  /// wrong, and would make every client certificate look old for ever.
  std::chrono::seconds clock_skew = std::chrono::minutes(5);
  /// Largest bundle. A Secret holds a MiB, and every admission configuration carries it.
  std::size_t authorities = 100;
};

/// What every runtime should have before the gateway serves with another certificate.
struct trust_demand {
  std::string authority = {};  ///< fingerprint of the CA that it must trust by then
  std::string newest = {};     ///< of the one that came last, which need not be the same
  time_point since = {};       ///< when that was
};

/// What a runtime lacks of a demand.
struct shortfall {
  std::string_view reason = {};               ///< in words; empty: it lacks nothing
  bool excused = false;                       ///< it is out of reach, and no longer waited for
  std::optional<time_point> recheck_at = {};  ///< when time alone changes something
};

/// A runtime meets the demand when what it holds makes it trust the authority, with a certificate
/// that was issued since: by that authority, by the newest, or later than `since` (certificates
/// have whole seconds, so one of the same second is not later), and has been in place for the
/// propagation delay. Whether its pods run does not matter: those that do reload the files, and
/// those that start read them.
shortfall lacks(const rollout_tracker::entry& of, const trust_demand& demand,
                const rotation_options& options, time_point now);

/// When the gateway switches whatever the runtimes have: before the served certificate expires, by
/// `before_expiry` or half of the time that was left when the CA was added, or at the limit.
time_point switch_deadline(time_point added, time_point expires, const rotation_options& options);

/// What is known when the next step is decided.
struct observed {
  std::optional<root_secret> root = {};
  std::string root_problem = {};  ///< why there is none
  std::optional<gateway_content> gateway = {};
  /// How the gateway Secret was when it was whole, as far as this process knows: what to repair it
  /// from if somebody damages or deletes it.
  std::optional<gateway_content> last_whole = {};
};

enum class step : std::uint8_t {
  create,         ///< the gateway Secret
  repair_pair,    ///< certificate or key could not be served
  repair_bundle,  ///< ca.crt was damaged, or lacked the authority of the served certificate
  repair_time,    ///< caAddedToBundleAt was missing, no time, or ahead of the clock
  add_authority,  ///< prepended to the bundle
  drop_expired,   ///< taken out of the bundle
  switch_server,  ///< the gateway serves with the root's certificate from now on
};

/// Where the rotation is; what of it changes is worth a log line.
enum class phase : std::uint8_t {
  no_root,       ///< the root Secret is missing or can't be used: nothing to rotate to
  settled,       ///< the gateway serves with the root's certificate
  grace,         ///< the new CA is in the bundle, and time has to pass
  distributing,  ///< time has passed, and runtimes are missing
  blocked,       ///< needs a person
};
std::string_view name_of(phase what) noexcept;

struct plan {
  std::vector<step> steps = {};               ///< what `write` does, in words for logs and events
  std::optional<gateway_content> write = {};  ///< none: the Secret is as it should be for now
  phase where = phase::settled;
  std::string waiting = {};                   ///< for what and for whom, in words
  std::size_t missing = 0;                    ///< runtimes that the switch waits for
  std::optional<trust_demand> demand = {};    ///< while there is a switch to come
  std::optional<time_point> deadline = {};    ///< of that; none: time alone decides
  bool near_deadline = false;                 ///< within the notice
  std::string left_behind = {};               ///< whom the switch did not wait for, in words
  std::optional<time_point> look_again = {};  ///< when time alone changes something

  bool has(step what) const noexcept;
};

/// Decides the next step of the CA rotation. Pure: the same is planned for the same state, and
/// nothing once its write is done.
///
/// A root CA that the bundle lacks is put in front of it, and caAddedToBundleAt becomes now (never
/// earlier than it was). From then on client certificates are issued anew and runtimes get the
/// bundle. The gateway switches to the root's certificate in a later write, when
///
/// - the grace period since the *latest* addition has passed, or the served certificate is about to
///   expire, and
/// - every runtime that can be reached meets the demand (`lacks`), or the deadline has come
///   (neither is asked with `time_only`);
///
/// or at once if the served certificate has expired or can't be served, since then nobody has
/// anything to lose. So a root that changes again before that is simply the next one to wait for;
/// what is served stays what every runtime already trusts, and its CA stays in the bundle.
///
/// A runtime that was left behind refuses the gateway until the installer has brought it the bundle
/// (by its kubeconfig, which needs no gateway); its watcher keeps the events until then.
///
/// An expired CA is dropped, whatever runtimes hold: nobody accepts its certificates any more. The
/// root's and the served certificate's stay.
///
/// What people broke is repaired without taking trust away: see `step`.
plan make_plan(const observed& world, const rollout_tracker& tracker,
               const rotation_options& options, time_point now);

}  // namespace rw::gateway_secret
