#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/unordered_set.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace rw::core {

/// Result of an insertion into a coalescing_set.
enum class insert_result : std::uint8_t {
  added,   ///< the key was absent, and is queued now
  merged,  ///< the key was present; if in flight, it is queued again afterwards
};

/// The keys with work to do, each at most once. A key is queued, or in flight (taken, and its
/// flight not ended), or delayed (its flight failed and is retried later).
///
/// Fair: `take` returns keys in the order in which they were queued. Stingy: a key inserted several
/// times before a take is taken once. Lossless: a key inserted while in flight is queued at the
/// back when the flight ends; it is never in flight twice at a time.
///
/// Each key carries the time of the oldest change not yet delivered, and of the newest. `expire`
/// removes the keys whose newest change is old.
///
/// The times passed in must not decrease. All operations are O(1) on average, `take` in the number
/// of keys taken; a delay costs O(log n). Entries use blocks that are reused, and freed when the
/// set becomes empty. Not thread-safe: for one executor. `Key`: default constructible, movable,
/// equality comparable.
template <typename Key, typename Hash = std::hash<Key>>
class coalescing_set {
  struct entry;

 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// A key in flight. Valid until done or retry ends its flight; exactly one of them is called.
  class taken {
   public:
    const Key& key() const noexcept { return entry_->key; }
    /// When the oldest, and the newest, change of this flight was accepted.
    time_point first_accepted() const noexcept { return first_; }
    time_point latest_accepted() const noexcept { return latest_; }
    /// Inserted again since it was taken.
    bool changed() const noexcept { return entry_->dirty; }
    /// Flights before this one that ended in a counted retry.
    std::uint32_t attempts() const noexcept { return entry_->attempts; }

   private:
    friend class coalescing_set;
    explicit taken(entry& of) : entry_(&of), first_(of.first), latest_(of.latest) {}

    entry* entry_;
    time_point first_;
    time_point latest_;
  };

  coalescing_set() = default;
  coalescing_set(const coalescing_set&) = delete;
  coalescing_set& operator=(const coalescing_set&) = delete;

  /// Records a change of `key`, accepted at `now`. Moves from `key` only if it returns `added`.
  insert_result insert(Key&& key, time_point now) { return insert(std::move(key), now, now); }
  /// Likewise, of a change that was accepted elsewhere at `first`.
  insert_result insert(Key&& key, time_point now, time_point first) {
    if (size() == buckets_.size()) grow();
    typename index::insert_commit_data where_to;
    const auto [known, added] = index_.insert_check(key, where_to);
    entry& node = added ? make() : *known;
    node.latest = now;
    if (added) {
      node.key = std::move(key);
      node.first = first;
      index_.insert_commit(node, where_to);
      enqueue(node);
    } else {
      if (node.age.is_linked()) ages_.erase(ages_.iterator_to(node));
      if (node.place == stage::in_flight && !std::exchange(node.dirty, true)) node.since = now;
      if (node.place == stage::delayed) node.attempts = 0;
    }
    ages_.push_back(node);
    return added ? insert_result::added : insert_result::merged;
  }

  /// Takes up to `max` queued keys and appends them to `into`.
  std::size_t take(std::vector<taken>& into, std::size_t max) {
    std::size_t count = 0;
    for (; count < max && !queue_.empty(); ++count) {
      entry& head = queue_.front();
      queue_.pop_front();
      head.place = stage::in_flight;
      into.push_back(taken(head));
    }
    in_flight_ += count;
    return count;
  }

  /// Ends a flight that succeeded: forgets the key, or queues it at the back if it changed
  /// meanwhile.
  void done(const taken& flight) {
    entry& node = *flight.entry_;
    --in_flight_;
    if (!node.dirty) {
      forget(node);
      return;
    }
    node.first = node.since;
    node.attempts = 0;
    age_again(node);
    enqueue(node);
  }

  /// Ends a flight that failed: queues the key at the back. A change meanwhile resets its attempts.
  /// `counts` is false for an attempt that says nothing about the key.
  void retry(const taken& flight, bool counts = true) {
    land(flight, counts);
    enqueue(*flight.entry_);
  }

  /// Ends a flight that failed: delays the key until `due`.
  void retry_at(const taken& flight, time_point due) {
    land(flight, true);
    entry& node = *flight.entry_;
    node.place = stage::delayed;
    node.since = due;
    delays_.emplace(due, &node);
  }

  /// Queues the delayed keys that are due at `now`.
  void wake(time_point now) {
    while (!delays_.empty() && delays_.begin()->first <= now) {
      entry& due = *delays_.begin()->second;
      delays_.erase(delays_.begin());
      enqueue(due);
    }
  }

  /// Queues the delayed key that is due first, before its time; no effect if none is delayed.
  void wake_first() {
    if (!delays_.empty()) wake(delays_.begin()->first);
  }

  /// Returns when the next delayed key is due; `time_point::max()` if none is delayed.
  time_point next_due() const noexcept {
    return delays_.empty() ? time_point::max() : delays_.begin()->first;
  }

  /// Removes the queued and delayed keys whose newest change is not after `until`, and passes each
  /// to `removed` first. A key in flight stays; if its flight fails the next call removes it.
  template <typename Function>
  void expire(time_point until, Function removed) {
    while (!ages_.empty() && ages_.front().latest <= until) {
      entry& oldest = ages_.front();
      if (oldest.place == stage::in_flight) {
        ages_.pop_front();
        continue;
      }
      removed(oldest.key);
      drop(oldest);
    }
  }

  /// Returns the oldest time of a newest change; `time_point::max()` if the set is empty. Ignores
  /// keys in flight that `expire` found.
  time_point oldest() const noexcept {
    return ages_.empty() ? time_point::max() : ages_.front().latest;
  }

  /// Removes the key at the back of the queue, or the one that is delayed longest, and passes it to
  /// `removed` first. Not to be called if all keys are in flight.
  template <typename Function>
  void shed(Function removed) {
    entry& last = queue_.empty() ? *delays_.rbegin()->second : queue_.back();
    removed(last.key);
    drop(last);
  }

  std::size_t queued() const noexcept { return index_.size() - in_flight_ - delays_.size(); }
  std::size_t delayed() const noexcept { return delays_.size(); }
  std::size_t in_flight() const noexcept { return in_flight_; }
  std::size_t size() const noexcept { return index_.size(); }
  bool empty() const noexcept { return index_.empty(); }

 private:
  enum class stage : std::uint8_t { queued, in_flight, delayed };

  using hook = boost::intrusive::list_member_hook<>;

  struct entry : boost::intrusive::unordered_set_base_hook<boost::intrusive::store_hash<true>> {
    hook queue;           ///< while queued, or free
    hook age;             ///< in the order of `latest`; not in a flight that `expire` found
    time_point first{};   ///< of the oldest change not delivered
    time_point latest{};  ///< of the newest change
    time_point since{};   ///< in flight and dirty: first change meanwhile; delayed: until
    std::uint32_t attempts = 0;
    stage place = stage::queued;
    bool dirty = false;  ///< changed in flight
    Key key{};
  };
  struct key_of {
    using type = Key;
    const Key& operator()(const entry& of) const noexcept { return of.key; }
  };
  using index = boost::intrusive::unordered_set<
      entry, boost::intrusive::key_of_value<key_of>, boost::intrusive::hash<Hash>,
      boost::intrusive::equal<std::equal_to<Key>>, boost::intrusive::power_2_buckets<true>,
      boost::intrusive::compare_hash<true>>;
  using buckets = std::vector<typename index::bucket_type>;
  using block = std::array<entry, 32>;
  template <hook entry::* Member>
  using list = boost::intrusive::list<entry, boost::intrusive::member_hook<entry, hook, Member>,
                                      boost::intrusive::constant_time_size<false>>;

  void enqueue(entry& node) noexcept {
    node.place = stage::queued;
    node.dirty = false;
    queue_.push_back(node);
  }

  /// Ends a flight that delivered nothing.
  void land(const taken& flight, bool counts) noexcept {
    entry& node = *flight.entry_;
    --in_flight_;
    if (node.dirty) node.attempts = 0;
    if (!node.dirty && counts) ++node.attempts;
    node.dirty = false;
    age_again(node);
  }

  /// After a flight in which the key expired: it is older than the keys that did not expire.
  void age_again(entry& node) noexcept {
    if (!node.age.is_linked()) ages_.push_front(node);
  }

  void drop(entry& node) {
    if (node.place == stage::queued) queue_.erase(queue_.iterator_to(node));
    if (node.place == stage::delayed) delays_.erase({node.since, &node});
    forget(node);
  }

  entry& make() {
    if (free_.empty()) {
      blocks_.push_back(std::make_unique<block>());
      for (auto& node : *blocks_.back()) free_.push_back(node);
    }
    entry& made = free_.front();
    free_.pop_front();
    made.attempts = 0;
    return made;
  }

  void grow() {
    buckets larger(2 * size());
    index_.rehash({larger.data(), larger.size()});
    buckets_.swap(larger);
  }

  void forget(entry& node) {
    if (node.age.is_linked()) ages_.erase(ages_.iterator_to(node));
    index_.erase(index_.iterator_to(node));
    node.key = Key();
    free_.push_front(node);
    if (!empty() || blocks_.size() == 1) return;
    free_.clear();
    blocks_.clear();
  }

  std::vector<std::unique_ptr<block>> blocks_;
  buckets buckets_ = buckets(64);
  index index_{{buckets_.data(), buckets_.size()}};
  list<&entry::queue> queue_;
  list<&entry::queue> free_;
  list<&entry::age> ages_;
  std::set<std::pair<time_point, entry*>> delays_;
  std::size_t in_flight_ = 0;
};

}  // namespace rw::core
