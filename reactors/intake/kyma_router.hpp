#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/most_runtimes.hpp"

#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

namespace rw::kyma_router {

/// The index of Kymas that `index_by_runtime` adds to an informer: by the label
/// `kyma-project.io/runtime-id`.
inline constexpr auto runtime_index = "runtime-id";
void index_by_runtime(k8s::informer& kymas);

/// Returns the Kymas with that runtime id; usually one. Needs the index.
std::vector<k8s::object> kymas_of(const k8s::informer& kymas, std::string_view runtime_id);

struct router_options {
  core::duration interval = std::chrono::seconds(1);  ///< between two requeues of one Kyma
};

/// All of it must outlive the router.
struct router_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
};

/// Routes events of runtimes to their Kymas: the common name of the sender's certificate is the
/// runtime id, and a reconcile of the Kyma with that label follows. A Kyma whose runtime changes
/// continuously is requeued after a delay, which the destination's queue merges: twice in each
/// `interval` at most.
///
/// An event of a runtime without a Kyma is counted, and logged. Nothing is lost: a Kyma that is
/// new, or gets its runtime id later, is reconciled for that.
///
/// Metric: `rw_kyma_router_events_total{outcome}`: routed, held (requeued after a delay), unknown
/// (no Kyma has the runtime id).
///
/// Everything happens on one executor, which is also the informer's.
class router {
 public:
  /// Requeues the Kyma after a delay; it may merge several pending requests.
  using destination = std::function<void(const k8s::object_key&, core::duration)>;

  /// The informer must have its index, and outlive the router; the caller runs it.
  router(const k8s::informer& kymas, destination to, router_options options,
         router_environment environment);
  router(const router&) = delete;
  router& operator=(const router&) = delete;

  void on_event(std::string_view runtime_id);

 private:
  bool lead(const k8s::object_key& kyma);

  const k8s::informer& kymas_;
  const destination destination_;
  const router_options options_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit log_limit_;
  core::counter& routed_;
  core::counter& held_;
  core::counter& unknown_;
  /// When a Kyma may be requeued at once. A Kyma evicted here may be requeued a little early.
  core::lru_map<k8s::object_key, core::time_point, k8s::object_key_hash> next_{most_runtimes};
};

}  // namespace rw::kyma_router
