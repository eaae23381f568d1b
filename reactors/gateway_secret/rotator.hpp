#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/k8s/controller/reconciler.hpp"
#include "rw/reactors/gateway_secret/report.hpp"
#include "rw/reactors/gateway_secret/rotation.hpp"
#include "rw/reactors/shared/cluster_state.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>

namespace rw::gateway_secret {

struct rotator_options {
  k8s::object_key root = {"istio-system", "klm-watcher"};
  k8s::object_key gateway = {"istio-system", "klm-istio-gateway"};
  rotation_options rotation = {};
  /// Time before its expiry at which the served certificate counts as close to expiry.
  std::chrono::seconds close_to_expiry = std::chrono::hours(14 * 24);
  /// Maximum time between reconciles: the clock may be set, and the planned wait may come from a
  /// wrong one.
  core::duration revisit = std::chrono::hours(1);
};

/// All of it must outlive the rotator.
struct rotator_environment {
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  k8s::event_sink& events;
};

/// Returns the options of an informer of one Secret only: one for the root, one for the gateway.
k8s::informer_options informer_of(const k8s::object_key& secret);

/// Keeps the gateway Secret as `make_plan` plans it: reads both Secrets through informers and the
/// state of the runtimes from the cluster states, and writes the plan.
///
/// Each write is an update of exactly the resourceVersion that it was planned for, so neither a
/// deposed leader nor a late informer can undo a step. Run by the leader only.
///
/// A change of phase, each step, an approaching deadline and the runtimes it left behind are logged
/// once and reported as events of the gateway Secret; a change of the missing runtimes is logged.
///
/// Metrics: `lifecycle_mgr_gateway_secret_server_cert_close_to_expiry` (0, 1),
/// `rw_gateway_secret_phase{phase}` (1 for the current one), `rw_gateway_secret_authorities`,
/// `rw_gateway_secret_missing_runtimes`, `rw_gateway_secret_excused_runtimes`,
/// `rw_gateway_secret_held_up`, `rw_gateway_secret_deadline_timestamp_seconds`,
/// `rw_gateway_secret_certificate_expiry_timestamp_seconds{certificate}` (`served`, `root`),
/// `rw_gateway_secret_steps_total{step}`; and a controller's.
///
/// Everything happens on one executor, which is also the informers', the client's and the
/// states'.
class rotator final : private k8s::reconciler {
 public:
  /// `roots` and `gateways` are informers of Secrets; the caller runs them.
  rotator(boost::asio::any_io_executor executor, k8s::client& api, k8s::informer& roots,
          k8s::informer& gateways, cluster_states& clusters, rotator_options options,
          rotator_environment environment);

  /// Runs until cancelled; may be run again after that.
  boost::asio::awaitable<void> run();

  /// Returns the last plan, for status pages.
  const rotation_plan& last() const noexcept { return last_; }
  /// The CAs that the gateway Secret would have, where there is none and a dry client makes none.
  std::optional<tls::ca_bundle> foreseen() const;
  /// False until the first plan: what `last` returns before it says nothing.
  bool has_planned() const noexcept { return has_planned_; }

 private:
  /// The parsed content of a Secret, once for each of its states: keys are costly to check.
  template <typename T>
  struct read_once {
    k8s::object from = {};
    std::optional<T> content = {};

    /// Returns true if there is a new state to parse.
    bool changed(const k8s::object& now);
  };

  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override;
  void read();
  void read_root(const k8s::object& now);
  k8s::object_reference reference() const;
  k8s::reconcile_result later(wall_time now) const;

  const boost::asio::any_io_executor executor_;
  k8s::client& api_;
  k8s::informer& roots_;
  k8s::informer& gateways_;
  cluster_states& clusters_;
  const rotator_options options_;
  const rotator_environment environment_;
  report report_;
  read_once<root_secret> root_;
  read_once<gateway_content> gateway_;
  observed state_;
  bool has_planned_ = false;
  rotation_plan last_;
};

}  // namespace rw::gateway_secret
