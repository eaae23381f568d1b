#pragma once

#include "k8s/names.hpp"
#include "k8s/object.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::k8s {

/// What a controller has written of the objects that it also watches, until its informer's store
/// shows it: a reconcile that follows at once would otherwise see the object as it was before, and
/// write the same again or run into a conflict.
///
/// It is for writes that carried the resourceVersion of the state that they changed. Then there is
/// no foreign state between the two, and a store that holds anything but a state from before the
/// latest write holds a later one.
///
/// Bounded by the objects that were written and not looked at again. Not thread-safe.
class own_writes {
 public:
  /// An object at version `before` was written, and became `after`.
  void wrote(std::string_view before, const boost::json::value& after);

  /// The newest state that is known: the store's, or what was written after it.
  boost::json::value newest(const object& stored);

  /// To be called when the store has the object no more.
  void forget(const object_key& key) { written_.erase(key); }

  std::size_t size() const noexcept { return written_.size(); }

 private:
  struct entry {
    std::vector<std::string> before;  ///< versions that `now` comes after
    boost::json::value now;
  };
  std::unordered_map<object_key, entry, object_key_hash> written_;
};

}  // namespace rw::k8s
