#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw::core {

/// What became of a key that was inserted into a coalescing_set.
enum class insert_result : std::uint8_t {
  added,   ///< it was not there, and is queued now
  merged,  ///< it was there: queued already, or in flight and now to be queued again afterwards
  full,    ///< it was not there, and there is no room; nothing happened
};

/// The keys with work to do, each at most once, in the order in which they came.
///
/// Fair: keys are taken oldest first. Stingy: a key inserted again before it was taken is taken
/// once. Not forgetful: a key inserted while it is in flight (taken, but neither done, retried nor
/// dropped) is dirty, is never in flight twice at a time, and goes to the back of the queue when
/// the flight is done.
///
/// Each key carries the time of the change it stands for (`accepted`). While a key is queued it is
/// that of the oldest change not yet sent, so that an age limit counts from the first acceptance;
/// the latest change's is kept too.
///
/// Bounded by `capacity` keys, queued and in flight together. All operations are O(1) on average,
/// `take` in the number of keys taken; one allocation for each key inside. Not thread-safe: for one
/// executor.
template <typename Key, typename Hash = std::hash<Key>>
class coalescing_set {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// A key and what is known of it. The reference is valid until done, drop or clear ends the key.
  struct taken {
    const Key* key;
    time_point first_accepted;   ///< of the oldest change that this flight carries
    time_point latest_accepted;  ///< of the newest
    std::uint32_t attempts;      ///< flights before this one that ended in retry
  };

  /// Throws std::invalid_argument if `capacity` is 0.
  explicit coalescing_set(std::size_t capacity) : capacity_(capacity) {
    if (capacity == 0) throw std::invalid_argument("a coalescing set's capacity must not be 0");
  }

  coalescing_set(const coalescing_set&) = delete;
  coalescing_set& operator=(const coalescing_set&) = delete;

  /// Records a change of `key`, accepted at `now`. `key` is moved from only if the answer is
  /// `added`.
  insert_result insert(Key&& key, time_point now) { return put(std::move(key), now); }
  insert_result insert(const Key& key, time_point now) { return put(key, now); }

  /// Takes up to `max` keys, oldest first, and appends them to `into`. They are in flight from now
  /// on.
  std::size_t take(std::vector<taken>& into, std::size_t max) {
    std::size_t count = 0;
    while (count < max && first_ != nullptr) {
      node& head = *first_;
      into.push_back({&head.first, head.second.first, head.second.latest, head.second.attempts});
      unlink(head);
      head.second.place = where::in_flight;
      ++in_flight_;
      ++count;
    }
    return count;
  }

  /// The flight of `key` delivered it: forgets it, or, if it is dirty, queues it at the back, as a
  /// change accepted at the first insertion during the flight. False if it is not in flight.
  bool done(const Key& key) {
    const auto at = in_flight(key);
    if (at == nodes_.end()) return false;
    --in_flight_;
    entry& what = at->second;
    if (what.dirty) {
      what.first = what.dirty_since;
      what.attempts = 0;
      append(*at);
    } else {
      nodes_.erase(at);
    }
    return true;
  }

  /// The flight of `key` failed and is to be repeated: queues it at the back. It keeps the time of
  /// its first acceptance and counts an attempt, unless it is dirty: then it is a new change, as in
  /// done. An attempt that says nothing about the key need not be counted. False if it is not in
  /// flight.
  bool retry(const Key& key, bool counts = true) {
    const auto at = in_flight(key);
    if (at == nodes_.end()) return false;
    entry& what = at->second;
    if (what.dirty) return done(key);
    --in_flight_;
    if (counts) ++what.attempts;
    append(*at);
    return true;
  }

  /// The flight of `key` failed for good. What it carried is given up; a dirty key is queued again,
  /// as in done, because its new change was never tried. False if it is not in flight.
  bool drop(const Key& key) { return done(key); }

  /// When the oldest queued change was accepted at the head of the queue; none if nothing is
  /// queued.
  std::optional<time_point> head_accepted() const noexcept {
    if (first_ == nullptr) return std::nullopt;
    return first_->second.first;
  }

  /// When the latest change of `key` was accepted; none if it is not inside.
  std::optional<time_point> latest_accepted(const Key& key) const {
    const auto at = nodes_.find(key);
    if (at == nodes_.end()) return std::nullopt;
    return at->second.latest;
  }

  bool contains(const Key& key) const { return nodes_.find(key) != nodes_.end(); }
  std::size_t queued() const noexcept { return nodes_.size() - in_flight_; }
  std::size_t in_flight() const noexcept { return in_flight_; }
  std::size_t size() const noexcept { return nodes_.size(); }
  std::size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return nodes_.empty(); }
  bool full() const noexcept { return nodes_.size() >= capacity_; }

 private:
  enum class where : std::uint8_t { queued, in_flight };

  struct entry;
  using map = std::unordered_map<Key, entry, Hash>;
  using node = std::pair<const Key, entry>;

  struct entry {
    time_point first{};        ///< of the oldest change not delivered that the key stands for
    time_point latest{};       ///< of the newest change
    time_point dirty_since{};  ///< of the first change during this flight, if dirty
    node* previous = nullptr;  ///< queue, through the map's nodes, whose addresses are stable
    node* next = nullptr;
    std::uint32_t attempts = 0;
    where place = where::queued;
    bool dirty = false;
  };

  template <typename K>
  insert_result put(K&& key, time_point now) {
    if (const auto at = nodes_.find(key); at != nodes_.end()) {
      entry& what = at->second;
      what.latest = now;
      if (what.place == where::in_flight && !what.dirty) {
        what.dirty = true;
        what.dirty_since = now;
      }
      return insert_result::merged;
    }
    if (full()) return insert_result::full;
    const auto at = nodes_.emplace(std::forward<K>(key), entry{}).first;
    at->second.first = now;
    at->second.latest = now;
    append(*at);
    return insert_result::added;
  }

  typename map::iterator in_flight(const Key& key) {
    const auto at = nodes_.find(key);
    return at != nodes_.end() && at->second.place == where::in_flight ? at : nodes_.end();
  }

  void append(node& what) noexcept {
    what.second.place = where::queued;
    what.second.dirty = false;
    what.second.previous = last_;
    what.second.next = nullptr;
    (last_ == nullptr ? first_ : last_->second.next) = &what;
    last_ = &what;
  }

  void unlink(node& what) noexcept {
    node* const previous = what.second.previous;
    node* const next = what.second.next;
    (previous == nullptr ? first_ : previous->second.next) = next;
    (next == nullptr ? last_ : next->second.previous) = previous;
  }

  const std::size_t capacity_;
  map nodes_;
  std::size_t in_flight_ = 0;
  node* first_ = nullptr;
  node* last_ = nullptr;
};

}  // namespace rw::core
