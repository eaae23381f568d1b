#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

// How strategic merge patches tell items of lists apart, and order them.

namespace rw::k8s::devserver {

/// What items of a list are told apart by: their merge key, or (empty) themselves.
class item_identity {
 public:
  explicit item_identity(std::string_view merge_key) : key_(merge_key) {}

  bool by_key() const noexcept { return !key_.empty(); }
  std::string_view key() const noexcept { return key_; }

  /// Null if the item has no such key.
  const boost::json::value* of(const boost::json::value& item) const;
  /// Equal for items that are the same.
  std::string text(const boost::json::value& item) const;

 private:
  std::string_view key_;
};

/// Where the first item of each identity stands.
using item_positions = std::unordered_map<std::string, std::size_t>;

item_positions positions_in(const boost::json::array& list, const item_identity& by);

/// True if the items of `list` occur in `in`, in this order.
bool is_subsequence(const boost::json::array& list, const boost::json::array& in,
                    const item_identity& by);

/// Orders the items of a merged list: those that `first` knows as it says; the others as `server`,
/// the list before the patch, does; one of these goes before one of those only where `server` has
/// them so (the element ordering of Kubernetes' strategic merge patch).
void order_items(boost::json::array& list, const item_positions& first,
                 const item_positions& server, const item_identity& by);

}  // namespace rw::k8s::devserver
