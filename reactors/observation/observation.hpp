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
#include "rw/reactors/dispatch/dispatch.hpp"
#include "rw/reactors/observation/delivery_record.hpp"
#include "rw/reactors/observation/feed.hpp"
#include "rw/reactors/observation/observer.hpp"
#include "rw/reactors/observation/series.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/gap_account.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::observation {

struct observation_options {
  observer_options observer = {};
  bool watches = true;       ///< false: events come from reviews alone
  bool secrets = false;      ///< observe Secrets too
  std::string journal = {};  ///< a file; empty: none
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
  dispatch::observed_objects& objects;        ///< of the dispatcher
  k8s::client* api = nullptr;                 ///< null: events come from reviews alone
  const managers_in_use* managers = nullptr;  ///< null, or none in use yet: likewise
  /// Its counts are kept in the journal; null: there are none.
  gap_account* gaps = nullptr;
  std::string boot_id = {};  ///< of the node (`journal_environment::boot_id`)
  /// Where the journal is written; none: a thread of its own.
  boost::asio::any_io_executor blocking = {};
};

struct observation_statistics {
  std::uint64_t not_persisted = 0;  ///< admitted changes that nothing followed
  std::uint64_t resyncs = 0;        ///< events that a list caused
  /// Of the journal. none: no file is configured, or nothing observed; missing: there was none at
  /// the start, or none that is complete; read: it was read; failed: it cannot be written at
  /// present.
  std::string_view journal = "none";
};

/// Knows what is persisted: takes the events of admitted writes from a channel, watches the
/// resources that the managers' file names, notes what they show in `observed_objects`, whose
/// changes the dispatcher sends, and offers it the events of reviews that no watch covers.
/// `observer.hpp` has the rules, `plan.hpp` what is not observed. A resource is not observed either
/// while its discovery or list is refused (401, 403, 404), or has more objects than a Watcher may;
/// both are tried again. Two lists are under way at most. The managers' file may change at any
/// time: Watchers that stay keep their objects.
///
/// What is delivered, and what no longer is, is remembered in a journal (`journal.hpp`): a change
/// is sent once the journal has it, or after 100 ms. What a Watcher's objects were delivered as is
/// kept when it is removed, and compared if it comes back.
///
/// Metrics: `rw_observation_objects`, `rw_observation_live_watches`,
/// `rw_observation_unobserved_watches`, `rw_observation_undelivered`,
/// `rw_observation_waiting_reviews`, `rw_observation_events_total{cause}` (watch, resync, review),
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

  /// A review was admitted whose event the channel could not take. False: nothing makes up for it.
  bool missed(const watch_event& review);
  /// What the objects tell (`observed_objects::listeners::on_record`).
  void record(const dispatch::observed_objects::table& of, std::string_view key,
              state_hash delivered, core::time_point now) {
    record_.record(of, key, delivered, now);
  }
  /// What the account of gaps tells.
  void record(const std::string& manager, const gap_counts& now) {
    record_.record_gap(manager, now);
  }

  /// KCP has the report of this process: that it began without a complete journal need not be told
  /// by a later one.
  void reported() { record_.reported(); }

  /// Writes what the journal lacks. For the end, when no event is under way.
  boost::asio::awaitable<void> save() { return record_.flush(); }

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
  void tell_gaps(core::time_point now);
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
  delivery_record record_;
  std::map<std::string, core::time_point> sent_again_;  ///< by manager
  const std::unique_ptr<core::timer> timer_;
  core::wake space_;  ///< for reviews
  std::shared_ptr<const known_managers> managers_;
  const std::shared_ptr<list_turns> turns_;
  std::vector<std::shared_ptr<feed>> feeds_;
  core::time_point tick_ = core::time_point::min();
  core::time_point try_at_ = core::time_point::min();
  std::uint64_t not_persisted_ = 0;
  std::uint64_t published_live_ = 0;
  std::uint64_t published_resyncs_ = 0;
  core::task_group* tasks_ = nullptr;
};

}  // namespace rw::observation
