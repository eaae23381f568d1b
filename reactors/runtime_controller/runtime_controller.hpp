#pragma once

#include "rw/core/within.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/event_sink.hpp"
#include "rw/reactors/runtime_controller/pass_preview.hpp"
#include "rw/reactors/runtime_controller/permits.hpp"
#include "rw/reactors/runtime_controller/remote_watch.hpp"
#include "rw/reactors/runtime_controller/runtimes.hpp"
#include "rw/reactors/shared/resource_writer.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rw {

/// Limits and delays of a reactor that writes to runtimes.
struct runtime_options {
  std::size_t concurrent = 16;           ///< runtimes at once
  std::size_t unhealthy_concurrent = 4;  ///< of these, unhealthy ones

  /// Of the probe, the first request to a healthy runtime. A runtime that misses it becomes
  /// unhealthy and is probed again in its turn, so that many simultaneous failures do not delay the
  /// others.
  core::duration probe_timeout = std::chrono::seconds(2);
  /// Of the first probe of an unhealthy one; doubled for each in a row, up to half of
  /// `runtime_limit`.
  core::duration unhealthy_probe = std::chrono::seconds(3);
  /// Of all requests to a healthy runtime in one reconcile. A runtime that misses it is slow: it
  /// becomes unhealthy, and its reconcile continues in its turn.
  core::duration prompt_limit = std::chrono::seconds(10);
  /// Of all requests to an unhealthy runtime in one reconcile.
  core::duration runtime_limit = std::chrono::minutes(1);

  /// Reconnects to all unhealthy runtimes together in a second. Each has its turn; with many of
  /// them that is later than its backoff, at most `resync_period`.
  double reconnect_rate = 8;
  core::duration backoff_base = std::chrono::seconds(1);  ///< of one runtime's failures
  core::duration backoff_limit = std::chrono::minutes(5);
  /// Period without observed changes; plus up to a tenth.
  core::duration resync_period = std::chrono::minutes(10);
  /// First and longest pause between reconciles of a runtime whose pods are not ready.
  core::duration ready_interval = std::chrono::seconds(1);
  core::duration ready_interval_limit = std::chrono::minutes(1);
  /// A change that concerns many runtimes is spread at random over this time for each of them, at
  /// most over `spread_limit`.
  core::duration spread = std::chrono::milliseconds(2);
  core::duration spread_limit = std::chrono::seconds(30);
  /// Maximum time after `deletionTimestamp` that a deletion waits for a runtime. KCP's time, so
  /// that it survives a leader.
  core::duration removal_limit = std::chrono::minutes(5);

  /// Watch the written objects (remote_watch.hpp); without it only the resync finds drift.
  bool watch_runtimes = true;
  /// From a change on a runtime to the reconcile; changes in a row wait longer.
  core::duration drift_delay = std::chrono::milliseconds(500);
};

/// All of it must outlive the reactor.
struct runtime_environment {
  k8s::client& kcp;
  k8s::client_pool& runtimes;
  k8s::event_sink& events;  ///< on the resources
  core::clock& clock;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  std::shared_ptr<const bool> dry = {};  ///< of the runtimes' clients (`client::dry`)
};

/// Names of a reactor.
struct runtime_names {
  std::string controller = {};  ///< the metrics' label `controller`
  std::string metrics = {};     ///< their prefix: "rw_bootstrapper"
  std::string subject = {};     ///< the component on the runtimes: "bootstrapper"
  /// The event at the beginning of each runtime_state: its reason, and the beginning of its
  /// message.
  struct event {
    std::string reason;
    std::string text;
  };
  std::array<event, 4> events = {};
  std::string removed = {};            ///< reason of the event of a removal
  event removal_failed = {};           ///< of an attempt of it; those of one kind follow in a row
  std::string removal_abandoned = {};  ///< likewise, where the component may still be there
};

/// Base of reactors that keep a component on many runtimes, each by a resource in the control
/// plane: a controller whose reconciles each contact one runtime, and trust none of them to
/// respond.
///
/// A healthy runtime is contacted at once. A runtime that does not respond to its probe in time, or
/// takes too long, becomes unhealthy. An unhealthy runtime is contacted with one of a few permits
/// (permits.hpp), for which it queues without cost. So any number of unhealthy and slow runtimes
/// leaves most of the reconciles to the others.
///
/// Written objects are watched, so that foreign changes are detected at once.
///
/// Metrics: those of runtimes.hpp, permits.hpp and remote_watch.hpp, and the controller's.
///
/// Single executor, which is also the informers' and the clients'.
class runtime_controller : protected k8s::reconciler {
 public:
  runtime_controller(const runtime_controller&) = delete;
  runtime_controller& operator=(const runtime_controller&) = delete;

  /// Enqueues the runtime once `after` has passed. Returns false if the queue is full or shut down.
  bool requeue(const k8s::object_key& key, core::duration after = {});

  std::size_t count(runtime_state of) const noexcept { return runtimes_.count(of); }
  const class runtimes& runtimes() const noexcept { return runtimes_; }

 protected:
  using result = k8s::reconcile_result;
  using keys = k8s::controller::keys;
  template <class T>
  using work = boost::asio::awaitable<T>;

  runtime_controller(boost::asio::any_io_executor executor, runtime_names names,
                     const runtime_options& options, runtime_environment in,
                     k8s::resource_type resources);
  ~runtime_controller() override = default;

  /// A runtime during one reconcile.
  struct contact {
    k8s::object_key key = {};
    permits::permit permit = {};                 ///< held while the runtime counts as unhealthy
    std::string client_name = {};                ///< in the pool
    std::shared_ptr<k8s::client> api = {};       ///< once it has responded
    std::string error = {};                      ///< why it has not
    status_reason reason = status_reason::none;  ///< likewise
    std::optional<result> deferred = {};         ///< another reconcile follows; nothing to report
    bool has_access = true;                      ///< false: the kubeconfig is invalid
  };

  /// Called first in each reconcile.
  contact begin(const k8s::object_key& key) { return {.key = key, .permit = permits_.claim(key)}; }

  /// Probes the runtime. Returns false if it has not responded: `to->error` has the reason, or
  /// `to->deferred` ends the reconcile.
  work<bool> connect(contact* to, std::string client_name, k8s::result<std::string> kubeconfig);

  struct removal {
    bool ended = false;          ///< the resource may go; otherwise `contact::error` says why not
    bool failed = false;         ///< an attempt; not where none was made, or by our own fault
    bool by_definition = false;  ///< it goes with the definition of its kind, or may
    std::string abandoned = {};  ///< why the component may still be there; empty: it is not
  };
  /// Has the component removed from a runtime whose `resource` goes, unless that goes with the
  /// definition of its kind (definition.hpp). Where that fails it is tried again, by the backoff
  /// and when `left` is over at the latest; then it is abandoned. `left` is asked after the
  /// attempt.
  work<removal> remove_runtime(
      contact* to, const boost::json::value* resource, std::string client_name,
      k8s::result<std::string> kubeconfig, std::function<core::duration()> left,
      std::function<work<k8s::result<void>>(std::shared_ptr<k8s::client>)> undeploy);

  /// Awaits requests to the runtime within its remaining limit. After a failure of the connection,
  /// or when the limit is missed, the runtime is unhealthy; otherwise it is healthy.
  template <class T>
  work<k8s::result<T>> bounded(contact* to, work<k8s::result<T>> requests) {
    const auto begin = environment_.clock.now();
    auto got =
        co_await core::within(environment_.clock, begin + limit_of(*to), std::move(requests));
    if (!got) co_return missed_limit(to);
    settle(to, got->has_error() ? std::optional(got->error()) : std::nullopt,
           environment_.clock.now() - begin);
    co_return std::move(*got);
  }

  /// Probes the runtime for a preview, which claims no permit and says nothing of its health; the
  /// client only tries its writes, into `into`. Fails with why there is none.
  work<k8s::result<std::shared_ptr<k8s::client>>> contact_for_preview(
      std::string client_name, k8s::result<std::string> kubeconfig,
      std::shared_ptr<k8s::write_preview> into);

  /// Returns how the reconcile of a runtime ends that does not respond: with an error, whose retry
  /// waits for the runtime's turn.
  result unreachable(const std::string& error) const;

  /// Reports the beginning of a runtime's state by an event on `resource`, which is a warning
  /// unless it is installed, or on its way to be. A change of reason or cause is a change of state.
  /// `changed`: the reconcile wrote objects.
  void note(const boost::json::value& resource, runtimes::status now, bool changed = false);

  /// Reports by an event on `resource` that the component is removed from the runtime. `abandoned`:
  /// why it may still be there; empty: it is not.
  void note_removed(const boost::json::value& resource, const std::string& abandoned);

  /// Watches the runtime's objects as the reconcile has left them. An unhealthy runtime is not
  /// watched.
  void watch_drift(const contact& of, watched_set left);
  /// The objects as the last pass has left them; empty if the runtime is not watched.
  watched_set expected_on(const k8s::object_key& key) const { return drift_.expected(key); }

  /// Forgets the runtime and closes its connection.
  void forget_runtime(const k8s::object_key& key, const std::string& client_name);

  /// Returns the delay of the next reconcile: short while pods are starting, else the resync
  /// period.
  core::duration next_pause(const k8s::object_key& key, bool starting);

  /// Enqueues each key at a random moment of a short time, so that neither the runtimes nor this
  /// process are overloaded. Adds keys that the queue rejects to `rest`.
  void spread(std::vector<k8s::object_key> all, keys& rest);

  /// Returns the remaining time of a deletion to wait for its runtime; zero or less: none.
  core::duration removal_left(const boost::json::value& resource) const;

  core::duration with_jitter(core::duration base) const { return base + random_below(base / 10); }
  core::duration random_below(core::duration most) const;

  const runtime_environment environment_;
  const k8s::resource_type resources_;
  resource_writer writer_;
  class runtimes runtimes_;

 private:
  core::duration limit_of(const contact& of) const;
  k8s::failure missed_limit(contact* of);
  void settle(contact* of, std::optional<k8s::failure> failed, core::duration taken);
  void defer(contact* of, std::string error);
  void set_unreachable(contact* of, const k8s::failure& error);

  const runtime_names names_;
  const runtime_options options_;
  class permits permits_;

 protected:
  k8s::controller controller_;
  /// The reactor runs it.
  remote_watch drift_;
};

}  // namespace rw
