#pragma once

#include "core/backoff.hpp"
#include "core/channel.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "k8s/cache/api_source.hpp"
#include "k8s/client/client.hpp"
#include "reactors/observation/observer.hpp"
#include "reactors/shared/events.hpp"
#include "reactors/shared/heartbeat.hpp"
#include "reactors/shared/managers_file.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rw::observation {

struct observation_options {
  observer_options observer = {};
  bool secrets = false;     ///< observe Secrets too
  std::string ledger = {};  ///< a file; empty: none
  /// From a refused list, or one with too many objects, to the next try: at first, and at most.
  core::duration retry_base = std::chrono::seconds(5);
  core::duration retry_limit = std::chrono::minutes(3);
  core::duration read_timeout = std::chrono::seconds(5);  ///< of one object
};

/// All of it must outlive the reactor.
struct observation_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
  k8s::client* api = nullptr;                 ///< null: events come from reviews alone
  const managers_in_use* managers = nullptr;  ///< null, or none in use yet: likewise
  /// Where the ledger is written; none: a thread of its own.
  boost::asio::any_io_executor blocking = {};
};

struct observation_statistics {
  std::uint64_t not_persisted = 0;  ///< admitted changes that nothing followed
  std::uint64_t resyncs = 0;        ///< events that a list caused
  /// none: no file is configured, or nothing observed; missing: there was none at the start, or
  /// none that is usable; read: it was read; failed: it cannot be written at present.
  std::string_view ledger = "none";
};

/// Makes events of what is persisted: takes the events of admitted writes from one channel, watches
/// the resources that the managers' file names, and sends to another channel what both witnesses
/// agree on. `observer.hpp` has the rules, `plan.hpp` what is not observed. A resource is not
/// observed either while its discovery or list is refused (401, 403, 404), or has more objects than
/// are left of `observer.objects`; both are tried again. Two lists are under way at most. The
/// managers' file may change at any time: Watchers that stay keep their objects.
///
/// What `delivered` reports is remembered in the ledger (`ledger_file.hpp`), written at most
/// once a second, and so seldom that it takes less than 1 % of the time.
///
/// Metrics: `rw_observation_objects`, `rw_observation_live_watches`,
/// `rw_observation_unobserved_watches`, `rw_observation_undelivered`,
/// `rw_observation_waiting_reviews`, `rw_observation_events_total{cause}` (watch, resync, review,
/// unverified), `rw_observation_confirmations_total{result}` (not_persisted, missed, failed),
/// `rw_observation_ledger_writes_total{outcome}` (written, failed). Gauges are a second old at
/// most.
///
/// Single executor, but for the channels.
class observation {
 public:
  observation(boost::asio::any_io_executor executor, observation_options options,
              core::channel<watch_event>& reviews, core::channel<watch_event>& events,
              observation_environment environment);
  ~observation();
  observation(const observation&) = delete;
  observation& operator=(const observation&) = delete;

  /// Runs until the channel of reviews is closed and all that was accepted is sent, or until
  /// cancelled; then closes the channel of events.
  boost::asio::awaitable<void> run();

  /// What became of an event with a mark.
  void delivered(const watch_event& event, std::uint64_t mark);
  void lost(const watch_event& event, std::uint64_t mark);

  /// Writes the ledger, if it has changed. For the end, when all outcomes are known.
  boost::asio::awaitable<void> save();

  /// Reviews whose events are not sent.
  std::size_t waiting() const noexcept;

  observation_statistics statistics() const;
  /// What is known of one watch of the managers' file.
  watch_report report_of(const managed_watch& watch) const;

 private:
  class implementation;
  std::unique_ptr<implementation> impl_;
};

}  // namespace rw::observation
