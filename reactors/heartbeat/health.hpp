#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/token_bucket.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/heartbeat/losses.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/runtime_state.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw::heartbeats {

using rw::liveness;
inline constexpr std::size_t liveness_count = 4;

struct health_options {
  /// From the last heartbeat, or from the installation, until a runtime is silent; 2.5 times the
  /// interval that its heartbeats announce, where that is longer.
  core::duration timeout = std::chrono::seconds(150);
  core::duration catch_up = std::chrono::seconds(30);     ///< of a watch, until that is an error
  core::duration undelivered = std::chrono::seconds(30);  ///< age of an event, likewise
  std::chrono::seconds certificate = std::chrono::hours(72);  ///< before the expiry, likewise
};

/// The two clocks, read at once.
struct moment {
  core::time_point now;
  std::chrono::system_clock::time_point wall;
};

/// How far a probe came (shared/probe.hpp).
enum class probe_stage : std::uint8_t {
  runtime,    ///< the runtime's API server
  webhook,    ///< the watcher, called by it
  gateway,    ///< KCP, reached by the watcher
  heartbeat,  ///< waits for a heartbeat that names it
  complete,
};

std::string_view to_string(probe_stage of) noexcept;

/// The result of a probe: where it ended, and why.
struct probe_result {
  std::string nonce = {};
  core::time_point begun = {};
  probe_stage stage = probe_stage::runtime;
  status_reason reason = status_reason::none;  ///< none: it did not fail
  std::string message = {};                    ///< a sentence with the next step; likewise
  /// From the request to the heartbeat; only of a complete one.
  std::optional<core::duration> took = {};
};

/// What is known of one runtime.
struct runtime_health {
  liveness state = liveness::unknown;
  status_reason reason = status_reason::none;  ///< none if it is live
  std::string message = {};                    ///< a sentence with the next step; likewise
  std::string waits_for = {};  ///< the operator that accepts no events, or not this; empty: none
  std::chrono::system_clock::time_point since = {};  ///< of the state
  /// By this process' clock; nothing: no heartbeat yet.
  std::optional<std::chrono::system_clock::time_point> heard = {};
  heartbeat last = {};                     ///< without watches, probes, losses and `refused`
  std::uint64_t losses = 0;                ///< number of losses that heartbeats reported
  std::string loss = {};                   ///< the latest: whose
  std::optional<probe_result> probe = {};  ///< the latest
  std::optional<std::chrono::system_clock::time_point> probed = {};  ///< when that was
};

/// Decides from heartbeats, from their absence and from probes in which state each runtime is.
/// Pure: time is an argument. In memory only: a new leader waits for the heartbeats of the next
/// interval.
///
/// Keeps less than 8 KiB for each runtime, whatever that reports. Not thread-safe.
class fleet_health {
 public:
  /// A change to report. References are valid until the next call.
  struct change {
    const k8s::object_key& kyma;
    const runtime_health& now;
    liveness before;
  };
  struct receipt {
    std::optional<change> changed = {};
    reported_losses lost = {};
    bool first_loss = false;                   ///< `lost` is the runtime's first for `loss_pause`
    std::optional<core::duration> probe = {};  ///< a probe is complete, after that time
    bool reloaded = false;  ///< a pod says that it has loaded other files than before
  };
  using visitor = std::function<void(const change&)>;

  explicit fleet_health(health_options options) : options_(options) {}

  /// Heartbeats are heard from now on.
  void listen(moment at) { listening_ = at.now; }

  /// A heartbeat of the Kyma's runtime has arrived.
  receipt receive(const k8s::object_key& kyma, heartbeat content, moment at);

  /// The watcher is installed on the Kyma's runtime, so heartbeats must arrive. Returns true the
  /// first time.
  bool expect(const k8s::object_key& kyma, moment at);
  /// It is not: nothing is expected, and what was known of it no longer counts.
  void unexpect(const k8s::object_key& kyma, moment at);
  /// False: heartbeats of the runtime come too often, and this one is to be dropped. Several pods
  /// may send one each at once. One that says that other files are loaded has a limit of its own
  /// besides, of one a second.
  bool accepts(const k8s::object_key& kyma, const heartbeat& content, moment at);

  /// A probe of the Kyma's runtime has ended, or waits for a heartbeat. Returns a change to report.
  std::optional<change> probed(const k8s::object_key& kyma, probe_result result, moment at);

  /// Reports the runtimes that have become silent, and those whose heartbeats do not name a probe.
  void poll(moment at, const visitor& report);

  /// Forgets the runtimes for which `keep` returns false.
  void retain(const std::function<bool(const k8s::object_key&)>& keep);

  /// Returns what the pods of the runtime have loaded, as they say: at most `max_pods` with a name,
  /// those heard last.
  std::vector<pod_report> pods(const k8s::object_key& kyma) const;
  static constexpr std::size_t max_pods = 4;
  static constexpr core::duration loss_pause = std::chrono::minutes(10);

  /// Returns null if nothing is known. Valid until the next change.
  const runtime_health* find(const k8s::object_key& kyma) const;

  /// Returns the events that were counted between heartbeats, of all runtimes. It only grows. What
  /// a process counted before its first heartbeat here is not in it.
  const event_counts& observed_events() const noexcept { return events_; }
  /// Returns the losses that heartbeats reported, of all runtimes. It only grows.
  std::uint64_t observed_losses() const noexcept { return losses_; }

  std::size_t count(liveness of) const noexcept { return counts_[static_cast<std::size_t>(of)]; }

 private:
  /// A pod by its latest heartbeat. Those of earlier versions have no name, and are one.
  struct pod {
    pod_report loaded = {};
    std::string boot_id = {};
    event_counts events = {};
  };
  struct record {
    runtime_health shown = {};
    core::time_point heard = {};  ///< or expected first
    std::optional<core::time_point> catching_up = {};
    status_reason reason = status_reason::none;  ///< that the heartbeats report
    std::string message = {};                    ///< likewise
    std::string waits_for = {};                  ///< likewise
    bool silent = false;
    bool expected = false;
    core::token_bucket accepted{4, 16};  ///< one a second of each of four pods
    core::token_bucket reloads{1, 4};    ///< beyond these, of heartbeats with other files
    loss_counter losses = {};
    std::optional<core::time_point> lost = {};  ///< the latest `receipt::first_loss`
    std::vector<pod> pods = {};                 ///< at most `max_pods`
  };
  using entry = std::pair<const k8s::object_key, record>;

  /// Returns whether it has loaded other files than before.
  bool note_pod(record& runtime, const heartbeat& content, moment at);
  entry& use(const k8s::object_key& kyma, moment at);
  core::duration timeout_of(const record& runtime) const;
  void assess(record& runtime, const heartbeat& content, moment at) const;
  std::optional<change> settle(entry& of, moment at);
  void clear(entry& of, moment at);

  const health_options options_;
  std::unordered_map<k8s::object_key, record, k8s::object_key_hash> records_;
  std::array<std::size_t, liveness_count> counts_{};
  event_counts events_;
  std::uint64_t losses_ = 0;
  core::time_point listening_ = core::time_point::max();  ///< since when; max: not yet
};

}  // namespace rw::heartbeats
