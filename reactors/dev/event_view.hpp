#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/metrics.hpp"
#include "rw/reactors/cli/manager_observer.hpp"
#include "rw/reactors/shared/events.hpp"
#include "rw/reactors/shared/resync.hpp"

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::dev {

/// The trace of one event, from the change to its reconcile, or of one resync, from its arrival.
/// Times count from the moment at which the runtime's API server called the webhook.
struct event_trace {
  std::string runtime = {};
  watch_event event = {};  ///< of a resync only the manager
  std::optional<resync_reason> resync = {};
  std::string kyma = {};                     ///< "namespace/name"; empty: none has the runtime's id
  std::optional<core::duration> heard = {};  ///< received by the manager
  std::optional<core::duration> to_reconcile = {};  ///< nothing: the time of the change is unknown
  bool reconciled = false;
};

/// Formats a trace as one line for people, or one of JSON, without a newline. `now`: the time of
/// the reconcile, or of the trace's end.
std::string line_of(const event_trace& of, std::chrono::system_clock::time_point now);
std::string json_line_of(const event_trace& of, std::chrono::system_clock::time_point now);

/// Traces events through the system: from the webhooks of the runtimes to the manager, and to the
/// reconciles that they cause. Reports each trace when its Kyma's reconcile begins, or when it is
/// known that there will be none.
///
/// An event that is coalesced with a later one counts from the earlier change. Beyond `most` traces
/// the oldest are dropped and counted (`rw_dev_stories_forgotten_total`). On one executor.
class event_view final : public cli::manager_observer {
 public:
  static constexpr std::size_t most = 16384;

  /// Calls `tell` at each trace's end. With `to_reconcile` false there is no manager to observe,
  /// and a trace ends with the change.
  event_view(core::clock& clock, core::metrics& metrics, bool to_reconcile,
             std::function<void(const event_trace&)> tell);

  /// Called when a runtime's webhook has accepted an event.
  void changed(const std::string& runtime, const watch_event& event);

  void on_event(const listener::received_event& event,
                const std::vector<k8s::object_key>& kymas) override;
  void reconciling(const k8s::object_key& kyma) override;

 private:
  struct key {
    std::string runtime;
    watch_event event;
    friend bool operator==(const key&, const key&) = default;
  };
  struct key_hash {
    std::size_t operator()(const key& of) const noexcept;
  };
  struct waiting {
    event_trace trace;
    std::optional<core::time_point> since;
  };

  void forget_oldest();

  core::clock& clock_;
  core::counter& forgotten_;
  const bool to_reconcile_;
  const std::function<void(const event_trace&)> tell_;
  std::unordered_map<key, core::time_point, key_hash> changes_;  ///< not received by the manager
  std::deque<std::pair<key, core::time_point>> order_;  ///< of `changes_`, and some that have ended
  std::unordered_map<k8s::object_key, std::vector<waiting>, k8s::object_key_hash> heard_;
  std::size_t heard_count_ = 0;
};

}  // namespace rw::dev
