#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw::core {

/// What became of a key that was inserted into a coalescing_set.
enum class insert_result : std::uint8_t {
  added,   ///< it was not there, and is queued now
  merged,  ///< it was there; if in flight, it is queued again afterwards
};

/// The keys with work to do, each at most once. A key is queued, or in flight (taken, and its
/// flight not ended), or delayed (its flight failed and is to be repeated later).
///
/// Fair: keys are taken in the order in which they were queued. Stingy: a key inserted again before
/// it was taken is taken once. Not forgetful: a key inserted while it is in flight is never in
/// flight twice at a time, and goes to the back of the queue when the flight is done.
///
/// Each key carries the time of the oldest change not yet delivered that it stands for, and of the
/// newest. By the newest it expires: `expire` removes what nobody changed for a while.
///
/// Times that are passed in must not go backwards. Without delays all operations are O(1) on
/// average, `take` in the number of keys taken; one allocation for each key inside. A delay costs
/// O(log n). Not thread-safe: for one executor.
template <typename Key, typename Hash = std::hash<Key>>
class coalescing_set {
  struct entry;
  using node = std::pair<const Key, entry>;

 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// A key in flight. Valid until its flight is ended, once, by done or retry.
  class taken {
   public:
    const Key& key() const noexcept { return node_->first; }
    /// When the oldest, and the newest, change that this flight carries was accepted.
    time_point first_accepted() const noexcept { return first_; }
    time_point latest_accepted() const noexcept { return latest_; }
    /// Flights before this one that ended in a counted retry.
    std::uint32_t attempts() const noexcept { return node_->second.attempts; }

   private:
    friend class coalescing_set;
    explicit taken(node& of) : node_(&of), first_(of.second.first), latest_(of.second.latest) {}

    node* node_;
    time_point first_;
    time_point latest_;
  };

  coalescing_set() = default;
  coalescing_set(const coalescing_set&) = delete;
  coalescing_set& operator=(const coalescing_set&) = delete;

  /// Records a change of `key`, accepted at `now`. `key` is moved from only if the answer is
  /// `added`.
  insert_result insert(Key&& key, time_point now) {
    const auto [at, added] = nodes_.try_emplace(std::move(key));
    entry& what = at->second;
    what.latest = now;
    if (added) {
      what.first = now;
      enqueue(*at);
    } else {
      if (what.aging) ages_.remove(*at);
      if (what.place == where::in_flight && !std::exchange(what.dirty, true)) what.since = now;
      if (what.place == where::delayed) what.attempts = 0;
    }
    what.aging = true;
    ages_.append(*at);
    return added ? insert_result::added : insert_result::merged;
  }

  /// Takes up to `max` queued keys and appends them to `into`.
  std::size_t take(std::vector<taken>& into, std::size_t max) {
    std::size_t count = 0;
    for (; count < max && queue_.first != nullptr; ++count) {
      node& head = *queue_.first;
      queue_.remove(head);
      head.second.place = where::in_flight;
      into.push_back(taken(head));
    }
    in_flight_ += count;
    return count;
  }

  /// The flight is over and the key is not to be sent again: forgets it, or, if it changed
  /// meanwhile, queues it at the back.
  void done(const taken& flight) {
    entry& what = flight.node_->second;
    --in_flight_;
    if (!what.dirty) {
      forget(*flight.node_);
      return;
    }
    what.first = what.since;
    what.attempts = 0;
    age_again(*flight.node_);
    enqueue(*flight.node_);
  }

  /// The flight failed: queues the key at the back, to be tried as if new if it changed meanwhile.
  /// An attempt that says nothing about the key need not be counted.
  void retry(const taken& flight, bool counts = true) {
    land(flight, counts);
    enqueue(*flight.node_);
  }

  /// The same, not before `due`.
  void retry_at(const taken& flight, time_point due) {
    land(flight, true);
    entry& what = flight.node_->second;
    what.place = where::delayed;
    what.since = due;
    delays_.emplace(due, flight.node_);
  }

  /// Queues the delayed keys that are due at `now`.
  void wake(time_point now) {
    while (!delays_.empty() && delays_.begin()->first <= now) {
      node& due = *delays_.begin()->second;
      delays_.erase(delays_.begin());
      enqueue(due);
    }
  }

  /// When the next delayed key is due; `time_point::max()` if none is delayed.
  time_point next_due() const noexcept {
    return delays_.empty() ? time_point::max() : delays_.begin()->first;
  }

  /// Removes the queued and delayed keys that were not changed after `until`, and passes each to
  /// `removed` first. A key in flight stays; if its flight fails it is removed by the next call.
  template <typename Function>
  void expire(time_point until, Function removed) {
    while (ages_.first != nullptr && ages_.first->second.latest <= until) {
      node& oldest = *ages_.first;
      if (oldest.second.place == where::in_flight) {
        ages_.remove(oldest);
        oldest.second.aging = false;
        continue;
      }
      removed(oldest.first);
      drop(oldest);
    }
  }

  /// When the key was changed that nobody changed for the longest; `time_point::max()` if there is
  /// none. One in flight that `expire` met does not count.
  time_point oldest() const noexcept {
    return ages_.first == nullptr ? time_point::max() : ages_.first->second.latest;
  }

  /// Removes the key at the back of the queue, or the one that is delayed longest, and passes it to
  /// `removed` first. Not to be called if all keys are in flight.
  template <typename Function>
  void shed(Function removed) {
    node& last = queue_.last != nullptr ? *queue_.last : *delays_.rbegin()->second;
    removed(last.first);
    drop(last);
  }

  std::size_t queued() const noexcept { return nodes_.size() - in_flight_ - delays_.size(); }
  std::size_t delayed() const noexcept { return delays_.size(); }
  std::size_t in_flight() const noexcept { return in_flight_; }
  std::size_t size() const noexcept { return nodes_.size(); }
  bool empty() const noexcept { return nodes_.empty(); }

 private:
  enum class where : std::uint8_t { queued, in_flight, delayed };

  struct links {
    node* previous = nullptr;
    node* next = nullptr;
  };

  /// Through the map's nodes, whose addresses are stable.
  template <links entry::* Member>
  struct list {
    void append(node& what) noexcept {
      what.second.*Member = {last, nullptr};
      (last == nullptr ? first : (last->second.*Member).next) = &what;
      last = &what;
    }
    void prepend(node& what) noexcept {
      what.second.*Member = {nullptr, first};
      (first == nullptr ? last : (first->second.*Member).previous) = &what;
      first = &what;
    }
    void remove(node& what) noexcept {
      const auto [previous, next] = what.second.*Member;
      (previous == nullptr ? first : (previous->second.*Member).next) = next;
      (next == nullptr ? last : (next->second.*Member).previous) = previous;
    }
    node* first = nullptr;
    node* last = nullptr;
  };

  struct entry {
    time_point first{};   ///< of the oldest change not delivered that the key stands for
    time_point latest{};  ///< of the newest change
    time_point since{};   ///< in flight and dirty: of the first change meanwhile; delayed: until
    links queue{};        ///< while queued
    links age{};          ///< while `aging`, in the order of `latest`
    std::uint32_t attempts = 0;
    where place = where::queued;
    bool dirty = false;  ///< changed in flight
    bool aging = false;
  };

  void enqueue(node& what) noexcept {
    what.second.place = where::queued;
    what.second.dirty = false;
    queue_.append(what);
  }

  /// Ends a flight that delivered nothing.
  void land(const taken& flight, bool counts) noexcept {
    entry& what = flight.node_->second;
    --in_flight_;
    if (what.dirty) what.attempts = 0;
    if (!what.dirty && counts) ++what.attempts;
    what.dirty = false;
    age_again(*flight.node_);
  }

  /// After a flight in which the key expired: it is older than those that did not.
  void age_again(node& what) noexcept {
    if (std::exchange(what.second.aging, true)) return;
    ages_.prepend(what);
  }

  /// Removes a key that is queued or delayed.
  void drop(node& what) {
    if (what.second.place == where::queued) queue_.remove(what);
    if (what.second.place == where::delayed) delays_.erase({what.second.since, &what});
    forget(what);
  }

  void forget(node& what) {
    if (what.second.aging) ages_.remove(what);
    nodes_.erase(nodes_.find(what.first));
  }

  std::unordered_map<Key, entry, Hash> nodes_;
  list<&entry::queue> queue_;
  list<&entry::age> ages_;
  std::set<std::pair<time_point, node*>> delays_;
  std::size_t in_flight_ = 0;
};

}  // namespace rw::core
