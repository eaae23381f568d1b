#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/lru_map.hpp"
#include "rw/k8s/objects/names.hpp"
#include "rw/k8s/objects/object.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>

namespace rw::k8s {

/// What a controller has written of the objects that it also watches, until its informer's store
/// shows it: a reconcile that follows at once would otherwise see the object as it was before, and
/// write the same again or run into a conflict.
///
/// Versions of one resource are compared as the decimal numbers that they are with every API server
/// whose storage is etcd (KEP-5504, "Comparable Resource Version"). Where they are none, the store
/// counts. After a conflict the caller forgets the object: whatever was written, it is not the
/// newest. A write that the store does not show within a minute is forgotten too: where the
/// server's storage was restored to an older state, no store will ever show it.
///
/// Holds `capacity` objects, as text; what was written longest ago is forgotten first, which costs
/// a conflict. Not thread-safe.
class own_writes {
 public:
  static constexpr core::duration lifetime = std::chrono::minutes(1);

  /// The clock must outlive it.
  explicit own_writes(core::clock& clock, std::size_t capacity = 4096)
      : clock_(clock), written_(capacity) {}

  /// A write was answered with this state of the object.
  void wrote(const boost::json::value& after);

  /// The newest state that is known: the store's, or what was written after it.
  boost::json::value newest(const object& stored);

  /// To be called when the store has the object no more, and after a conflict.
  void forget(const object_key& key) { written_.erase(key); }

  std::size_t size() const noexcept { return written_.size(); }

 private:
  void forget_old();

  struct write {
    object after;
    core::time_point until;
  };

  core::clock& clock_;
  core::lru_map<object_key, write, object_key_hash> written_;
};

}  // namespace rw::k8s
