#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/k8s/objects/failure.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rw::k8s {

/// Options of a Lease; client-go's defaults.
struct election_options {
  std::string ns = {};
  std::string name = {};      ///< of the Lease; also the metrics' label `name`
  std::string identity = {};  ///< of the holder; must differ from process to process
  std::chrono::milliseconds lease_duration = std::chrono::seconds(15);  ///< whole seconds
  std::chrono::milliseconds renew_deadline = std::chrono::seconds(10);
  std::chrono::milliseconds retry_period = std::chrono::seconds(2);
  /// Writes end this long before another process may take the lease: a margin for clocks of
  /// different speed, and for a request on its way.
  std::chrono::milliseconds margin = std::chrono::seconds(1);
  /// Of the Lease, set by each write that acquires or renews it; they stay when it is released.
  std::map<std::string, std::string> annotations = {};
};

/// Who leads, as far as a process has observed the Lease.
struct observed_leader {
  std::string holder = {};  ///< last observed one, as it may have been; empty: none
  bool leads = false;       ///< false: the lease of `holder` has expired since, or was lost
  std::optional<std::chrono::system_clock::time_point> renewed = {};  ///< by the holder's clock
  std::string error = {};  ///< why the Lease could not be read last; empty: it was
};

/// Decides when to read, acquire, renew and release a Lease (coordination.k8s.io/v1) so that at
/// most one process holds it: the rules of k8s.io/client-go/tools/leaderelection, without sockets.
///
/// - A foreign lease is left alone until it has not changed for its own duration, by the local
///   monotonic clock since the change was observed. The times in it are never compared with a
///   clock.
/// - Every write carries the resourceVersion that was read, so of several only one succeeds.
/// - A term counts from before its request was sent: the process leads until `renew_deadline` after
///   that, and may write until `lease_duration - margin`. Another process may take the lease only
///   `lease_duration` after it observed the renewal, which is later.
///
/// The caller does what a step requests, and passes the result to `resume`.
class election {
 public:
  struct step {
    enum class kind : std::uint8_t { wait, read, create, update };
    kind type = kind::wait;
    core::time_point until = {};     ///< end of the wait, or deadline of the request
    boost::json::value object = {};  ///< the Lease to create or update
  };
  using response = std::optional<result<boost::json::value>>;

  /// Throws std::invalid_argument that names the invalid option.
  election(election_options options, core::random_source random);

  step begin(core::time_point now, std::chrono::system_clock::time_point wall);
  /// `result` is nothing after a wait.
  step resume(response result, core::time_point now, std::chrono::system_clock::time_point wall);
  /// Returns the update that releases the lease. Only while leading; ends that.
  step release(core::time_point now, std::chrono::system_clock::time_point wall);

  /// Returns true from the acquisition of the lease until its loss or release. Reads no clock:
  /// `resume` detects the expiry, and each step's `until` is early enough for it.
  bool leading() const noexcept { return leading_; }
  /// Returns when the leader's writes must end.
  core::time_point writes_until() const noexcept;
  /// Returns the last observed holder of the lease; empty: none.
  const std::string& holder() const noexcept { return seen_.holder; }
  /// Returns who leads at `now`.
  observed_leader observed(core::time_point now) const;
  /// Returns the error of the last step; empty on success, or if another process was faster.
  const std::string& error() const noexcept { return error_; }

 private:
  step wait(core::time_point now, bool jitter);
  step read(core::time_point now);
  step write(core::time_point now, std::chrono::system_clock::time_point wall);
  step after_read(result<boost::json::value> read, core::time_point now,
                  std::chrono::system_clock::time_point wall);
  step after_write(result<boost::json::value> written, core::time_point now);
  step lose(core::time_point now);
  void see(boost::json::value object, core::time_point now);
  bool held_by_other(core::time_point now) const;
  core::time_point request_deadline(core::time_point now) const;

  const election_options options_;
  core::random_source random_;
  step::kind asked_ = step::kind::wait;
  boost::json::value object_;  ///< the Lease last observed; null: there was none
  lease seen_;
  core::time_point seen_at_{};  ///< last change of `seen_`
  core::time_point sent_{};     ///< time before the write under way
  core::time_point gained_{};   ///< time before the last write that succeeded
  bool leading_ = false;
  std::string error_;
  std::string read_error_;  ///< of the latest read
};

}  // namespace rw::k8s
