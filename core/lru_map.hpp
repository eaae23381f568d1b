#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace rw::core {

/// A map that forgets: beyond `capacity` entries the one that was used longest ago makes room.
/// Operations are O(1) on average. Not thread-safe.
template <typename Key, typename Value, typename Hash = std::hash<Key>>
class lru_map {
 public:
  explicit lru_map(std::size_t capacity) : capacity_(capacity) {}

  /// The value of a key, made from `arguments` if it is not there; it counts as used. The reference
  /// is valid until the entry is forgotten.
  template <typename... Arguments>
  Value& use(const Key& key, Arguments&&... arguments) {
    if (const auto at = places_.find(key); at != places_.end()) {
      order_.splice(order_.begin(), order_, at->second);
      return at->second->second;
    }
    order_.emplace_front(key, Value(std::forward<Arguments>(arguments)...));
    places_.emplace(key, order_.begin());
    if (order_.size() > capacity_) {
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

  /// The value of a key, which does not count as used by that; null if it is not there.
  Value* find(const Key& key) {
    const auto at = places_.find(key);
    return at == places_.end() ? nullptr : &at->second->second;
  }

  /// False if it was not there.
  bool erase(const Key& key) {
    const auto at = places_.find(key);
    if (at == places_.end()) return false;
    order_.erase(at->second);
    places_.erase(at);
    return true;
  }

  /// Forgets all entries whose value `is_over` says so of; O(n). Returns how many.
  template <typename Predicate>
  std::size_t erase_if(Predicate is_over) {
    std::size_t erased = 0;
    for (auto at = order_.begin(); at != order_.end();) {
      if (!is_over(at->second)) {
        ++at;
        continue;
      }
      places_.erase(at->first);
      at = order_.erase(at);
      ++erased;
    }
    return erased;
  }

  std::size_t size() const noexcept { return order_.size(); }

 private:
  using entries = std::list<std::pair<const Key, Value>>;

  const std::size_t capacity_;
  entries order_;  ///< used last first
  std::unordered_map<Key, typename entries::iterator, Hash> places_;
};

}  // namespace rw::core
