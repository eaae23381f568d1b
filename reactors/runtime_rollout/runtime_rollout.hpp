#pragma once

#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/reactors/runtime_rollout/prometheus.hpp"
#include "rw/reactors/runtime_rollout/resource.hpp"
#include "rw/reactors/shared/content_gate.hpp"
#include "rw/reactors/shared/resource_writer.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace rw::runtime_rollout {

struct rollout_options {
  std::string component = "bootstrapper";  ///< also the object's name
  defaults usual = {};
  /// From a change on a runtime to the next decision, and the status; many changes become one.
  core::duration settle = std::chrono::milliseconds(300);
  /// As much again for each runtime: a decision looks at all of them.
  core::duration settle_each = std::chrono::microseconds(200);
  core::duration access_interval = std::chrono::minutes(1);  ///< of looking up what it is closed by
  /// For a pass with the sources after a pin was taken away; after that the present content is
  /// theirs.
  core::duration longest_unpin = std::chrono::seconds(30);
};

/// All of it must outlive the roll-out. Informers are run by others.
struct rollout_environment {
  k8s::client& kcp;
  k8s::informer& rollouts;   ///< RuntimeRollouts of kcp-system
  k8s::informer& resources;  ///< one for each runtime; only their keys count
  k8s::informer& runtimes;   ///< of the same names: their uids and labels
  k8s::event_sink& events;
  k8s::controller_environment common;
  boost::json::value lease = {};            ///< what Events are about while nothing is rolled out
  prometheus_client* prometheus = nullptr;  ///< verifies steps; null: none can be
};

/// Rolls content out to many runtimes, as the RuntimeRollout of its component says (decision.hpp):
///
///     passes over runtimes -> admit, observe -> facts -> decide (pure) -> status in KCP
///                                                              -> runtimes that are admitted
///
/// The object is created where it does not exist. A decision that has to survive a restart is in
/// its status before a runtime is admitted by it. Admissions are not stored: a runtime either has
/// the content, as its facts say, or is admitted again within the same limits.
///
/// Without the definition of RuntimeRollouts, without rights to them, and where the definition
/// drops what is written to a status, nothing is admitted: what is rolled out stays. That is looked
/// up each minute, and said by the Event RolloutClosed on the manager's Lease and
/// `rw_rollout_closed`.
///
/// Events on the RuntimeRollout: RolloutSuperseded, WavesBypassed, and when a phase begins
/// RolloutCanary, RolloutWaves, RolloutPaused, RolloutCompleted. Metrics, with the label
/// `component`: `rw_rollout_runtimes{state}` (as the status' counts), `rw_rollout_phase{phase}` (1:
/// it is in this phase), `rw_rollout_step`, `rw_rollout_ahead_runtimes`, `rw_rollout_closed` (1:
/// nothing is rolled out), `rw_rollout_verifications_total{outcome}` (passed, failed).
///
/// Single executor, which is also the informers'.
class runtime_rollout final : public content_gate, private k8s::reconciler {
 public:
  runtime_rollout(boost::asio::any_io_executor executor, rollout_options with,
                  rollout_environment in);

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

  void attach(callbacks to) override { callbacks_ = std::move(to); }
  bool admit(const k8s::object_key& runtime, const shared_content& content,
             const content_revisions& desired, const content_facts& now) override;
  bool still_admits(const k8s::object_key& runtime, std::string_view content) const override;
  std::string pinned() const override { return pinned_; }
  void note_unreadable(std::string_view pinned, std::string error) override;
  bool may_be_pinned(std::string_view content) const override;
  void refresh(const shared_content& content) override;
  void observe(const k8s::object_key& runtime, const content_facts& now) override;
  void leave(const k8s::object_key& runtime) override;

  /// Why nothing is rolled out; empty: it is.
  const std::string& closed() const noexcept { return closed_; }
  /// In CamelCase.
  std::string_view closed_reason() const noexcept { return closed_reason_; }
  wall_time closed_since() const noexcept { return closed_since_; }
  /// True if the runtime waits for its turn.
  bool holds(const std::string& runtime) const;
  /// Returns the revision that the runtime has; empty: none, or it is not known yet.
  std::string_view content_of(const std::string& runtime) const;

 private:
  using result = k8s::reconcile_result;
  boost::asio::awaitable<result> reconcile(k8s::object_key key) override;
  core::counter& verifications(bool passed);
  boost::asio::awaitable<verification_result> verify(std::size_t number, verification by);
  bool follow_pin(const boost::json::value& object);
  boost::asio::awaitable<result> report_idle(boost::json::value* object);
  boost::asio::awaitable<result> report_unreadable(boost::json::value* object);
  boost::asio::awaitable<void> watch_access();
  void set_closed(std::string_view reason, std::string text);
  void take(const k8s::object_key& runtime, participant& known, participant next,
            const content_facts& now);
  bool has_warmed_up();
  void decide_soon() { controller_.add_after(key_, settle()); }
  core::duration settle() const {
    return options_.settle + options_.settle_each * static_cast<int>(runtimes_.size());
  }
  void hold_to_the_clock();
  void locate(const std::string& name, participant& into) const;
  void locate_all(const std::vector<step>& steps);
  void let_in(const rollout_decision& decided);
  void note(const boost::json::value& object, const state& before, const rollout_decision& decided);
  void publish(const rollout_decision& decided);

  const rollout_options options_;
  const rollout_environment environment_;
  const k8s::object_key key_;
  callbacks callbacks_;
  core::time_point started_{};
  bool warm_ = false;
  std::unordered_set<k8s::object_key, k8s::object_key_hash>
      seen_;  ///< with known health, until it has warmed up
  std::string closed_;
  std::string_view closed_reason_;
  wall_time closed_since_ = {};
  shared_content content_;
  std::string stored_;    ///< content that was given to `callbacks::store`
  std::string kept_;      ///< content that was given to `callbacks::keep`
  std::string not_kept_;  ///< content that can't be
  std::string pinned_;
  std::optional<core::time_point> awaits_sources_;  ///< until when, after a pin was taken away
  std::string unreadable_;  ///< why what is pinned can't be read; empty: it can
  participants runtimes_;
  std::vector<k8s::label_selector> selectors_;  ///< of the steps, at the last decision
  bool by_labels_ = false;                      ///< one of them chooses something
  bool inspects_ = false;      ///< the last decision asked for the health of runtimes
  std::size_t new_ahead_ = 0;  ///< not in the status yet
  resource_writer writer_;
  k8s::controller controller_;
};

}  // namespace rw::runtime_rollout
