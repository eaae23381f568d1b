#pragma once

#include "rw/reactors/bootstrapper/control_plane.hpp"
#include "rw/reactors/bootstrapper/invalid_sources.hpp"
#include "rw/reactors/bootstrapper/revision_source.hpp"
#include "rw/reactors/bootstrapper/rollout_turn.hpp"
#include "rw/reactors/bootstrapper/status.hpp"
#include "rw/reactors/bootstrapper/sync.hpp"
#include "rw/reactors/runtime_controller/remote_watch.hpp"
#include "rw/reactors/runtime_controller/runtime_controller.hpp"
#include "rw/reactors/shared/content_gate.hpp"
#include "rw/reactors/shared/state_counts.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace rw::bootstrapper {

struct direct_sync_options : runtime_options {
  direct_sync_options() {
    ready_interval = std::chrono::seconds(2);
    spread_limit = std::chrono::seconds(5);
  }

  apply_settings apply = {};
  target_names to = {};
  bootstrapper_sources defaults = {};               ///< sources that a resource does not name
  bootstrapper_mode mode = bootstrapper_mode::off;  ///< of Runtimes without the annotation
  /// Runtimes in mode direct or shadow without a RuntimeBootstrapper get one.
  bool create_for_runtimes = false;
  /// Whoever may create an inline manifest is admin on every runtime.
  bool allow_inline_manifests = false;
  /// In KCP, of the stored contents (content_store.hpp); no other client should read it.
  std::string state_namespace = "runtime-watcher-system";
  /// A stored content is deleted once each collection for so long has found it unused.
  std::chrono::milliseconds unused_content_after = std::chrono::hours(1);
  /// Runtimes in mode direct get the condition RuntimeBootstrapperReady, in the words of Kyma
  /// Infrastructure Manager. It is compared at each pass.
  bool runtime_condition = false;
  source_removal removal = {};
  /// A change of the trust bundle alone does not wait for a roll-out.
  bool trust_at_once = false;
};

/// How long a change of others may be on its way from the API server.
inline constexpr auto catch_up = std::chrono::milliseconds(200);

/// Keeps the Runtime Bootstrapper installed and configured on every runtime that has a
/// RuntimeBootstrapper and whose mode is `direct`. How it is put together:
///
///     informers -> control_plane: facts of one runtime -> decide (pure): one action
///                  revision_source: revisions of both units, by the sources and by content_store
///     sync: plan (reads, dry runs) -> record the inventory in KCP -> apply, prune
///     status <- the sync's report; drift_watch <- what the sync left
///
/// `decide` is the one decision: taken at the begin of each pass, and again before each write. All
/// state that must survive is in KCP: inventory and digests in the RuntimeBootstrapper's status,
/// contents in content_store's Secrets. Nothing that is read on a runtime is trusted.
///
/// Beside Kyma Infrastructure Manager, which writes from the same sources, it converges: nobody is
/// locked out, and repairs in a row wait longer each time.
///
/// A change of a source enqueues all runtimes that it concerns, spread over a little time,
/// each a key with its own backoff. Credentials are written then; the unit `bootstrapper` where the
/// roll-out, if there is one, admits the runtime (content_gate.hpp). Unhealthy and slow ones get a
/// bounded part of the passes (runtime_controller.hpp).
///
/// Deleting a RuntimeBootstrapper undeploys what is in its inventory, for `removal_limit` at most,
/// and only in mode `direct`. Deleting an auto-created one is an opt-out: an annotation on the
/// Runtime keeps it from being created again.
///
/// Events, when a state begins: BootstrapperReady, BootstrapperNotReady, BootstrapperFailed,
/// RuntimeUnreachable, BootstrapperRemoved, BootstrapperRemovalAbandoned, BootstrapperContested,
/// SourceMissing; on a Runtime in mode direct that nothing is written to: BootstrapperUnmanaged.
/// Metrics: those of runtime_controller (`rw_bootstrapper`, `runtime-bootstrapper`),
/// revision_source.hpp and remote_watch.hpp; of state_counts.hpp with `rw_bootstrapper_content`:
/// `current` and `outdated` in mode direct, `in_step` and `differing` in mode shadow, or why
/// nothing is written in mode direct, such as `NoResource` (decision.cpp);
/// `rw_bootstrapper_writes_total` and `rw_bootstrapper_syncs_total{result}` (changed, unchanged,
/// repaired, refused, failed).
///
/// Single executor, which is also the informers' and the clients'.
class direct_sync final : public runtime_controller {
 public:
  /// `gate` decides which runtimes without sources of their own may take new content of unit
  /// `bootstrapper`; null: all at once. It must run no longer than the reactor lives.
  direct_sync(boost::asio::any_io_executor executor, direct_sync_options with, sources from,
              runtime_environment in, content_gate* gate = nullptr);
  ~direct_sync() override;

  /// Runs until cancelled. The pool is run and closed by its owner; while runtimes are watched it
  /// needs capacity for all of them.
  boost::asio::awaitable<void> run();

  /// Returns what the next pass would write to the runtime, and to KCP where that ends a removal.
  /// Writes nothing to them. In mode shadow, what mode direct would write at once. After `limit` it
  /// has what was found until then, and an error.
  boost::asio::awaitable<pass_preview> preview(k8s::object_key key,
                                               core::duration time_limit = preview_limit);

  const state_counts& contents() const noexcept { return contents_; }
  /// As of the latest pass over each runtime.
  const invalid_sources& invalid() const noexcept { return invalid_; }
  std::vector<k8s::object_key> runtimes_of(std::string_view kyma) const {
    return kcp_.runtimes_of(kyma);
  }

 private:
  struct pass;

  bool may(const k8s::object_key& key, action next) const;
  work<void> collect_contents();

  // direct_sync.cpp: one pass.
  work<result> reconcile(k8s::object_key key) override;
  work<result> stand_by(pass* in);
  work<result> run_sync(pass* in);
  work<resource_writer::ended> resolve(pass* in);
  work<k8s::result<void>> execute(pass* in);
  work<result> fail(pass* in, k8s::failure error);
  work<result> finish(pass* in);
  core::duration next_pass(const pass& in);
  work<result> report(pass* in, result then);
  work<resource_writer::ended> copy_condition(pass* in);
  void note_observed(const pass& in);
  void count_pass(const char* outcome);

  // direct_rollout.cpp: what the roll-out decides of a pass.
  work<resource_writer::ended> ask_gate(pass* in, std::string digest);
  bool has_lost_turn(const pass& in, unit of, const revision_ptr& to);
  content_facts rollout_facts(const pass& in) const;
  void settle_removal(pass* in);
  bool is_used(std::string_view source) const;

  // rejections.cpp
  void skip_rejected(pass* in);
  bool note_rejections(pass* in);

  // preview.cpp
  work<k8s::result<void>> preview_sync(pass* in, preview_writes writes);
  work<k8s::result<void>> preview_release(const pass* in, preview_writes writes);

  // lifecycle.cpp: before the first pass, and the last one.
  work<result> create(k8s::object_key key);
  work<result> undeploy_all(pass* in);
  work<k8s::result<void>> undeploy(pass* in, std::shared_ptr<k8s::client> api);
  work<k8s::result<boost::json::value>> opt_out(const pass* in, k8s::client kcp);
  work<result> release(pass* in, std::string abandoned);
  void forget(const k8s::object_key& key);
  void note_decision(const k8s::object_key& key, const runtime_facts& facts,
                     const sync_decision& decided);

  const direct_sync_options options_;
  core::counter& writes_;
  const sources sources_;
  content_store stored_;
  revision_source revisions_;
  usual_content usual_;
  content_gate* const gate_;
  control_plane kcp_;
  state_counts contents_;
  invalid_sources invalid_;
  /// Revisions that runtimes have rejected, by unit. Kept in memory: a restart tries again.
  std::unordered_map<k8s::object_key, std::array<rejected_revision, all_units.size()>,
                     k8s::object_key_hash>
      rejected_;
};

/// One pass over one runtime.
struct direct_sync::pass {
  bool direct() const noexcept { return input.decided.next == action::sync; }

  contact to = {};
  bool is_preview = false;           ///< the roll-out records nothing of it
  boost::json::value resource = {};  ///< the RuntimeBootstrapper, as it was written last
  resource_view view = {};
  status_input input = {};
  std::string not_pinned = {};  ///< why the pinned content is not known; empty: it is, or none is
  std::string admitted = {};    ///< content that it was admitted to, by its digest; empty: to none
  bool removal_waits = false;   ///< for the configuration in place
  resource_writer::ended ended = {};  ///< within the sync: a write to KCP failed, or the turn ended
};

}  // namespace rw::bootstrapper
