#pragma once

#include "core/channel.hpp"
#include "core/clock.hpp"
#include "core/http/server.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "reactors/admission/review.hpp"
#include "reactors/event_json.hpp"
#include "reactors/events.hpp"
#include "reactors/managers_file.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

namespace rw::admission {

/// Told of an event before it goes into the channel, for a host that wants to watch; on the
/// connection's executor. Must not block.
using event_observer = std::function<void(const watch_event&)>;

struct webhook_options {
  rw::contract contract = rw::contract::v2;
  std::size_t body_limit = 8u << 20;  ///< of one review, in bytes
  /// How long an answer waits for room in the channel. The user's write waits just as long.
  std::chrono::milliseconds wait = std::chrono::milliseconds(250);
  event_observer on_event = {};
  const managers_in_use* managers =
      nullptr;  ///< null: every manager is known; outlives the webhook
};

/// The validating webhook: `POST /validate/<manager>` with an AdmissionReview. It allows every
/// write, and puts an event into the channel where the object changed (review.hpp has the rules).
///
/// It answers as soon as the event is in the channel. In front of a full channel it waits
/// `webhook_options::wait` at most; then it allows the write with a warning, and the event counts
/// as overflowed: the object's next change, or a resync, makes up for it.
///
/// A review for a manager that `webhook_options::managers` does not name is allowed, counted, and
/// no event.
///
/// Refused are: another path (404), a manager that is no plain name (400), another method (405), a
/// body that is no AdmissionReview (400) or is too large (413).
///
/// Metrics: the existing `watcher_admission_request_total`,
/// `watcher_admission_request_error_total`, `watcher_request_duration` and
/// `watcher_failed_kcp_total{error_reason="invalid-subresource"}`, and
/// `rw_admission_reviews_total{verdict}`, `rw_admission_overflow_total`,
/// `rw_admission_unknown_manager_total`, `rw_admission_duration_seconds`.
///
/// Thread-safe: connections on different executors may call it at once.
class webhook final : public http::handler {
 public:
  webhook(webhook_options options, core::channel<watch_event>& events, core::clock& time,
          core::logger& log, core::metrics& metrics);
  ~webhook() override;

  std::size_t body_limit(const http::request& head) const override;
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;
  void refused(unsigned status) noexcept override;

 private:
  struct counters;
  class borrowed_reader;

  boost::asio::awaitable<void> decide(const http::request& from, http::response& into,
                                      std::string_view manager);
  boost::asio::awaitable<void> wait_for_room(decision decided, http::response* into);
  boost::asio::awaitable<void> finish_later(boost::asio::awaitable<void> rest,
                                            core::time_point start);
  void finish(core::time_point start);
  void answer(const decision& decided, http::response& into, bool overflowed) const;
  void refuse(http::response& into, unsigned status, std::string_view reason);

  const webhook_options options_;
  core::channel<watch_event>& events_;
  core::clock& clock_;
  core::logger& log_;
  core::log_limit refusal_log_;
  core::log_limit overflow_log_;
  core::log_limit unknown_manager_log_;
  const std::unique_ptr<counters> counters_;
  std::atomic<reader*> spare_reader_{nullptr};
};

/// The manager in a path `/validate/<manager>`: a name of letters, digits, '-', '_' and '.', at
/// most 253 characters, other than "." and "..". Empty if the path has another form; `wrong` is set
/// if only the name is at fault.
std::string_view manager_of(std::string_view target, bool& wrong) noexcept;

}  // namespace rw::admission
