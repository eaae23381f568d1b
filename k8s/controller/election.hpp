#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "k8s/objects/failure.hpp"
#include "k8s/objects/types.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace rw::k8s {

/// The Lease, and how to hold it; client-go's defaults.
struct election_options {
  std::string ns = {};
  std::string name = {};      ///< of the Lease; also the metrics' label `name`
  std::string identity = {};  ///< whose lease it is; must differ from process to process
  std::chrono::milliseconds lease_duration = std::chrono::seconds(15);  ///< whole seconds
  std::chrono::milliseconds renew_deadline = std::chrono::seconds(10);
  std::chrono::milliseconds retry_period = std::chrono::seconds(2);
  /// So long before the lease may be another's nothing is written any more: room for clocks that
  /// run at different speeds, and for a request on its way.
  std::chrono::milliseconds margin = std::chrono::seconds(1);
};

/// Decides when to read, take, renew and give back a Lease (coordination.k8s.io/v1) so that at most
/// one holds it: the rules of k8s.io/client-go/tools/leaderelection, without sockets.
///
///   - A lease of another is left alone until it has not changed for its own duration, by the local
///     monotonic clock since the change was seen. The times in it are never compared with a clock.
///   - Every write carries the resourceVersion that was read, so of several only one succeeds.
///   - What was gained counts from before the request was sent that gained it: the leader is one
///     until `renew_deadline` after that, and may write until `lease_duration - margin`, whereas
///     another may take the lease only `lease_duration` after it saw the renewal, which is later.
///
/// To be driven: do what a step asks, and give the outcome to `resume`.
class election {
 public:
  /// What is to be done next.
  struct step {
    enum class kind : std::uint8_t { wait, read, create, update };
    kind what = kind::wait;
    core::time_point until = {};     ///< wait until then, or give a request up then
    boost::json::value object = {};  ///< the Lease to create or update
  };
  using answer = std::optional<result<boost::json::value>>;

  /// Throws std::invalid_argument that names the option that can't be.
  election(election_options options, core::random_source random);

  step begin(core::time_point now, std::chrono::system_clock::time_point wall);
  /// `outcome` is none after a wait.
  step resume(answer outcome, core::time_point now, std::chrono::system_clock::time_point wall);
  /// The update that gives the lease back; only while leading, which ends with it.
  step release(core::time_point now, std::chrono::system_clock::time_point wall);

  /// True from the moment that the lease was gained until it was lost or released. Looks at no
  /// clock: `resume` notices that time has run out, for which each step's `until` is soon enough.
  bool leading() const noexcept { return leading_; }
  /// Until when the leader may write.
  core::time_point writes_until() const noexcept;
  /// Who held the lease when it was seen last; empty: nobody.
  const std::string& holder() const noexcept { return seen_.holder; }
  /// What went wrong in the last step; empty if nothing did, or a race was lost.
  const std::string& problem() const noexcept { return problem_; }

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
  boost::json::value object_;  ///< the Lease as seen last; null: there was none
  lease seen_;
  core::time_point seen_at_{};  ///< when `seen_` was another for the last time
  core::time_point sent_{};     ///< before the write under way
  core::time_point gained_{};   ///< before the last write that succeeded
  bool leading_ = false;
  std::string problem_;
};

}  // namespace rw::k8s
