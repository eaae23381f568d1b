#pragma once

#include "core/lru_map.hpp"
#include "k8s/objects/names.hpp"
#include "k8s/objects/object.hpp"

#include <boost/json/value.hpp>

#include <cstddef>

namespace rw::k8s {

/// What a controller has written of the objects that it also watches, until its informer's store
/// shows it: a reconcile that follows at once would otherwise see the object as it was before, and
/// write the same again or run into a conflict.
///
/// Versions of one resource are compared as the decimal numbers that they are with every API server
/// whose storage is etcd (KEP-5504, "Comparable Resource Version"). Where they are none, the store
/// counts. After a conflict the caller forgets the object: whatever was written, it is not the
/// newest.
///
/// Holds `capacity` objects; what was written longest ago is forgotten first, which costs a
/// conflict. Not thread-safe.
class own_writes {
 public:
  explicit own_writes(std::size_t capacity = 4096) : written_(capacity) {}

  /// A write was answered with this state of the object.
  void wrote(const boost::json::value& after);

  /// The newest state that is known: the store's, or what was written after it.
  boost::json::value newest(const object& stored);

  /// To be called when the store has the object no more, and after a conflict.
  void forget(const object_key& key) { written_.erase(key); }

  std::size_t size() const noexcept { return written_.size(); }

 private:
  core::lru_map<object_key, boost::json::value, object_key_hash> written_;
};

}  // namespace rw::k8s
