#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/channel.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/client/object_api.hpp"
#include "rw/k8s/controller/event_correlator.hpp"
#include "rw/k8s/controller/event_sink.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace rw::k8s {

struct event_recorder_options {
  std::string component = {};  ///< the reporter; also the metrics' label `component`
  std::string instance = {};   ///< the reporter's instance: the pod's name
  std::size_t queue = 1000;    ///< notes that wait for their write; further ones are dropped
  unsigned tries = 12;         ///< of a write that fails for a transient reason
  core::duration backoff_base = std::chrono::seconds(1);
  core::duration backoff_limit = std::chrono::seconds(30);
  event_limits limits = {};
};

/// All of it must outlive the recorder.
struct event_recorder_environment {
  core::clock& clock;
  core::logger& log;
  core::metrics& metrics;
  core::random_source random;
};

/// Emits Kubernetes Events (event_correlator.hpp decides which, and how often); `run` writes them
/// one after the other.
///
/// Metrics: `rw_events_total{component,outcome}`: created, repeated, spam (too many for one
/// object), dropped (the queue was full or closed), failed (the API server rejected it), abandoned
/// (not written before shutdown).
class event_recorder final : public event_sink {
 public:
  event_recorder(boost::asio::any_io_executor executor, std::shared_ptr<object_api> api,
                 event_recorder_options options, event_recorder_environment environment);
  event_recorder(const event_recorder&) = delete;
  event_recorder& operator=(const event_recorder&) = delete;

  /// Thread-safe.
  void record(event_note note) noexcept override;

  /// Writes until cancelled; then counts the remaining notes as abandoned. Or returns when `close`
  /// was called and everything is written.
  boost::asio::awaitable<void> run();

  /// Accepts no more notes. Thread-safe.
  void close() { notes_.close(); }

 private:
  struct on_exit;

  boost::asio::awaitable<void> write(event_correlator::write pending);
  boost::asio::awaitable<result<boost::json::value>> attempt(event_correlator::write pending);
  void give_up_rest();

  const std::shared_ptr<object_api> api_;
  const event_recorder_options options_;
  const event_recorder_environment environment_;
  core::counter& created_;
  core::counter& repeated_;
  core::counter& spam_;
  core::counter& dropped_;
  core::counter& failed_;
  core::counter& abandoned_;
  core::log_limit drop_log_;
  core::log_limit failure_log_;
  core::log_limit delay_log_;
  core::channel<event_note> notes_;
  event_correlator correlator_;
  const std::unique_ptr<core::timer> alarm_;
  bool writing_ = false;
};

}  // namespace rw::k8s
