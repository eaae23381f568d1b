#pragma once

#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace rw::k8s {

/// A write that was only tried. Both states are without `status` and what the server keeps of an
/// object: managedFields, resourceVersion, generation, uid, creationTimestamp,
/// selfLink, deletionGracePeriodSeconds.
struct tried_write {
  resource_type type = {};
  object_key key = {};
  boost::json::value live = {};  ///< before the write; null: the object does not exist
  boost::json::value next = {};  ///< after it; null: the object is deleted
  bool left_out = false;         ///< both states are missing here, since there would be too many
};

/// Collects the writes of a client that only tries them (`client::previewing`): one entry for each
/// object, in the order of their first writes.
///
/// A dry run does not see the dry runs before it. So what the last write of an object that changes
/// it would leave is its next state; and a write to a namespace, or of a kind, that an earlier one
/// would create leaves what it sends. Fields that the server would set then are not shown.
///
/// Single executor.
class write_preview {
 public:
  /// Beyond so many bytes of text the states of further objects are left out: clusters are not
  /// trusted, and one process asks thousands.
  explicit write_preview(std::size_t most = 4u << 20) : rest_(most) {}

  void add(tried_write write);

  /// True if earlier writes would create the namespace of an object, or the definition of its kind.
  bool makes_room_for(const resource_type& type, const object_key& key) const;

  const std::vector<tried_write>& writes() const noexcept { return writes_; }
  std::vector<tried_write> take() noexcept { return std::exchange(writes_, {}); }

 private:
  void bound(tried_write& write);

  std::size_t rest_;
  std::vector<tried_write> writes_;
};

}  // namespace rw::k8s
