#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "k8s/client/fence.hpp"
#include "k8s/client/object_api.hpp"
#include "k8s/controller/election.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rw::k8s {

/// All of it must outlive the elector.
struct leader_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Runs what only one process may run at a time: while it holds a Lease (election.hpp says how) it
/// runs one coroutine of each reactor that it was given.
///
/// When the lease is lost the fence is shut and the reactors are cancelled, `lease_duration -
/// renew_deadline` before another can have it, and awaited before it is tried for again. When the
/// elector itself is cancelled the reactors are cancelled and awaited, with the lease being renewed
/// meanwhile; then the lease is given back, so that another need not wait. Cancelled once more, for
/// it took too long, it shuts the fence at once, and goes on like that.
///
/// The fence is open exactly while the lease surely lasts. A process that was stopped beyond that
/// and goes on finds it shut by time, even before anything here has run. So the clients that the
/// reactors write with carry the fence; the one that is given here must not, since the lease has to
/// be taken while the fence is shut. fence.hpp says which late writes it can't hold back.
///
/// Metrics, with the label `name`: `leader_election_master_status` (1 while it leads),
/// `rw_leader_election_lost_total`, `rw_leader_election_failures_total`.
///
/// Everything happens on one executor (thread or strand).
class leader_elector {
 public:
  using reactor = std::function<boost::asio::awaitable<void>()>;

  /// Throws std::invalid_argument that names an option that can't be.
  leader_elector(boost::asio::any_io_executor executor, std::shared_ptr<object_api> api,
                 election_options options, std::vector<reactor> reactors, fence& writes,
                 leader_environment environment);
  ~leader_elector();
  leader_elector(const leader_elector&) = delete;
  leader_elector& operator=(const leader_elector&) = delete;

  /// Runs until cancelled. A reactor that ends with an exception ends it, too, after the lease was
  /// given back; it is thrown on. One that ends without does not.
  boost::asio::awaitable<void> run();

  bool leading() const noexcept;
  /// Who held the lease when it was seen last; empty: nobody.
  const std::string& holder() const noexcept;

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

/// An identity that no other process has: the host's name and a random number, as client-go's
/// users make it.
std::string make_election_identity(core::random_source& random);

}  // namespace rw::k8s
