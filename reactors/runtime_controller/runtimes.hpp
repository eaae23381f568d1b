#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/metrics.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/reactors/shared/runtime_state.hpp"
#include "rw/reactors/shared/status_reason.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rw {

/// The state of each runtime between reconciles, by its resource, and the number of runtimes in
/// each state. In memory only: durable state is on objects.
///
/// A runtime that did not respond in time is *unhealthy* until it does. It may be contacted with a
/// permit only (permits.hpp), so that unhealthy runtimes occupy a bounded part of the reconciles.
///
/// Metrics: `<prefix>_runtimes{state}`, `<prefix>_unhealthy_runtimes`.
///
/// Not thread-safe.
class runtimes {
 public:
  /// `subject` is the component on the runtimes: "watcher".
  runtimes(core::metrics& registry, const std::string& prefix, const std::string& subject);

  struct status {
    std::optional<runtime_state> state = {};  ///< nothing: not reconciled yet
    status_reason reason = status_reason::none;
    std::string message = {};  ///< a sentence; may be empty
    std::string cause = {};    ///< tells states of one reason apart; not shown
    std::chrono::system_clock::time_point since = {};  ///< of the state
  };

  /// Sets the state; `since` is the present time. Returns true if it, its reason or cause, is to be
  /// reported. The first `installed` of a runtime is not, unless something `changed`: the runtime
  /// had that state before this process began. Neither is a pod that starts again after it was not
  /// ready for some reason.
  bool set(const k8s::object_key& key, status now, bool changed);

  /// Returns null if nothing is known. Valid until the next change.
  const status* find(const k8s::object_key& key) const;

  /// Counts reconciles in a row that found pods starting. Returns the number before this one.
  unsigned inspected(const k8s::object_key& key, bool starting);

  bool unhealthy(const k8s::object_key& key) const;
  /// Returns why it is unhealthy; empty if it is not.
  const std::string& error(const k8s::object_key& key) const;
  void set_unhealthy(const k8s::object_key& key, std::string error);
  /// Returns the time limit of an unhealthy runtime's probe: `first`, doubled for each failed probe
  /// in a row, at most `most`.
  core::duration probe_timeout(const k8s::object_key& key, core::duration first,
                               core::duration most) const;
  void set_healthy(const k8s::object_key& key);
  /// Returns the pause between two probes of an unhealthy runtime with which all of them together
  /// are probed `rate` times a second, at most `most`.
  core::duration turn(double rate, core::duration most) const;

  void forget(const k8s::object_key& key);
  std::size_t count(runtime_state of) const noexcept {
    return counts_[static_cast<std::size_t>(of)];
  }

 private:
  struct record {
    status last = {};
    std::string error = {};
    unsigned failures = 0;  ///< probes in a row
    unsigned inspections = 0;
  };

  void move(std::optional<runtime_state> from, std::optional<runtime_state> to);

  std::size_t unhealthy_ = 0;
  std::array<std::size_t, 4> counts_{};
  std::array<core::gauge*, 4> gauges_{};
  core::gauge& unhealthy_gauge_;
  std::unordered_map<k8s::object_key, record, k8s::object_key_hash> records_;
};

}  // namespace rw
