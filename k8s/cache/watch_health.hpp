#pragma once

#include "rw/core/clock.hpp"

#include <chrono>
#include <cstdint>
#include <optional>

namespace rw::k8s {

/// Decides whether the watches of one resource can be trusted. A front end may end each of them at
/// once and politely: nothing fails, and nothing ever comes (kubernetes/kubernetes#137089,
/// fabric8io/kubernetes-client#7898). A watch that was answered, brought neither an event nor a
/// bookmark and lasted less than `proof_of_life` is fruitless: from the first one on the resource
/// is suspect, and after a few in a row it is to be listed, but not while a front end restarts.
/// Lists that change nothing become rare, as thousands of clusters may be behind one front end, and
/// many of those end idle watches.
///
/// Knows no clock: time is what watches lasted and pauses took. Not thread-safe.
class watch_health {
 public:
  /// As long as a bookmark takes half the time to come (kube-apiserver sends one a minute).
  static constexpr core::duration proof_of_life = std::chrono::seconds(30);
  static constexpr core::duration longest_wait = std::chrono::hours(1);

  /// A watch that ended, without an error status.
  struct ending {
    /// Since its answer began; nothing if there was no answer, which says nothing of watches.
    std::optional<core::duration> lasted = {};
    bool progressed = false;  ///< it brought an event or a bookmark
    bool complete = false;    ///< it ran for as long as it asked to
  };

  /// Returns true if the watch was fruitless.
  bool ended(const ending& watch);
  /// The server would not begin a watch, with a status that says nothing of its version.
  void refused() noexcept { ++row_; }
  /// The server refused a watch for a reason of its own.
  void excused() noexcept { row_ = 0; }
  /// A watch brought something.
  void progressed() noexcept { suspect_ = false; }
  void paused(core::duration length) noexcept { passed_ += length; }

  /// From a fruitless watch until an event, a bookmark, or a watch that lasts.
  bool is_suspect() const noexcept { return suspect_; }
  /// Enough in a row were fruitless or refused, for long enough.
  bool wants_list() const noexcept { return row_ >= row_until_list && passed_ >= wait_; }
  /// For a watch that brought what can't be read: there was no list on suspicion, or it is long
  /// enough ago.
  bool may_list() const noexcept { return !listed_ || passed_ >= wait_; }

  /// A list on suspicion begins.
  void listing() noexcept;
  /// It is complete. `changed`: it showed something that no watch had brought.
  void listed(bool changed) noexcept;

 private:
  static constexpr unsigned row_until_list = 5;
  static constexpr core::duration least_wait = std::chrono::seconds(30);

  core::duration passed_{0};  ///< since a watch lasted, or the last list on suspicion
  core::duration wait_ = least_wait;
  std::uint32_t row_ = 0;
  bool suspect_ = false;
  bool listed_ = false;  ///< on suspicion, since a watch lasted
};

}  // namespace rw::k8s
