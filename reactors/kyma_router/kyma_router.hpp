#pragma once

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/controller.hpp"
#include "k8s/informer.hpp"
#include "k8s/names.hpp"
#include "k8s/reconciler.hpp"
#include "reactors/kyma_router/pacer.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::kyma_router {

/// The index that an informer of Kymas gets from `index_by_runtime`: by the label
/// `kyma-project.io/runtime-id`.
inline constexpr auto runtime_index = "runtime-id";
void index_by_runtime(k8s::informer& kymas);

/// The Kymas with that runtime id; as a rule one. Needs the index.
std::vector<k8s::object> kymas_of(const k8s::informer& kymas, std::string_view runtime_id);

struct router_options {
  std::size_t capacity = 4096;                         ///< runtimes that wait for their Kyma
  core::duration patience = std::chrono::minutes(10);  ///< how long each of them does
  pace each = {};                                      ///< of the events of one Kyma
};

/// All of it must outlive the router.
struct router_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
};

/// Leads what is heard of runtimes to their Kymas: an event names its sender by the common name of
/// its certificate, and the Kyma that has it as a label is to be looked at.
///
/// An event of a runtime that no Kyma has is kept until one does: the Kyma's creation may be on its
/// way to this process while the runtime's first event has already come. Since events say nothing
/// but "look", one for each runtime is enough. Beyond `capacity`, and after `patience`, they are
/// forgotten, which is counted, and logged. A runtime where something changes without end is not
/// led to its Kyma oftener than `each` says.
///
/// Metric: `rw_kyma_router_events_total{outcome}`: routed, held (one of many: it is led to its Kyma
/// together with others, a little later), waiting (its Kyma is not known yet), late (a waiting one,
/// whose Kyma came), forgotten.
///
/// Everything happens on one executor, which is also the informer's.
class router {
 public:
  using destination = std::function<void(const k8s::object_key&)>;

  /// The informer must have its index, and outlive the router; somebody else runs it.
  router(k8s::informer& kymas, destination to, router_options options,
         router_environment environment);
  router(const router&) = delete;
  router& operator=(const router&) = delete;

  void heard(std::string_view runtime_id);

  /// Sees to those that wait, until cancelled. What was held back is led to its Kyma then.
  boost::asio::awaitable<void> run();

  std::size_t waiting() const noexcept { return by_id_.size(); }

 private:
  struct waiter {
    std::string runtime_id;
    core::time_point until;
  };
  using waiters = std::list<waiter>;

  void forget(waiters::iterator which);
  boost::asio::awaitable<void> follow();
  boost::asio::awaitable<void> expire();

  k8s::informer& kymas_;
  pacer to_;
  const router_options options_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit log_limit_;
  core::counter& routed_;
  core::counter& held_;
  core::counter& waiting_;
  core::counter& late_;
  core::counter& forgotten_;
  waiters in_order_;  ///< the one that came first, first
  std::unordered_map<std::string, waiters::iterator> by_id_;
};

/// The annotation by which a relay marks a Kyma: when it was told of it (RFC 3339).
inline constexpr std::string_view heard_annotation = "operator.kyma-project.io/runtime-heard-at";

/// Hands what a replica that does not lead has heard to the one that does, whichever that is: by an
/// annotation of the Kyma, whose change the leader's informer sees. Several events of one Kyma that
/// wait become one write; failed writes are tried again with backoff.
///
/// Metrics: a controller's (`kyma-relay`).
///
/// Everything happens on one executor, which is also the client's.
class relay final : private k8s::reconciler {
 public:
  /// The client carries no fence: to tell the leader is what those do who are none.
  relay(boost::asio::any_io_executor executor, k8s::client& api,
        k8s::controller_environment environment);
  ~relay() override;

  /// False if there was no room: it is counted by the queue, and logged here.
  bool tell(const k8s::object_key& kyma);

  /// True if the leader has been told of everything.
  bool idle() const noexcept;

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  boost::asio::awaitable<k8s::reconcile_result> reconcile(k8s::object_key key) override;

  k8s::client& api_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit log_limit_;
  k8s::controller controller_;
};

}  // namespace rw::kyma_router
