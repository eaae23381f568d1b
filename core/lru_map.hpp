#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace rw::core {

/// A map that evicts the least recently used entry beyond `capacity` entries. Operations are O(1)
/// on average. Not thread-safe.
template <typename Key, typename Value, typename Hash = std::hash<Key>>
class lru_map {
 public:
  explicit lru_map(std::size_t capacity) : capacity_(capacity) {}

  /// Returns the value of a key, made from `arguments` if absent, and marks it as used. The
  /// reference is valid until the entry is evicted or erased.
  template <typename... Arguments>
  Value& use(const Key& key, Arguments&&... arguments) {
    if (const auto at = index_.find(key); at != index_.end()) {
      order_.splice(order_.begin(), order_, at->second);
      return at->second->second;
    }
    order_.emplace_front(key, Value(std::forward<Arguments>(arguments)...));
    index_.emplace(key, order_.begin());
    if (order_.size() > capacity_) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return order_.front().second;
  }

  /// Returns the value of a key, null if absent. Does not mark it as used.
  Value* find(const Key& key) {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : &at->second->second;
  }

  /// Returns false if the key was absent.
  bool erase(const Key& key) {
    const auto at = index_.find(key);
    if (at == index_.end()) return false;
    order_.erase(at->second);
    index_.erase(at);
    return true;
  }

  /// Erases all entries whose value satisfies `is_over`; O(n). Returns their number.
  template <typename Predicate>
  std::size_t erase_if(Predicate is_over) {
    std::size_t erased = 0;
    for (auto at = order_.begin(); at != order_.end();) {
      if (!is_over(at->second)) {
        ++at;
        continue;
      }
      index_.erase(at->first);
      at = order_.erase(at);
      ++erased;
    }
    return erased;
  }

  /// Erases the least recently used entries up to the first whose value does not satisfy `is_over`.
  /// Returns their number.
  template <typename Predicate>
  std::size_t erase_oldest_while(Predicate is_over) {
    std::size_t erased = 0;
    for (; !order_.empty() && is_over(order_.back().second); ++erased) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return erased;
  }

  std::size_t size() const noexcept { return order_.size(); }

 private:
  using entries = std::list<std::pair<const Key, Value>>;

  const std::size_t capacity_;
  entries order_;  ///< most recently used first
  std::unordered_map<Key, typename entries::iterator, Hash> index_;
};

}  // namespace rw::core
