#pragma once

#include "core/clock.hpp"
#include "core/metrics.hpp"
#include "k8s/objects/names.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rw {

/// State of what a reactor keeps on a runtime.
enum class runtime_state : std::uint8_t { installed, not_ready, failed, unreachable };
/// As the metrics' label has it.
std::string_view to_string(runtime_state of) noexcept;

/// What a reactor knows of each runtime between reconciles, by the resource that it keeps for it,
/// and how many runtimes are in which state. In memory only: what must survive is on objects.
///
/// A runtime that did not respond in time is *unhealthy* until it has: then it may be contacted
/// with a permit only (permits.hpp), so that unhealthy ones take a bounded part of the reconciles.
///
/// Metrics: `<prefix>_runtimes{state}`, `<prefix>_unhealthy_runtimes`.
///
/// Not thread-safe.
class runtimes {
 public:
  /// `subject` is kept on the runtimes: "watcher".
  runtimes(core::metrics& registry, const std::string& prefix, const std::string& subject);

  /// For people who look at one runtime.
  struct status {
    std::optional<runtime_state> state = {};           ///< none: not reconciled yet
    std::string reason = {};                           ///< in a word; may be empty
    std::string message = {};                          ///< in words; may be empty
    std::chrono::system_clock::time_point since = {};  ///< of the state
  };

  /// Sets the state. True if it, or its reason, is to be reported. The first `installed` of a
  /// runtime is not, unless something `changed`: the runtime was so before this process began.
  /// Neither is a pod that starts again after it was not ready for some reason.
  bool set(const k8s::object_key& key, status now, bool changed);

  /// Null: nothing is known. Valid until the next change.
  const status* find(const k8s::object_key& key) const;

  /// Counts reconciles in a row that found pods starting. Returns the number before this one.
  unsigned inspected(const k8s::object_key& key, bool starting);

  bool unhealthy(const k8s::object_key& key) const;
  /// Why it is unhealthy; empty if it is not.
  const std::string& error(const k8s::object_key& key) const;
  void set_unhealthy(const k8s::object_key& key, std::string error);
  /// How long an unhealthy one may take to respond: `first`, doubled for each time in a row that it
  /// did not, at most `most`.
  core::duration probe_timeout(const k8s::object_key& key, core::duration first,
                               core::duration most) const;
  void set_healthy(const k8s::object_key& key);

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
