#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::kyma_router {

/// The index of Kymas that `index_by_runtime` adds to an informer: by the label
/// `kyma-project.io/runtime-id`.
inline constexpr auto runtime_index = "runtime-id";
void index_by_runtime(k8s::informer& kymas);

/// Returns the Kymas with that runtime id; usually one. Needs the index.
std::vector<k8s::object> kymas_of(const k8s::informer& kymas, std::string_view runtime_id);

struct router_options {
  std::size_t capacity = 4096;                         ///< runtimes that wait for their Kyma
  core::duration patience = std::chrono::minutes(10);  ///< maximum wait of each
  core::duration interval = std::chrono::seconds(1);   ///< between two requeues of one Kyma
};

/// All of it must outlive the router.
struct router_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
};

/// Routes events of runtimes to their Kymas: the common name of the sender's certificate is the
/// runtime id, and a reconcile of the Kyma with that label follows.
///
/// An event of a runtime without a Kyma is kept until there is one: this process may not have
/// observed the Kyma's creation before the runtime's first event. An event only triggers a
/// reconcile, so one for each runtime is enough. Beyond `capacity`, and after `patience`, events
/// are dropped, counted and logged. A Kyma whose runtime changes continuously is requeued after a
/// delay, which the destination's queue merges: twice in each `interval` at most.
///
/// Metric: `rw_kyma_router_events_total{outcome}`: routed, held (requeued after a delay), waiting
/// (its Kyma is not known yet), late (a waiting one, whose Kyma has appeared), forgotten.
///
/// Everything happens on one executor, which is also the informer's.
class router {
 public:
  /// Requeues the Kyma after a delay; it may merge several pending requests.
  using destination = std::function<void(const k8s::object_key&, core::duration)>;

  /// The informer must have its index, and outlive the router; the caller runs it.
  router(k8s::informer& kymas, destination to, router_options options,
         router_environment environment);
  router(const router&) = delete;
  router& operator=(const router&) = delete;

  void on_event(std::string_view runtime_id);

  /// Handles the waiting events, until cancelled.
  boost::asio::awaitable<void> run();

  std::size_t waiting() const noexcept { return by_id_.size(); }

 private:
  struct waiter {
    std::string runtime_id;
    core::time_point until;
  };
  using waiters = std::list<waiter>;

  bool lead(const k8s::object_key& kyma);
  void forget(waiters::iterator which);
  boost::asio::awaitable<void> follow();
  boost::asio::awaitable<void> expire();

  k8s::informer& kymas_;
  const destination to_;
  const router_options options_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit log_limit_;
  core::counter& routed_;
  core::counter& held_;
  core::counter& waiting_;
  core::counter& late_;
  core::counter& forgotten_;
  /// When a Kyma may be requeued at once. A Kyma evicted here may be requeued a little early.
  core::lru_map<k8s::object_key, core::time_point, k8s::object_key_hash> next_{16384};
  waiters in_order_;  ///< oldest first
  std::unordered_map<std::string, waiters::iterator> by_id_;
};

}  // namespace rw::kyma_router
