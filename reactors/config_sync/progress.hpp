#pragma once

#include "core/metrics.hpp"
#include "k8s/names.hpp"
#include "reactors/config_sync/signal.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <unordered_map>

namespace rw::config_sync {

/// How all Runtimes stand, for metrics and for whoever asks whether everybody has the newest state:
///
///   - `rw_config_sync_runtimes{standing}`: current, pending, behind, suspended, apart
///   - `rw_config_sync_waiting_since_timestamp_seconds`: since when the one of those pending or
///     behind is so that has been so longest, in Unix time; 0 if none is
///
/// One entry for each Runtime. Not thread-safe.
class progress {
 public:
  using time_point = std::chrono::system_clock::time_point;

  explicit progress(core::metrics& metrics);

  /// A Runtime stands so. One that waits has done so since it was first told to, or since `since`
  /// if it was not known before.
  void set(const k8s::object_key& runtime, standing how, time_point since);
  /// It is gone.
  void forget(const k8s::object_key& runtime);

  std::size_t count(standing how) const noexcept { return counts_.at(index(how)); }
  /// Those that wait: pending and behind.
  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct entry {
    standing how;
    std::optional<time_point> since;  ///< has waited
  };

  static std::size_t index(standing how) noexcept { return static_cast<std::size_t>(how); }
  void leave(const entry& one);
  void publish();

  std::unordered_map<k8s::object_key, entry, k8s::object_key_hash> entries_;
  std::multiset<time_point> waiting_;
  std::array<std::size_t, 5> counts_{};
  std::array<core::gauge*, 5> gauges_{};
  core::gauge& oldest_;
};

}  // namespace rw::config_sync
