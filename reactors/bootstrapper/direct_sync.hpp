#pragma once

#include "k8s/client.hpp"
#include "k8s/client_pool.hpp"
#include "k8s/controller.hpp"
#include "k8s/event_recorder.hpp"
#include "reactors/bootstrapper/control_plane.hpp"
#include "reactors/bootstrapper/drift_backoff.hpp"
#include "reactors/bootstrapper/drift_watch.hpp"
#include "reactors/bootstrapper/last_good.hpp"
#include "reactors/bootstrapper/progress.hpp"
#include "reactors/bootstrapper/rejections.hpp"
#include "reactors/bootstrapper/reporter.hpp"
#include "reactors/bootstrapper/resource_writer.hpp"
#include "reactors/bootstrapper/revision_source.hpp"
#include "reactors/bootstrapper/rollout_turn.hpp"
#include "reactors/bootstrapper/status.hpp"
#include "reactors/bootstrapper/sync.hpp"
#include "reactors/content_gate.hpp"
#include "reactors/places.hpp"
#include "reactors/runtimes.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace rw::bootstrapper {

struct options {
  apply_options apply = {};
  bootstrapper_sources defaults = {};               ///< sources that a resource does not name
  bootstrapper_mode mode = bootstrapper_mode::off;  ///< of Runtimes without the annotation
  /// Runtimes in mode direct or shadow without a RuntimeBootstrapper get one.
  bool create_for_runtimes = false;
  /// Whoever may create an inline manifest is admin on every runtime.
  bool allow_inline_manifests = false;
  /// In KCP, of the stored contents (last_good.hpp); nobody else should read it.
  std::string state_namespace = "runtime-watcher-system";

  std::size_t concurrent = 16;           ///< runtimes at once
  std::size_t unhealthy_concurrent = 4;  ///< of these, runtimes whose last probe failed
  /// Of a removal; half of it bounds the probe of an unreachable runtime.
  core::duration runtime_limit = std::chrono::seconds(30);
  /// Of all requests of a pass on a runtime that answers; each has the client's own limit as well.
  core::duration sync_timeout = std::chrono::minutes(5);
  /// Of the probe of a runtime that answered last time. One that misses it waits for its turn among
  /// the unreachable ones, so that many which fail at once hold up no others.
  core::duration probe_timeout = std::chrono::seconds(2);
  /// Of the first probe of an unreachable one; doubled each time in a row.
  core::duration unhealthy_probe = std::chrono::seconds(3);
  core::duration backoff_base = std::chrono::seconds(1);  ///< of one runtime's failures
  core::duration backoff_limit = std::chrono::minutes(5);

  core::duration resync_period = std::chrono::minutes(10);  ///< plus up to a tenth
  /// First and longest pause between passes over a runtime whose pods are not ready.
  core::duration ready_interval = std::chrono::seconds(2);
  core::duration ready_interval_limit = std::chrono::minutes(1);
  /// A change that concerns many runtimes reaches them at random within this for each of them, at
  /// most within `spread_limit`.
  core::duration spread = std::chrono::milliseconds(2);
  core::duration spread_limit = std::chrono::seconds(5);
  /// Watch applied objects (drift_watch.hpp); without it drift is only found by the resync.
  bool watch_runtimes = true;
  /// From a change on a runtime to the pass; repairs in a row wait longer (drift_backoff.hpp).
  core::duration drift_delay = std::chrono::milliseconds(500);
  /// A change of the trust bundle alone does not wait for a roll-out.
  bool trust_at_once = false;
  /// How long a deletion waits for a runtime that can't be written to.
  core::duration removal_limit = std::chrono::minutes(5);
};

/// All of it must outlive the reactor.
struct environment {
  k8s::client& kcp;
  k8s::client_pool& runtimes;
  k8s::event_recorder& events;  ///< on the RuntimeBootstrappers
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  /// Decides which runtimes without sources of their own may take new content of unit
  /// `bootstrapper`; null: all at once. It must run no longer than the reactor lives.
  content_gate* gate = nullptr;
};

/// Keeps the Runtime Bootstrapper installed and configured on every runtime that has a
/// RuntimeBootstrapper and whose mode is `direct`. How it is put together:
///
///     informers -> control_plane: facts of one runtime -> decide (pure): one action
///                  revision_source: revisions of both units, by the sources and by last_good
///     sync: plan (reads, dry runs) -> record the inventory in KCP -> apply, prune
///     status <- the sync's report; drift_watch <- what the sync left
///
/// `decide` is the one decision: taken at the begin of each pass, and again before each write. All
/// state that must survive is in KCP: inventory and digests in the RuntimeBootstrapper's status,
/// contents in last_good's Secrets. Nothing that is read on a runtime is trusted.
///
/// Beside Kyma Infrastructure Manager, which writes from the same sources, it converges: nobody is
/// locked out, and repairs in a row wait longer each time.
///
/// A change of a source is looked at for all runtimes that it concerns, spread over a little time,
/// each a key with its own backoff. Credentials are written then; the unit `bootstrapper` where the
/// roll-out, if there is one, admits the runtime (content_gate.hpp). Unreachable runtimes take a
/// bounded part of the passes.
///
/// Deleting a RuntimeBootstrapper undeploys what is in its inventory, for `removal_limit` at most,
/// and only in mode `direct`. Deleting an auto-created one is an opt-out: an annotation on the
/// Runtime keeps it from being created again.
///
/// Events, when a state begins: BootstrapperReady, BootstrapperNotReady, BootstrapperFailed,
/// RuntimeUnreachable, BootstrapperRemoved, BootstrapperRemovalAbandoned, BootstrapperContested.
/// Metrics: `rw_bootstrapper_runtimes{state}`, `rw_bootstrapper_sick_runtimes`,
/// `rw_bootstrapper_sick_waiting`, those of progress.hpp, `rw_bootstrapper_writes_total`,
/// `rw_bootstrapper_syncs_total{result}` (changed, unchanged, repaired, refused, failed),
/// `rw_bootstrapper_sync_seconds`, `rw_bootstrapper_held_back_total`, those of revision_source.hpp
/// and drift_watch.hpp, and the controller's (`runtime-bootstrapper`).
///
/// Single executor, which is also the informers' and the clients'.
class direct_sync final : private k8s::reconciler {
 public:
  direct_sync(boost::asio::any_io_executor executor, options with, sources from, environment in);
  ~direct_sync() override;
  direct_sync(const direct_sync&) = delete;
  direct_sync& operator=(const direct_sync&) = delete;

  /// Runs until cancelled. The pool is run and closed by its owner; while runtimes are watched it
  /// needs capacity for all of them.
  boost::asio::awaitable<void> run();

  /// Enqueues the runtime. Returns false if the queue is full or shut down.
  bool requeue(const k8s::object_key& key);

  /// True while a write to this Runtime's runtime may be under way.
  bool is_writing(const k8s::object_key& runtime) const { return writing_.contains(runtime); }

  const progress& rollout_progress() const noexcept { return progress_; }
  std::size_t count(runtime_state of) const noexcept { return runtimes_.count(of); }

 private:
  using result = k8s::reconcile_result;
  template <class T>
  using work = boost::asio::awaitable<T>;
  struct pass;

  void fan_out(std::vector<k8s::object_key> keys, k8s::controller::keys& rest);
  bool may(const k8s::object_key& key, action what) const;

  // direct_sync.cpp: one pass.
  work<result> reconcile(k8s::object_key key) override;
  work<result> stand_by(pass* in);
  work<result> run_sync(pass* in);
  work<bool> prepare(pass* in);
  work<bool> ask_gate(pass* in, std::string digest);
  work<bool> connect(pass* in);
  work<k8s::result<sync_report>> execute(pass* in);
  work<result> fail(pass* in, k8s::failure error);
  work<result> finish(pass* in);
  core::duration next_pass(pass* in);
  work<result> unreachable(pass* in, std::string error);
  work<result> report(pass* in, result then);

  // lifecycle.cpp: before the first pass, and the last one.
  work<result> create(k8s::object_key key);
  work<result> undeploy_all(pass* in);
  work<result> release(pass* in, std::string abandoned);
  void forget(const k8s::object_key& key);

  const options with_;
  const environment in_;
  core::counter& writes_;
  core::histogram& seconds_;
  core::counter& held_back_;
  const sources from_;
  last_good last_good_;
  revision_source revisions_;
  usual_content usual_;
  control_plane kcp_;
  resource_writer writer_;
  progress progress_;
  drift_backoff backoff_;
  rejections rejections_;
  class runtimes runtimes_;
  class places places_;  ///< of the unreachable ones
  reporter reporter_;
  std::unordered_set<k8s::object_key, k8s::object_key_hash> writing_;
  drift_watch drift_;
  k8s::controller controller_;
};

}  // namespace rw::bootstrapper
