#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/channel.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/steady_calendar.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/cache/api_source.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/reactors/events/dispatch.hpp"
#include "rw/reactors/events/feed.hpp"
#include "rw/reactors/events/observer.hpp"
#include "rw/reactors/events/series.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::observation {

struct observation_options {
  observer_options observer = {};
  bool watches = true;   ///< false: events come from reviews alone
  bool secrets = false;  ///< observe Secrets too
  /// From a refused list, or one with too many objects, to the next try: at first, and at most.
  core::duration retry_base = std::chrono::seconds(5);
  core::duration retry_limit = std::chrono::seconds(30);
  core::duration read_timeout = std::chrono::seconds(5);  ///< of one object
};

/// All of it must outlive the reactor.
struct observation_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  dispatch::dispatcher& dispatcher;           ///< sends the events
  dispatch::delivery& objects;                ///< of the dispatcher
  k8s::client* api = nullptr;                 ///< null: events come from reviews alone
  const managers_in_use* managers = nullptr;  ///< null, or none in use yet: likewise
};

struct observation_statistics {
  std::uint64_t not_persisted = 0;  ///< admitted changes that nothing followed
};

/// Knows what is persisted: takes the events of admitted writes from a channel, watches the
/// resources that the managers' file names, notes what they show in `delivery`, whose
/// changes the dispatcher sends, and offers it the events of reviews that no watch covers.
/// `observer.hpp` has the rules, `plan.hpp` what is not observed. A resource is not observed either
/// while its discovery or list is refused (401, 403, 404), or has more objects than a Watcher may;
/// both are tried again. Two lists are under way at most. The managers' file may change at any
/// time: Watchers that stay keep their objects.
///
/// Metrics: `rw_observation_objects`, `rw_observation_live_watches`,
/// `rw_observation_unobserved_watches`, `rw_observation_undelivered`,
/// `rw_observation_waiting_reviews`, `rw_observation_events_total{cause}` (watch, list, review),
/// `rw_observation_confirmations_total{result}` (not_persisted, missed, failed),
/// `rw_observation_lists_total` (that reviews caused). Gauges are a second old at most.
///
/// Single executor, that of the dispatcher, but for the channel.
class observation {
 public:
  observation(boost::asio::any_io_executor executor, observation_options options,
              core::channel<watch_event>& reviews, observation_environment environment);

  /// Runs until the channel of reviews is closed and all of them are decided, or until cancelled;
  /// then closes the dispatcher.
  boost::asio::awaitable<void> run();

  /// A review was admitted whose event the channel could not take. False: nothing but a resync,
  /// which is raised, makes up for it.
  bool missed(const watch_event& review);
  /// Reviews whose events are not decided.
  std::size_t waiting() const noexcept { return observer_.waiting(); }

  observation_statistics statistics() const;
  /// What is known of one watch of the managers' file.
  watch_report report_of(const managed_watch& watch) const;

 private:
  boost::asio::awaitable<void> read_reviews();
  boost::asio::awaitable<void> drive();
  boost::asio::awaitable<void> confirm(observer::confirmation read);
  void wake() { timer_->cancel(); }
  void list_again(const managed_watch& watch);
  void on_input();
  void on_tick(core::time_point now);
  bool observes() const;
  bool needs_tick() const;
  void update_plan();
  void publish();

  observer observer_;
  const boost::asio::any_io_executor executor_;
  const observation_options options_;
  core::channel<watch_event>& reviews_;
  const observation_environment environment_;
  const core::steady_calendar calendar_;
  core::random_source random_;  ///< of all feeds
  series metrics_;
  core::log_limit lag_log_;
  core::log_limit read_log_;
  const std::unique_ptr<core::timer> timer_;
  core::wake space_;  ///< for reviews
  std::shared_ptr<const known_managers> managers_;
  const std::shared_ptr<list_turns> turns_;
  std::vector<std::shared_ptr<feed>> feeds_;
  core::time_point tick_ = core::time_point::min();
  std::uint64_t not_persisted_ = 0;
  std::uint64_t published_live_ = 0;
  std::uint64_t published_listed_ = 0;
  core::task_group* tasks_ = nullptr;
};

}  // namespace rw::observation
