#pragma once

#include "k8s/client.hpp"
#include "k8s/client_pool.hpp"
#include "k8s/controller.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "k8s/own_writes.hpp"
#include "reactors/bootstrapper/drift_pace.hpp"
#include "reactors/bootstrapper/drift_watch.hpp"
#include "reactors/bootstrapper/gathered_sets.hpp"
#include "reactors/bootstrapper/progress.hpp"
#include "reactors/bootstrapper/resource.hpp"
#include "reactors/bootstrapper/status.hpp"
#include "reactors/bootstrapper/sync.hpp"
#include "reactors/bootstrapper_mode.hpp"
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
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace rw::bootstrapper {

struct options {
  sync_method how = {};
  bootstrapper_sources usual = {};  ///< sources that a resource does not name
  /// Of Runtimes that do not say otherwise, and where there is no Runtime.
  bootstrapper_mode mode = bootstrapper_mode::off;
  /// A Runtime in mode direct or shadow that has no RuntimeBootstrapper gets one, in its name.
  bool create_for_runtimes = false;

  std::size_t concurrent = 16;  ///< runtimes at once
  /// Runtimes at once that did not answer when they were asked last.
  std::size_t sick_at_once = 4;
  /// For a first answer of a runtime that did not answer last time, and for a removal.
  core::duration runtime_limit = std::chrono::seconds(30);
  /// For all that is done on a runtime that answers. A single request has the client's own limit,
  /// so one that falls silent meanwhile is found out much sooner.
  core::duration whole_limit = std::chrono::minutes(5);
  /// For a first answer of one that answered when it was asked last; then it has to wait for a
  /// place among the sick ones, so that many which fall silent at once hold up no others.
  core::duration first_answer = std::chrono::seconds(2);
  /// For a sick one's first sign of life; doubled after each time in a row that there was none, up
  /// to half of `runtime_limit`.
  core::duration sick_limit = std::chrono::seconds(3);
  core::duration backoff_base = std::chrono::seconds(1);  ///< of one runtime's failures
  core::duration backoff_limit = std::chrono::minutes(5);

  /// Between looks at a runtime where nothing is known to have changed; up to a tenth longer.
  core::duration success_interval = std::chrono::minutes(10);
  /// From the first to the longest pause between looks at one whose pods are not ready.
  core::duration ready_interval = std::chrono::seconds(2);
  core::duration ready_interval_limit = std::chrono::minutes(1);
  /// What concerns many runtimes reaches them at random within this time for each of them, at most
  /// within `spread_limit`.
  core::duration spread = std::chrono::milliseconds(2);
  core::duration spread_limit = std::chrono::seconds(5);
  /// Watch what was applied (drift_watch.hpp), and look at a runtime so long after the first change
  /// that was heard of there. Without it drift is only seen at the next look.
  /// Repairs in a row wait longer each time, up to `success_interval` (drift_pace.hpp).
  bool watch_runtimes = true;
  core::duration heard_delay = std::chrono::milliseconds(500);
  /// How long a resource that is being deleted waits for a runtime that does not answer, or may not
  /// be written to now.
  core::duration removal_limit = std::chrono::minutes(5);
};

/// What is read of the control plane, kept by informers that others may share and somebody else
/// runs. All of it must outlive the reactor.
struct sources {
  k8s::informer& bootstrappers;
  k8s::informer& runtimes;     ///< Runtimes; their metadata is enough
  k8s::informer& kubeconfigs;  ///< Secrets with kubeconfigs; may hold others
  k8s::informer& config_maps;  ///< of kcp-system; may hold others than the sources
  k8s::informer& secrets;      ///< of kcp-system: the pull Secrets; may hold others
  /// ClusterTrustBundles; null where the control plane does not serve them.
  k8s::informer* trust_bundles = nullptr;
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
};

/// Keeps the Runtime Bootstrapper installed and configured on every runtime that has a
/// RuntimeBootstrapper and whose mode is `direct`: what the sources in the control plane say comes
/// there as a whole or not at all (sync.hpp), and the resource's status says what is there. In mode
/// `shadow` it only tells what would be written; in the others, and as long as those who signal
/// have not let go of the Runtime (is_handed_over), nothing is done, so that there are never two
/// who write. On the way back they wait until no write is under way any more (is_writing).
///
/// A change of a source goes to all runtimes that it concerns, spread over a little time. Each is a
/// key of its own, with its own backoff; what changes while one is being written is brought by the
/// look that follows at once. One that does not answer costs a bounded part of the reconciles.
///
/// Deleting a RuntimeBootstrapper undeploys what was applied, where the mode is direct. A runtime
/// that does not answer for `removal_limit`, or whose kubeconfig is gone, does not keep it longer;
/// nor does one that is not ours to write to for so long, because of a mark, the hand-over or the
/// Runtime's suspension.
/// In other modes the runtime is left as it is: it is somebody else's.
///
/// Told as Kubernetes events of the resource, when they begin: BootstrapperReady,
/// BootstrapperNotReady, BootstrapperFailed (with what is refused), RuntimeUnreachable,
/// BootstrapperRemoved, BootstrapperRemovalGivenUp, BootstrapperContested (somebody else undoes
/// each repair). Metrics: `rw_bootstrapper_runtimes{state}`, `rw_bootstrapper_sick_runtimes`,
/// `rw_bootstrapper_sick_waiting`, those of progress.hpp, `rw_bootstrapper_writes_total`,
/// `rw_bootstrapper_syncs_total{result}` (changed, unchanged, repaired, refused, rolled_back,
/// failed), `rw_bootstrapper_sync_seconds`, `rw_bootstrapper_held_back_total` (changes on a runtime
/// that wait longer than usual), that of gathered_sets.hpp, and the controller's
/// (`runtime-bootstrapper`).
///
/// Runtimes' clients are called as the watcher's installer calls them, by their Kymas, so a pool
/// may be shared.
///
/// Everything happens on one executor, which is also the informers' and the clients'. It adds
/// indexes to the informers of bootstrappers, Runtimes and kubeconfigs, and takes them away at its
/// end.
class direct_sync final : private k8s::reconciler {
 public:
  direct_sync(boost::asio::any_io_executor executor, options with, sources from, environment in);
  ~direct_sync() override;
  direct_sync(const direct_sync&) = delete;
  direct_sync& operator=(const direct_sync&) = delete;

  /// Runs until cancelled. The pool is to be run and closed by its owner; while runtimes are
  /// watched it needs room for all of them.
  boost::asio::awaitable<void> run();

  /// Looks at a runtime soon. False if there is no room, or this is the end.
  bool requeue(const k8s::object_key& bootstrapper);

  /// True while the runtime of this Runtime may be being written to, although its mode may be
  /// another by now: no further write begins then, but the last one may still come to its end.
  /// Nobody else should be told to write before. It lasts `options::runtime_limit` at most.
  bool is_writing(const k8s::object_key& runtime) const { return written_.contains(runtime); }

  const progress& how_far() const noexcept { return progress_; }
  std::size_t count(runtime_state of) const noexcept { return runtimes_.count(of); }

 private:
  using result = k8s::reconcile_result;
  using step = boost::asio::awaitable<std::optional<result>>;  ///< none: go on
  class at_work;

  boost::asio::awaitable<void> serve(core::task_group* all);

  // direct_sync.cpp: one runtime.
  boost::asio::awaitable<result> reconcile(k8s::object_key key) override;
  boost::asio::awaitable<result> look(boost::json::value resource, places::place* kept);
  boost::asio::awaitable<result> bring(boost::json::value* resource, resource_view view,
                                       situation seen, places::place* kept);
  boost::asio::awaitable<result> settle(boost::json::value* resource, situation seen);
  boost::asio::awaitable<result> unreachable(boost::json::value* resource, situation seen,
                                             std::string why);
  boost::asio::awaitable<result> stop_at(boost::json::value* resource, situation seen, result then);
  boost::asio::awaitable<std::optional<std::string>> sign_of_life(k8s::object_key key,
                                                                  std::string kubeconfig);
  step tell(boost::json::value* resource, const situation& seen);
  step write(boost::json::value* resource, boost::json::value change, std::string subresource);
  void note(const boost::json::value& resource, runtime_state now, const std::string& reason,
            const std::string& message, bool done);
  result wait_for_place(const k8s::object_key& key);
  result doubt(const k8s::object_key& key);

  // lifecycle.cpp: what comes before the first write, and after the last.
  step add_finalizer(boost::json::value* resource);
  boost::asio::awaitable<result> drop_finalizer(boost::json::value* resource);
  boost::asio::awaitable<result> keep_removed(boost::json::value resource, places::place* kept);
  boost::asio::awaitable<std::optional<std::string>> clean(resource_view view,
                                                           std::string kubeconfig,
                                                           places::place* kept);
  boost::asio::awaitable<result> create_for(k8s::object_key runtime);

  // surroundings.cpp: what the control plane says.
  void add_indexes();
  void remove_indexes();
  void watch_all();
  void fan_out(std::vector<k8s::object_key> some, k8s::controller::keys& at_once);
  std::vector<k8s::object_key> who_reads(part which, std::string_view name) const;
  resource_view view_of(const k8s::object& resource) const;
  k8s::object runtime_of(const resource_view& view) const;
  bootstrapper_mode mode_of(const resource_view& view, const k8s::object& runtime) const;
  std::string why_waiting(const resource_view& view, const k8s::object& runtime) const;
  std::string mismatch(const resource_view& view, const k8s::object& runtime) const;
  bool may_write(const k8s::object_key& key) const;
  std::vector<k8s::object> sharers_of(const resource_view& view) const;
  std::optional<std::string> other_owner(const resource_view& view) const;
  k8s::result<std::string> access_to(const resource_view& view, const k8s::object& runtime) const;
  std::string kyma_of(const resource_view& view, const k8s::object& runtime) const;
  bool has_access(const resource_view& view, const k8s::object& runtime) const;

  // requests.cpp: what it wants.
  std::vector<located_source> locate(const resource_view& view) const;
  gathered_set gather_from(const resource_view& view, const std::vector<located_source>& from,
                           std::chrono::system_clock::time_point now) const;
  sync_request request_for(const resource_view& view, situation& seen);

  k8s::result<std::shared_ptr<k8s::client>> client_of(const k8s::object_key& key,
                                                      const std::string& kubeconfig);
  void heard_of(const k8s::object_key& key);
  void note_repair(const boost::json::value& resource, const sync_report& report);
  void give_up_client(const k8s::object_key& key);
  void forget(const k8s::object_key& key);
  core::duration up_to(core::duration most) const;
  core::duration a_little_longer(core::duration base) const { return base + up_to(base / 10); }

  const options with_;
  const sources from_;
  const environment in_;
  core::counter& writes_;
  core::histogram& seconds_;
  core::counter& held_back_;
  progress progress_;
  gathered_sets sets_;
  drift_pace pace_;
  class runtimes runtimes_;
  class places places_;  ///< of the sick ones
  k8s::own_writes own_writes_;
  /// What the pool calls a runtime's client: by its Kyma, where that is known, as other reactors
  /// do, so that they share the connection.
  std::unordered_map<k8s::object_key, std::string, k8s::object_key_hash> clients_;
  /// Runtimes that are being written to, each as often as it is.
  std::unordered_multiset<k8s::object_key, k8s::object_key_hash> written_;
  drift_watch drift_;
  k8s::controller controller_;
};

/// As long as it lives, a runtime counts as being written to.
class direct_sync::at_work {
 public:
  /// `runtime`: the Runtime; empty: there is none that could be told anything.
  at_work(direct_sync& of, const k8s::object& runtime)
      : of_(of), key_(runtime ? runtime.key() : k8s::object_key()) {
    of_.written_.insert(key_);
  }
  ~at_work() { of_.written_.erase(of_.written_.find(key_)); }
  at_work(const at_work&) = delete;
  at_work& operator=(const at_work&) = delete;

 private:
  direct_sync& of_;
  const k8s::object_key key_;
};

}  // namespace rw::bootstrapper
