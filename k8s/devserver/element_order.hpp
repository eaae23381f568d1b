#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

// How strategic merge patches identify and order items of lists.

namespace rw::k8s::devserver {

/// The identity of a list's items: their merge key, or (empty) their value.
class item_identity {
 public:
  explicit item_identity(std::string_view merge_key) : key_(merge_key) {}

  bool by_key() const noexcept { return !key_.empty(); }
  std::string_view key() const noexcept { return key_; }

  /// Returns null if the item has no such key.
  const boost::json::value* of(const boost::json::value& item) const;
  /// Returns a text that is equal for items of the same identity.
  std::string text(const boost::json::value& item) const;

 private:
  std::string_view key_;
};

/// Position of the first item of each identity.
using item_positions = std::unordered_map<std::string, std::size_t>;

item_positions positions_in(const boost::json::array& list, const item_identity& by);

/// Returns true if the items of `list` occur in `in`, in this order.
bool is_subsequence(const boost::json::array& list, const boost::json::array& in,
                    const item_identity& by);

/// Orders the items of a merged list: those in `first` by `first`; the others by `server`, the list
/// before the patch. An item of the others precedes one of `first` only if it does so in `server`
/// (the element ordering of Kubernetes' strategic merge patch).
void order_items(boost::json::array& list, const item_positions& first,
                 const item_positions& server, const item_identity& by);

}  // namespace rw::k8s::devserver
