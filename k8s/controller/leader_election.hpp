#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/client/fence.hpp"
#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/controller/election.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <exception>
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

/// Runs what only one process may run at a time: while it holds a Lease (election.hpp has the
/// rules) it runs one coroutine of each reactor.
///
/// When the lease is lost it shuts the fence and cancels the reactors, `lease_duration -
/// renew_deadline` before another process can take the lease. It awaits them before it tries to
/// acquire the lease again. When the elector itself is cancelled it cancels and awaits the
/// reactors, and renews the lease meanwhile; then it releases the lease, so that another process
/// need not wait. A second cancellation, because that takes too long, shuts the fence at once; the
/// rest proceeds as before.
///
/// The fence is open exactly while the lease is certainly valid. A process that was stopped longer
/// than that finds it shut by time, even before any code here has run. So the clients that the
/// reactors write with carry the fence. The client passed here must not, since the lease is
/// acquired while the fence is shut. fence.hpp states which late writes the fence can't prevent.
///
/// Metrics, with the label `name`: `leader_election_master_status` (1 while it leads),
/// `rw_leader_election_lost_total`, `rw_leader_election_failures_total`.
///
/// Everything happens on one executor (thread or strand).
class leader_elector {
 public:
  using reactor = std::function<boost::asio::awaitable<void>()>;

  /// Throws std::invalid_argument that names an invalid option.
  leader_elector(boost::asio::any_io_executor executor, std::shared_ptr<object_api> api,
                 election_options options, std::vector<reactor> reactors, fence& writes,
                 leader_environment environment);
  leader_elector(const leader_elector&) = delete;
  leader_elector& operator=(const leader_elector&) = delete;

  /// Runs until cancelled. A reactor that ends with an exception ends it as well: it releases the
  /// lease and rethrows. A reactor that returns does not.
  boost::asio::awaitable<void> run();

  bool leading() const noexcept { return election_.leading(); }
  /// Returns the last observed holder of the lease; empty: none.
  const std::string& holder() const noexcept { return election_.holder(); }
  /// Returns who leads now, as far as this process has observed.
  observed_leader observed() const { return election_.observed(now()); }

 private:
  struct end_of_loop;

  core::time_point now() const { return environment_.clock.now(); }
  auto wall() const { return environment_.clock.wall(); }

  boost::asio::awaitable<void> elect();
  boost::asio::awaitable<election::response> perform(election::step step);
  boost::asio::awaitable<result<boost::json::value>> request(election::step step);
  boost::asio::awaitable<void> follow_up();
  boost::asio::awaitable<void> await_reactors();
  boost::asio::awaitable<void> release();
  void begin_term();
  void abort_term();
  void tell_news();

  const boost::asio::any_io_executor executor_;
  const std::shared_ptr<object_api> api_;
  const election_options options_;
  const std::vector<reactor> reactors_;
  fence& fence_;
  const leader_environment environment_;
  election election_;
  core::gauge& status_;
  core::counter& lost_;
  core::counter& failures_;
  core::log_limit error_log_;
  std::string told_holder_;
  const std::unique_ptr<core::timer> alarm_;
  std::unique_ptr<core::task_group> term_;  ///< the reactors' group while leading; then null
  bool reactors_ended_ = true;              ///< no reactor of the latest term runs
  bool stopping_ = false;
  bool hurried_ = false;        ///< the fence stays shut
  bool over_ = false;           ///< `elect` has ended
  std::exception_ptr failure_;  ///< of a reactor
  core::wake term_over_;        ///< set with `reactors_ended_`
  core::wake ended_;            ///< set when `elect` has ended
  core::task_group loop_;       ///< `elect` and `await_reactors`
};

/// Returns an identity that no other process has: the host's name and a random number, as
/// client-go's users make it.
std::string make_election_identity(core::random_source& random);

}  // namespace rw::k8s
