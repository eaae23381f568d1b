#pragma once

#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/reactors/events/schedule.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace rw::dispatch {

/// Numbers of events of one dispatcher; other dispatchers may share its metrics.
struct dispatch_counts {
  std::uint64_t delivered = 0;
  std::uint64_t rejected = 0;  ///< responses that rejected an event, which is sent again
  std::uint64_t overflowed = 0;
  std::uint64_t resyncs = 0;  ///< taken
  std::uint64_t abandoned = 0;
  core::duration delivery_time{};  ///< from acceptance to delivery, sum over the delivered
};

/// Counts and logs what the dispatcher's class comment names. Not thread-safe.
class dispatch_metrics {
 public:
  /// Both must outlive it.
  dispatch_metrics(core::metrics& registry, core::logger& log);

  /// To be called for each request that is sent.
  void request_of(std::size_t events) {
    requests_.Increment();
    batch_events_.add(static_cast<double>(events));
  }
  /// To be called for each event that is lost.
  void lost(loss loss, const watch_event& event);
  /// To be called for each event that is delivered.
  void delivered_after(core::duration since_acceptance);
  void on_resync(resync_account::outcome ending);
  void on_response(const std::string& manager, unsigned status, const batch_result& result);
  /// A request has no answer, and no earlier one says as much. `manager` is empty if that is
  /// everybody's failure.
  void failed(const std::string& manager, const std::string& error);

  /// Sets the gauges and publishes the histograms. The managers that KCP knows have labels of their
  /// own, up to 32 of them; the others are "other", since anybody can invent one.
  void publish(const schedule& from, const delivery& objects, core::time_point now);

  core::counter& delivered;
  core::counter& coalesced;
  core::counter& retried;
  core::counter& rejected;

  const dispatch_counts& counts() const noexcept { return counts_; }

 private:
  struct manager_series {
    core::gauge& events;
    core::gauge& oldest;
    core::counter& failures;
    double pending = 0;  ///< while published
    double age = 0;      ///< likewise
  };

  manager_series& series_of(const std::string& manager, bool known_at_kcp);

  core::counter& requests_;
  core::histogram_tally batch_events_;
  core::metrics& registry_;
  core::logger& log_;
  core::log_limit failure_log_;
  std::array<core::log_limit, 2> loss_logs_;     ///< in the order of `loss`
  const std::array<core::counter*, 2> lost_;     ///< likewise
  const std::array<core::counter*, 3> resyncs_;  ///< in the order of `resync_account::outcome`
  dispatch_counts counts_;
  core::histogram_tally delivery_seconds_;
  core::gauge& known_;
  core::gauge& delayed_;
  core::gauge& circuits_;
  core::gauge& oldest_;
  core::gauge& owed_;
  core::counter& failed_;
  std::map<std::string, manager_series> by_manager_;
};

}  // namespace rw::dispatch
