#pragma once

#include "core/clock.hpp"
#include "k8s/objects/names.hpp"
#include "reactors/bootstrapper/state.hpp"

#include <array>
#include <optional>
#include <string>
#include <unordered_map>

namespace rw::bootstrapper {

/// Revisions that runtimes have rejected. One is tried again after 10 minutes; one of an unknown
/// kind after 2 s, doubled each time in a row, since its definition may be on the way.
///
/// Kept in memory: a restart tries again at once. Not thread-safe.
class rejections {
 public:
  using time_point = core::time_point;

  /// Sets the revisions that are not due as `skipped`.
  void skip(const k8s::object_key& key, time_point now, sync_state& state) const;

  /// Notes the result of a pass.
  void update(const k8s::object_key& key, time_point now, const sync_state& state);

  /// When the first of them is due; none: there is none.
  std::optional<time_point> due(const k8s::object_key& key) const;

  void forget(const k8s::object_key& key) { entries_.erase(key); }

 private:
  struct entry {
    rejected_revision revision = {};
    time_point due = {};
    unsigned times = 0;
  };
  std::unordered_map<k8s::object_key, std::array<entry, all_units.size()>, k8s::object_key_hash>
      entries_;
};

}  // namespace rw::bootstrapper
