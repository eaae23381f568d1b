#pragma once

#include "core/work_queue/base.hpp"
#include "core/work_queue/key_index.hpp"
#include "core/work_queue/slots.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

namespace rw::core {

/// The keys with work to do, each at most once. (k8s.io/client-go/util/workqueue has the
/// vocabulary.)
///
/// **Contract.**
///   - Fair: keys of one priority are taken oldest first.
///   - Stingy: a key added several times before it is taken is taken once.
///   - Not forgetful: a key added while it is processed is queued again when that is done.
///   - Exclusive: a key is never processed twice at once.
///   - No starvation: a level that has keys is passed over at most 8 times in a row. So the oldest
///     key of the lowest level waits for at most 8 others, and that of any level for 8 and one of
///     each level below.
///   - A key added with a higher priority than it waits with moves to the back of the higher level.
///
/// **Delays.** A key has at most one delay; a shorter one replaces it, a longer one changes
/// nothing. A key that is added without delay meanwhile is processed now and again when the delay
/// is over (as in client-go: both were asked for). Delays end while `run` runs.
///
/// **Retries.** `add_rate_limited` delays by exponential backoff of the key's own failures, or by
/// what a token bucket for all retries says, whichever is longer. `forget` ends the series of
/// failures. A key that is only remembered for its failures gives way when there is no room.
///
/// **Bound.** A key that is not inside is refused with `full` beyond `capacity`; a key that is
/// inside, being processed for instance, never is. Who must not lose keys waits with
/// `wait_for_room`.
///
/// **End.** After `shut_down` additions are refused and delays forgotten; what is queued, or was
/// added while being processed, is still handed out, and then `get` answers with no item.
///
/// **Cost.** Adding, taking and being done are O(1) and allocate nothing once memory has grown to
/// the number of keys inside; a delay is O(log n). The clock is read once for each turn of the
/// executor, and after 64 questions within one. Metrics are plain integers published by `run`
/// every 500 ms.
///
/// Metrics, with the label `name`: `workqueue_depth{priority}`, `workqueue_adds_total`,
/// `workqueue_queue_duration_seconds`, `workqueue_work_duration_seconds`,
/// `workqueue_unfinished_work_seconds`, `workqueue_longest_running_processor_seconds`,
/// `workqueue_retries_total`, `workqueue_refused_total{reason}`.
///
/// Not thread-safe: everything happens on one executor (thread or strand). Items and waiting
/// coroutines must be gone before the queue is. `Key`: default constructible, copyable, equality
/// comparable.
template <typename Key, typename Hash = std::hash<Key>>
class work_queue final : private work_queue_detail::base {
 public:
  /// A key that is being processed until this is done or destroyed.
  class item {
   public:
    item() = default;
    item(item&& from) noexcept : queue_(from.queue_), slot_(std::exchange(from.slot_, nullptr)) {}
    item& operator=(item&& from) noexcept {
      std::swap(queue_, from.queue_);
      std::swap(slot_, from.slot_);
      return *this;
    }
    ~item() { done(); }

    explicit operator bool() const noexcept { return slot_ != nullptr; }
    const Key& key() const noexcept { return slot_->key; }
    core::priority priority() const noexcept { return slot_->level; }
    /// How often it was added with a rate limit since it was last forgotten.
    std::uint32_t retries() const noexcept { return slot_->failures; }

    /// Ends the processing; the item is empty then.
    void done() {
      if (slot_ != nullptr) queue_->done(*std::exchange(slot_, nullptr));
    }
    /// Leaves the end of the processing to work_queue::done(key); the item is empty then.
    void release() noexcept { slot_ = nullptr; }

   private:
    friend work_queue;
    item(work_queue& queue, work_queue_detail::slot<Key>& slot) : queue_(&queue), slot_(&slot) {}

    work_queue* queue_ = nullptr;
    work_queue_detail::slot<Key>* slot_ = nullptr;
  };

  /// Throws std::invalid_argument if the capacity is 0 or beyond 2^31.
  work_queue(boost::asio::any_io_executor executor, work_queue_options options,
             work_queue_environment environment)
      : base(std::move(executor), std::move(options), std::move(environment)) {}

  // --- additions -----------------------------------------------------------------------

  add_result add(const Key& key, priority level = priority::normal) {
    const auto hash = hash_of(key);
    const auto at = index_.home(hash);
    const bool simple = index_[at] == work_queue_detail::none && index_.size() < limit_ &&
                        slots_.ready() && adding_is_simple(level);
    if (!simple) [[unlikely]]
      return add(key, hash, level);
    add_simply(insert(key, hash, at));
    return add_result::added;
  }

  /// Without `level` a key that is being processed keeps its own, and another has the normal one.
  add_result add_after(const Key& key, duration delay, std::optional<priority> level = {}) {
    if (delay <= duration::zero()) return add(key, level.value_or(own_level(key)));
    if (shut_down_) return refuse();
    auto* const one = find_or_make(key);
    if (one == nullptr) return add_result::full;
    return base::delay(*one, level, delay) ? add_result::added : add_result::merged;
  }

  /// After `at_least`, if the backoff is shorter.
  add_result add_rate_limited(const Key& key, std::optional<priority> level = {},
                              duration at_least = {}) {
    if (shut_down_) return refuse();
    auto* const one = find_or_make(key);
    if (one == nullptr) return add_result::full;
    const auto wait = std::max(next_retry(*one), at_least);
    return base::delay(*one, level, wait) ? add_result::added : add_result::merged;
  }

  /// Ends a key's series of failures: its next retry is delayed as its first.
  void forget(const Key& key) {
    auto* const one = find(key, hash_of(key));
    if (one == nullptr || one->failures == 0) return;
    one->failures = 0;
    if (!one->remembered) return;
    stop_remembering(*one);
    release(*one);
  }

  /// How often the key was added with a rate limit since it was last forgotten.
  std::uint32_t retries(const Key& key) const {
    const auto* const one = find(key, hash_of(key));
    return one == nullptr ? 0 : one->failures;
  }

  /// True if a key that is not inside would be taken.
  bool has_room() const noexcept { return index_.size() - remembered_ < options_.capacity; }

  /// Waits until then. False: the queue was shut down, or the coroutine cancelled.
  boost::asio::awaitable<bool> wait_for_room() {
    while (!shut_down_ && !has_room()) {
      const bool woken = co_await room_.wait();
      if (!woken) co_return false;
    }
    co_return !shut_down_;
  }

  // --- processing ----------------------------------------------------------------------

  /// The next key; an empty item if none is queued.
  item try_get() {
    if (ready_.empty()) return {};
    return {*this, static_cast<work_queue_detail::slot<Key>&>(take())};
  }

  /// Waits for the next key. An empty item: the queue was shut down and nothing is left, or the
  /// coroutine was cancelled.
  boost::asio::awaitable<item> get() {
    for (;;) {
      auto next = try_get();
      if (next || ended()) co_return next;
      const bool woken = co_await workers_.wait();
      if (!woken) co_return item();
    }
  }

  /// Ends the processing of a key whose item was released. False: it is not being processed.
  bool done(const Key& key) {
    auto* const one = find(key, hash_of(key));
    if (one == nullptr || one->where != work_queue_detail::place::processing) return false;
    done(*one);
    return true;
  }

  /// Makes the next operation look at the clock, within a turn of the executor that took long.
  using base::time_has_passed;

  // --- life ----------------------------------------------------------------------------

  /// Ends delays and publishes metrics until cancelled, or until the queue is shut down and
  /// everything in it is done. Once at a time.
  using base::run;

  /// Publishes the metrics as they are now.
  using base::publish;

  /// Refuses further additions.
  using base::shut_down;

  /// The same, then waits until what is inside is done. How long is the caller's to limit, by
  /// cancelling it.
  using base::drain;

  using base::is_shut_down;

  // --- sizes ---------------------------------------------------------------------------

  /// Keys that may be taken now.
  using base::processing;
  using base::queued;
  /// Keys that have a delay, whatever else they are.
  using base::delayed;
  /// All keys inside, those that are only remembered for their failures too.
  std::size_t size() const noexcept { return index_.size(); }
  std::size_t capacity() const noexcept { return options_.capacity; }

 private:
  using slot = work_queue_detail::slot<Key>;

  static std::uint32_t hash_of(const Key& key) { return work_queue_detail::spread(Hash{}(key)); }

  slot* find(const Key& key, std::uint32_t hash) const {
    std::size_t at = index_.home(hash);
    return find(key, hash, at);
  }

  /// Null: it is not inside, and `at`, at first the hash's home, is the place for it.
  slot* find(const Key& key, std::uint32_t hash, std::size_t& at) const {
    for (;; at = index_.next(at)) {
      const auto number = index_[at];
      if (number == work_queue_detail::none) [[likely]]
        return nullptr;
      slot& here = slots_[number];
      if (here.hash == hash && here.key == key) return &here;
    }
  }

  [[gnu::noinline]] add_result add(const Key& key, std::uint32_t hash, priority level) {
    if (shut_down_) return refuse();
    std::size_t at = index_.home(hash);
    if (auto* const known = find(key, hash, at)) {
      return add_known(*known, level) ? add_result::added : add_result::merged;
    }
    auto* const one = make(key, hash, at);
    if (one == nullptr) return add_result::full;
    add_new(*one, level);
    return add_result::added;
  }

  slot& insert(const Key& key, std::uint32_t hash, std::size_t at) {
    slot& one = slots_.take(key);
    one.hash = hash;
    index_.put(at, one.number);
    return one;
  }

  /// Puts a key inside that is not. Null: there is no room.
  slot* make(const Key& key, std::uint32_t hash, std::size_t at) {
    if (index_.size() >= limit_) {
      if (index_.size() >= options_.capacity && !make_room()) return nullptr;
      if (index_.crowded()) index_.grow();
      set_limit(index_.limit());
      at = index_.vacancy(hash);
    }
    if (!slots_.ready()) {
      slots_.grow();
      reserve(slots_.capacity());
    }
    return &insert(key, hash, at);
  }

  slot* find_or_make(const Key& key) {
    const auto hash = hash_of(key);
    std::size_t at = index_.home(hash);
    auto* const known = find(key, hash, at);
    return known != nullptr ? known : make(key, hash, at);
  }

  priority own_level(const Key& key) const {
    const auto* const one = find(key, hash_of(key));
    const bool has = one != nullptr && one->where == work_queue_detail::place::processing;
    return has ? one->level : priority::normal;
  }

  void done(slot& one) {
    if (!finishing_is_simple(one)) [[unlikely]]
      return done_after_all(one);
    end(one);
    index_.erase(one);
    slots_.give_back(one);
  }

  [[gnu::noinline]] void done_after_all(slot& one) {
    if (finish(one)) release(one);
  }

  void release(work_queue_detail::node& one) noexcept override {
    index_.erase(one);
    slots_.give_back(static_cast<slot&>(one));
    room_.wake_one();
  }

  mutable work_queue_detail::slots<Key> slots_;
  work_queue_detail::key_index<work_queue_detail::slots<Key>> index_{slots_};
};

}  // namespace rw::core
