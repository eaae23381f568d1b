#pragma once

#include "rw/core/channel.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/http/server.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/reactors/events/review.hpp"
#include "rw/reactors/shared/event_json.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/managers_file.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rw::admission {

/// Called with an event before it enters the channel, for a host that observes events; on the
/// connection's executor. Must not block. The webhook logs and ignores its exceptions.
using event_observer = std::function<void(const watch_event&)>;

/// Called for a probe (shared/probe.hpp) with its nonce, empty if it has none; returns the warning
/// of the response. On the connection's executor. Must not block.
using probe_observer = std::function<std::string(std::string_view nonce)>;

/// Called with an event that is lost because the channel is full. Returns true if something makes
/// up for it. On the connection's executor. Must not block.
using loss_observer = std::function<bool(const watch_event&)>;

struct webhook_options {
  std::size_t body_limit = 8u << 20;  ///< of one review, in bytes
  /// Maximum time that a response waits for room in the channel. The user's write waits as long.
  std::chrono::milliseconds wait = std::chrono::milliseconds(250);
  event_observer on_event = {};
  /// Null: every manager is known. Outlives the webhook.
  const managers_in_use* managers = nullptr;
  loss_observer on_loss = {};
  probe_observer probe = {};  ///< null: probes are reviews of an unknown manager
};

/// Numbers of events since a webhook began.
struct admission_statistics {
  std::uint64_t events = 0;      ///< of reviews
  std::uint64_t overflowed = 0;  ///< of these: dropped because the channel was full
};

/// The validating webhook: `POST /validate/<manager>` with an AdmissionReview. It allows every
/// write, and sends an event to the channel if the object has changed (review.hpp has the rules).
///
/// It responds once the event is in the channel. If the channel is full it waits
/// `webhook_options::wait` at most; then it allows the write with a warning, and counts the event
/// as overflowed.
///
/// A review for a manager that `webhook_options::managers` does not name is allowed and counted,
/// and gives no event.
///
/// A review for the manager `runtime-watcher` is a probe: it gives no event, and a warning says how
/// the watcher fares.
///
/// It rejects another path (404), an invalid manager name (400), another method (405), a body that
/// is not an AdmissionReview (400) or too large (413). Rejections, losses and reviews without event
/// for lack of a name are logged, rate-limited.
///
/// Metrics: the existing `watcher_admission_request_total`,
/// `watcher_admission_request_error_total`, `watcher_request_duration` and
/// `watcher_failed_kcp_total{error_reason="invalid-subresource"}`, and
/// `rw_admission_reviews_total{verdict}`, `rw_admission_unidentified_total{reason}`,
/// `rw_admission_overflow_total`, `rw_admission_unknown_manager_total`,
/// `rw_admission_duration_seconds`.
///
/// Thread-safe: connections on different executors may call it concurrently. Must outlive the
/// awaitables of `handle`: an event that waits in one is counted as lost if the connection ends
/// first.
class webhook final : public http::handler {
 public:
  webhook(webhook_options options, core::channel<watch_event>& events, core::clock& time,
          core::logger& log, core::metrics& metrics);
  ~webhook() override;

  std::size_t body_limit(const http::request& head) const override;
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;
  void refused(unsigned status) noexcept override;

  admission_statistics statistics() const;

 private:
  struct counters;
  struct kept_reader;
  class borrowed_reader;
  class waiting_event;

  boost::asio::awaitable<void> decide(const http::request& from, http::response& into,
                                      std::string_view manager, core::time_point start);
  boost::asio::awaitable<void> wait_for_room(waiting_event waiting, http::response* into,
                                             core::time_point start);
  boost::asio::awaitable<bool> send(waiting_event* waiting, bool* sent);
  bool is_probe(std::string_view manager) const;
  void respond_to_probe(const http::request& from, const review_decision& decided,
                        http::response& into) const;
  void observe(const watch_event& event) noexcept;
  void count(const review_decision& decided, const http::request& from);
  void lose(const waiting_event& waiting, std::string_view error);
  void finish(core::time_point start);
  void respond(const review_decision& decided, http::response& into,
               std::span<const std::string_view> warnings = {}) const;
  void refuse(const http::request& from, http::response& into, unsigned status,
              std::string_view reason);

  const webhook_options options_;
  core::channel<watch_event>& events_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit refusal_log_;
  core::log_limit no_event_log_;
  core::log_limit overflow_log_;
  core::log_limit observer_log_;
  core::log_limit unknown_manager_log_;
  const std::unique_ptr<counters> counters_;
  std::atomic<kept_reader*> spare_reader_{nullptr};
};

/// Returns the manager in a path `/validate/<manager>`. Empty if the path has another form; sets
/// `wrong` if only the name is invalid (not an `is_path_segment`).
std::string_view manager_of(std::string_view target, bool& wrong) noexcept;

}  // namespace rw::admission
