#pragma once

#include "rw/core/metrics.hpp"
#include "rw/k8s/objects/names.hpp"

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rw {

/// Number of runtimes in each state, and the begin of the longest wait in it.
///
/// Metrics: `<prefix>_runtimes{state}` and `<prefix>_state_since_timestamp_seconds{state}` (Unix
/// time; 0: none in the state waits). Not thread-safe.
class state_counts {
 public:
  using time_point = std::chrono::system_clock::time_point;

  /// `known`: states whose metrics exist from the beginning.
  state_counts(core::metrics& registry, std::string prefix,
               std::initializer_list<std::string_view> known);

  /// Moves a runtime to a state. `since`: begin of its wait there; nothing: it does not wait. A
  /// runtime that waits already keeps its begin. Returns false if it was in the state.
  bool set(const k8s::object_key& key, std::string_view state, std::optional<time_point> since);
  void forget(const k8s::object_key& key);

  /// Returns an empty text if the runtime has no state.
  std::string_view state(const k8s::object_key& key) const;
  std::size_t count(std::string_view state) const;

 private:
  struct entry {
    std::string state = {};
    std::optional<time_point> since = {};
  };
  struct total {
    std::size_t count = 0;
    std::multiset<time_point> waiting = {};
    core::gauge* counted = nullptr;
    core::gauge* oldest = nullptr;
  };

  total& total_of(std::string_view state);
  void add(const entry& to);
  void remove(const entry& from);
  static void publish(const total& of);

  core::metrics& registry_;
  const std::string prefix_;
  std::unordered_map<k8s::object_key, entry, k8s::object_key_hash> entries_;
  std::map<std::string, total, std::less<>> totals_;
};

}  // namespace rw
