#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/channel.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/thread_owner.hpp"
#include "rw/core/wake.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/core/work_queue.hpp"
#include "rw/k8s/controller/failing_keys.hpp"
#include "rw/k8s/controller/reconciler.hpp"
#include "rw/k8s/objects/delta.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rw::k8s {

class informer;

struct controller_options {
  std::string name = {};                                     ///< the metrics' label `controller`
  std::size_t concurrent = 4;                                ///< concurrent reconciles
  core::duration reconcile_limit = std::chrono::minutes(5);  ///< time limit of one reconcile
  core::duration shutdown = std::chrono::seconds(5);         ///< grace period of running reconciles
  core::work_queue_options queue = {};                       ///< its name is the controller's
};

/// All of it must outlive the controller.
struct controller_environment {
  core::clock& clock;
  core::optional_watchdog watchdog = {};  ///< of the reconciles' time limit, precise to a tick
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Calls a reconciler for the keys of changed objects: sources add keys to a work queue, and a
/// bounded number of workers reconciles them (terms as in controller-runtime).
///
/// Sources are added before `run`. A source waits while the queue is full, and so does its
/// producer; no key is lost. Keys that informers add before the first reconcile have the low
/// priority.
///
/// An error is logged when it begins, when it changes (at most once a minute for each key), and
/// when it ends; not at each try.
///
/// Metrics, with the label `controller`: `controller_runtime_reconcile_total{result}` (success,
/// requeue_after, error), `controller_runtime_reconcile_errors_total`,
/// `controller_runtime_terminal_reconcile_errors_total`,
/// `controller_runtime_reconcile_panics_total`, `controller_runtime_reconcile_time_seconds`,
/// `controller_runtime_max_concurrent_reconciles`, `controller_runtime_active_workers`,
/// `rw_controller_reconcile_timeouts_total`, `rw_controller_failing_keys`; and the queue's.
///
/// Everything happens on one executor (thread or strand), which is also the informers'; two threads
/// in it at once end the process (core/thread_owner.hpp).
class controller {
 public:
  using keys = std::vector<object_key>;
  /// Appends the keys that a change affects to `keys`.
  template <typename T>
  using mapping = std::function<void(const T&, keys&)>;

  controller(boost::asio::any_io_executor executor, controller_options options, reconciler& target,
             controller_environment environment);
  ~controller();
  controller(const controller&) = delete;
  controller& operator=(const controller&) = delete;

  /// Watches the objects of an informer, under their own keys or those that `map` returns. The
  /// caller runs the informer, which must outlive the controller. No reconcile begins before it is
  /// synced. `run` subscribes: a controller that waits to lead costs nothing.
  void watch(informer& from);
  void watch(informer& from, mapping<delta> map);

  /// Watches a channel, such as a listener's events.
  template <typename T>
  void watch(std::shared_ptr<core::channel<T>> from, mapping<T> map) {
    add_source(
        [this, from = std::move(from), map = std::move(map)] { return forward<T>(from, map); });
  }

  /// Adds a key from the controller's own executor, at any time.
  core::add_result add(const object_key& key, core::priority level = core::priority::normal) {
    const core::thread_owner::scope here(owner_);
    return queue_.add(key, level);
  }
  core::add_result add_after(const object_key& key, core::duration delay) {
    const core::thread_owner::scope here(owner_);
    return queue_.add_after(key, delay);
  }

  /// Runs until cancelled: then ends its sources, lets running reconciles end within `shutdown`,
  /// and cancels them after that; queued keys are dropped. Returns early, with a log line, if an
  /// informer ended before it was synced.
  boost::asio::awaitable<void> run();

  std::size_t failing() const noexcept {
    const core::thread_owner::scope here(owner_);
    return failing_.size();
  }
  /// To be read on the controller's executor, as all else.
  const core::work_queue<object_key, object_key_hash>& queue() const noexcept {
    const core::thread_owner::scope here(owner_);
    return queue_;
  }

 private:
  struct numbers;
  struct worker;
  using work_queue = core::work_queue<object_key, object_key_hash>;
  using source = std::function<boost::asio::awaitable<void>()>;

  void add_source(source run) {
    const core::thread_owner::scope here(owner_);
    to_run_.push_back(std::move(run));
  }
  /// Waits while the queue is full. Returns false at shutdown.
  boost::asio::awaitable<bool> put(keys* batch);

  template <typename T>
  boost::asio::awaitable<void> forward(std::shared_ptr<core::channel<T>> from, mapping<T> map) {
    constexpr std::size_t at_once = 64;
    std::vector<T> items;
    keys batch;
    for (;;) {
      items.clear();
      batch.clear();
      const auto got = co_await from->receive_some(items, at_once);
      if (got.has_error()) co_return;
      for (const auto& item : items) map(item, batch);
      const bool go_on = co_await put(&batch);
      if (!go_on) co_return;
    }
  }

  core::time_point now() const;
  boost::asio::awaitable<bool> await_sync();
  boost::asio::awaitable<void> warn_unsynced();
  void start_workers();
  void fail(std::exception_ptr thrown);
  boost::asio::awaitable<void> work(worker* self);
  boost::asio::awaitable<void> process(worker* self, work_queue::item item);
  boost::asio::awaitable<std::optional<reconcile_result>> call(worker* self, object_key key);
  void settle(const work_queue::item& item, const reconcile_result& result);
  void tell_error(const object_key& key, const reconcile_result& result);
  void tell_success(const object_key& key);
  boost::asio::awaitable<void> stop();
  boost::asio::awaitable<void> give_up_in_time();

  const core::thread_owner owner_{"a controller"};
  const boost::asio::any_io_executor executor_;
  const controller_options options_;
  reconciler& target_;
  controller_environment environment_;
  core::own_watchdog own_watchdog_;
  const std::unique_ptr<numbers> numbers_;
  std::vector<source> to_run_;
  std::vector<informer*> informers_;
  std::vector<std::shared_ptr<core::channel<delta>>> subscriptions_;
  core::log_limit flood_log_;
  bool started_ = false;   ///< workers have started
  bool stopping_ = false;  ///< workers take no more keys
  std::list<worker> all_workers_;
  work_queue queue_;
  failing_keys failing_;
  core::wake end_;  ///< set after a fatal error
  std::exception_ptr failure_;
  core::task_group sources_;
  core::task_group background_;  ///< the queue's own coroutine, and `warn_unsynced`
  core::task_group workers_;
};

}  // namespace rw::k8s
