#pragma once

#include "core/clock.hpp"
#include "core/metrics.hpp"
#include "k8s/names.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rw {

/// How what a reactor keeps on a runtime is doing.
enum class runtime_state : std::uint8_t { installed, not_ready, failed, unreachable };
/// As the metrics' label has it.
std::string_view to_string(runtime_state of) noexcept;

/// What a reactor knows of each runtime between reconciles, by the resource that it keeps for it,
/// and how many of them are in which state. Kept in memory only: what must survive stands on the
/// objects.
///
/// A runtime that did not answer is *sick*: it is only asked again within a few places
/// (places.hpp), which all sick ones share, and with little patience, until it has answered once.
/// So however many there are, they take a bounded part of the reconciles at once.
///
/// Metrics: `<prefix>_runtimes{state}`, `<prefix>_sick_runtimes`.
///
/// Not thread-safe.
class runtimes {
 public:
  /// `what` is kept on the runtimes: "watcher".
  runtimes(core::metrics& registry, const std::string& prefix, const std::string& what);

  /// True if the state, or its reason, is news. The first `installed` of a runtime is none unless
  /// something was `done` for it: it was so before this process began. A pod that is not ready for
  /// some reason and starts again is no news either.
  bool set(const k8s::object_key& key, runtime_state now, const std::string& reason, bool done);

  /// Notes a look at the runtime, and tells how many in a row before it found pods on their way.
  unsigned look(const k8s::object_key& key, bool on_their_way);

  bool sick(const k8s::object_key& key) const;
  /// What it did not do when it was asked last; empty if it is not sick.
  const std::string& complaint(const k8s::object_key& key) const;
  void set_sick(const k8s::object_key& key, std::string complaint);
  /// How long to wait for a sick one: `first` at the first time, twice as long after each time in a
  /// row, at most `most`, so that one which is only slow is not taken for dead for ever.
  core::duration patience(const k8s::object_key& key, core::duration first,
                          core::duration most) const;
  void set_healthy(const k8s::object_key& key);

  void forget(const k8s::object_key& key);
  std::size_t count(runtime_state of) const noexcept {
    return counts_[static_cast<std::size_t>(of)];
  }

 private:
  struct record {
    std::optional<runtime_state> state = {};
    std::string reason = {};
    std::string complaint = {};
    unsigned silences = 0;  ///< in a row
    unsigned looks = 0;
  };

  void move(std::optional<runtime_state> from, std::optional<runtime_state> to);
  void publish_sick();

  std::size_t sick_ = 0;
  std::array<std::size_t, 4> counts_{};
  std::array<core::gauge*, 4> gauges_{};
  core::gauge& sick_gauge_;
  std::unordered_map<k8s::object_key, record, k8s::object_key_hash> records_;
};

}  // namespace rw
