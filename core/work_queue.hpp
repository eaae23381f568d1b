#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/clock.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/token_bucket.hpp"
#include "rw/core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace rw::core {

/// How urgent a key is.
enum class priority : std::uint8_t { high, normal, low };

/// Result of adding a key to a work_queue.
enum class add_result : std::uint8_t {
  added,      ///< it will be processed (once more) because of this
  merged,     ///< it was to be processed, or to be added as early, anyway
  full,       ///< it is not inside, and there is no room; nothing happened
  shut_down,  ///< no more additions; nothing happened
};

struct work_queue_options {
  std::string name = {};  ///< the metrics' label `name`

  /// Keys inside at once: queued, delayed, being processed, or remembered for their failures.
  /// Memory, some 250 bytes for a key of two short strings, grows to the most ever and is kept.
  std::size_t capacity = std::size_t{1} << 20;
  /// The n-th retry of a key waits for retry_base * 2^n, at most retry_limit, shortened by a random
  /// part of up to `retry_jitter` (0 to 1) of it.
  duration retry_base = std::chrono::milliseconds(5);
  duration retry_limit = std::chrono::seconds(1000);
  double retry_jitter = 0.2;
  double retries_per_second = 10;  ///< of all keys together; 0: no limit
  unsigned retry_burst = 100;
};

/// All of it must outlive the queue.
struct work_queue_environment {
  clock& time;
  metrics& numbers;
  random_source random;
};

namespace work_queue_detail {

/// The metrics of one work_queue.
struct series {
  series(metrics& registry, const labels& own);

  counter &retries, &refused_full, &refused_shut_down, &adds;
  gauge &unfinished, &longest;
  histogram_tally waited, worked;
  std::array<gauge*, 3> depth;  ///< by priority
};

}  // namespace work_queue_detail

/// The keys with work to do, each at most once. (k8s.io/client-go/util/workqueue has the
/// vocabulary.)
///
///   - Fair: keys of one priority are taken oldest first.
///   - Stingy: a key added several times before it is taken is taken once.
///   - Not forgetful: a key added while it is processed is queued again when that is done.
///   - Exclusive: a key is never processed twice at once.
///   - No starvation: a level that has keys is passed over at most 8 times in a row. So the oldest
///     key of any level waits for at most 8 others and one of each level below.
///   - A key added with a higher priority than it waits with moves to the back of the higher level.
///
/// **Delays.** A key has at most one, the shortest. A key that is added without delay meanwhile is
/// processed now and again when the delay is over, as in client-go. Delays end while `run` runs.
///
/// **Bound.** Beyond `capacity` a key that is not inside is refused with `full`; one that is inside
/// never is, and one that is only remembered for its failures gives way.
///
/// **End.** After `shut_down` additions are refused and delays forgotten; what is queued, or was
/// added while being processed, is still handed out, and then `get` returns no item.
///
/// **Cost.** Adding, taking and being done are amortised O(1); a delay is O(log n). The clock is
/// read once for each turn of the executor.
///
/// Metrics, published every 500 ms: client-go's `workqueue_*`, with the label `name`; the depth by
/// `priority`; and `workqueue_refused_total` by `reason`.
///
/// Not thread-safe: everything happens on one executor (thread or strand). Items and waiting
/// coroutines must be gone before the queue is. `Key`: default constructible, copyable, equality
/// comparable.
template <typename Key, typename Hash = std::hash<Key>>
class work_queue final {
  struct record;

 public:
  /// A key that is being processed until this is done or destroyed.
  class item {
   public:
    item() = default;
    explicit operator bool() const noexcept { return key_ != nullptr; }
    const Key& key() const noexcept { return key_->key; }
    core::priority priority() const noexcept { return key_->level; }
    /// Ends the processing; the item is empty then.
    void done() { key_.reset(); }

   private:
    friend work_queue;
    struct finisher {
      work_queue* queue;
      void operator()(record* key) const { queue->finish(*key); }
    };
    item(work_queue& queue, record& key) : key_(&key, finisher{&queue}) {}
    std::unique_ptr<record, finisher> key_ = {nullptr, {}};
  };

  /// Throws std::invalid_argument if the capacity is 0.
  work_queue(boost::asio::any_io_executor executor, work_queue_options options,
             work_queue_environment environment)
      : executor_(std::move(executor)),
        options_(std::move(options)),
        environment_(std::move(environment)) {
    if (capacity() == 0)
      throw std::invalid_argument("work queue " + options_.name + ": capacity 0");
  }

  add_result add(const Key& key, priority level = priority::normal) {
    return add_after(key, {}, level);
  }

  add_result add_after(const Key& key, duration delay, priority level = priority::normal) {
    const auto [found, refusal] = find_or_make(key);
    if (found == nullptr) return refusal;
    return delay > duration::zero() ? postpone(*found, level, delay) : enqueue(*found, level);
  }

  /// After the key's own exponential backoff, the wait for the token bucket of all retries, or
  /// `at_least`, whichever is longest.
  add_result add_rate_limited(const Key& key, priority level = priority::normal,
                              duration at_least = {}) {
    const auto [found, refusal] = find_or_make(key);
    if (found == nullptr) return refusal;
    const auto longest = doubled(options_.retry_base, options_.retry_limit, found->failures++);
    const auto backoff = shortened(longest, options_.retry_jitter, environment_.random());
    const auto share = bucket_.take(environment_.time.now());
    return postpone(*found, level, std::max({backoff, at_least, share}));
  }

  /// The key's next retry is delayed as its first.
  void forget(const Key& key) {
    auto* const found = find(key);
    if (found == nullptr) return;
    found->failures = 0;
    if (found->location == place::remembered) settle(*found);
  }

  /// Number of the key's rate-limited additions since it was last forgotten.
  std::uint32_t retries(const Key& key) const {
    const auto* const found = find(key);
    return found == nullptr ? 0 : found->failures;
  }

  /// True if a key that is not inside would be accepted.
  bool has_room() const noexcept { return size() - at(place::remembered).size() < capacity(); }

  /// Waits until then. False: the queue was shut down, or the coroutine cancelled.
  boost::asio::awaitable<bool> wait_for_room() {
    bool woken = true;
    while (woken && !shut_down_ && !has_room()) woken = co_await room_.wait();
    co_return woken && !shut_down_;
  }

  /// The next key; an empty item if none is queued.
  item try_get() {
    if (queued() == 0) return {};
    auto& key = next();
    move(key, place::processing);
    key.started = now();
    series_.waited.add(static_cast<double>((key.started - key.added).count()));
    if (shut_down_) report_end();
    return {*this, key};
  }

  /// Waits for the next key. An empty item: the queue was shut down and nothing is left, or the
  /// coroutine was cancelled.
  boost::asio::awaitable<item> get() {
    for (bool woken = true; woken && !ended();) {
      if (queued() > 0) co_return try_get();
      woken = co_await workers_.wait();
    }
    co_return item();
  }

  /// Makes the next operation read the clock, within a turn of the executor that took long.
  void time_has_passed() noexcept { *now_valid_ = false; }

  /// Ends delays and publishes metrics until cancelled, or until the queue is shut down and
  /// everything in it is done. Once at a time.
  boost::asio::awaitable<void> run() {
    while (!drained()) {
      const auto time = environment_.time.now();
      while (!delays_.empty() && delays_.begin()->due <= time) {
        auto& key = *delays_.extract(delays_.begin()).value().key;
        key.due = never;
        enqueue(key, key.delayed_level);
      }
      if (time >= publish_at_) publish();
      alarm_->expires_at(std::min(delays_.empty() ? never : delays_.begin()->due, publish_at_));
      co_await alarm_->wait();
    }
    publish();
  }

  /// Publishes the metrics as they are now.
  void publish() {
    const auto time = environment_.time.now();
    const auto& in_work = at(place::processing);
    std::array depth{lists_[0].size(), lists_[1].size(), lists_[2].size()};
    duration unfinished{0};
    for (const auto& record : in_work) {
      unfinished += time - record.started;
      if (record.again) ++depth[static_cast<std::size_t>(*record.again)];
    }
    for (std::size_t i = 0; i < 3; ++i) series_.depth[i]->Set(static_cast<double>(depth[i]));
    series_.unfinished.Set(seconds(unfinished));
    series_.longest.Set(in_work.empty() ? 0 : seconds(time - in_work.front().started));
    series_.adds.Increment(static_cast<double>(std::exchange(added_, 0)));
    series_.waited.publish();
    series_.worked.publish();
    // At rest until something happens, which then must read the clock to find that out.
    publish_at_ = in_work.empty() ? never : time + publish_every;
    time_has_passed();
  }

  /// Refuses further additions.
  void shut_down() {
    if (std::exchange(shut_down_, true)) return;
    for (const auto& ended : std::exchange(delays_, {})) {
      ended.key->due = never;
      if (ended.key->location == place::delayed) settle(*ended.key);
    }
    room_.wake_all();
    report_end();
  }

  /// The same, then waits until what is inside is done. The caller limits that by cancelling it.
  boost::asio::awaitable<void> drain() {
    shut_down();
    for (bool woken = true; woken && !drained();) woken = co_await workers_.wait();
  }

  /// Keys that may be taken now.
  std::size_t queued() const noexcept {
    return at(place::high).size() + at(place::normal).size() + at(place::low).size();
  }
  std::size_t processing() const noexcept { return at(place::processing).size(); }
  /// Keys that have a delay, in whatever other state.
  std::size_t delayed() const noexcept { return delays_.size(); }
  /// All keys inside, those that are only remembered for their failures too.
  std::size_t size() const noexcept { return index_.size(); }
  std::size_t capacity() const noexcept { return options_.capacity; }

 private:
  static constexpr auto never = time_point::max();
  static constexpr auto publish_every = std::chrono::milliseconds(500);  // as client-go

  /// The list that a record is in. The first three are the priorities.
  enum class place : std::uint8_t { high, normal, low, processing, remembered, delayed, free };

  struct record : boost::intrusive::list_base_hook<
                      boost::intrusive::link_mode<boost::intrusive::normal_link>> {
    Key key{};  ///< of a free record: the last one, into whose memory the next is written
    place location = place::free;
    priority level = priority::normal;  ///< with which it is, or was last, queued
    priority delayed_level = priority::normal;
    std::optional<priority> again = {};  ///< added while processing: to be queued so after
    std::uint32_t failures = 0;          ///< rate-limited additions since the last `forget`
    time_point due = never;              ///< end of the delay, in whatever place
    std::uint64_t delay = 0;             ///< its number
    time_point added = {};               ///< of the addition that waits to be taken
    time_point started = {};
  };
  using list = boost::intrusive::list<record>;

  /// Of those that end together the first one added comes first.
  struct delay {
    time_point due;
    std::uint64_t number;
    record* key;

    friend bool operator<(const delay& a, const delay& b) noexcept {
      return a.due != b.due ? a.due < b.due : a.number < b.number;
    }
  };

  /// Hashes and compares records by their keys.
  struct by_key : Hash {
    using is_transparent = void;
    static const Key& key_of(const Key& key) noexcept { return key; }
    static const Key& key_of(const record* of) noexcept { return of->key; }
    std::size_t operator()(const auto& of) const { return Hash::operator()(key_of(of)); }
    bool operator()(const auto& a, const auto& b) const { return key_of(a) == key_of(b); }
  };

  list& at(place location) noexcept { return lists_[static_cast<std::size_t>(location)]; }
  const list& at(place location) const noexcept {
    return lists_[static_cast<std::size_t>(location)];
  }
  void move(record& key, place to) noexcept {
    at(key.location).erase(list::s_iterator_to(key));
    at(key.location = to).push_back(key);
  }

  record* find(const Key& key) const {
    const auto at = index_.find(key);
    return at == index_.end() ? nullptr : *at;
  }

  /// A new key is in no place yet: the caller sees to that. Null: the key is not inside, and the
  /// reason that it is refused.
  std::pair<record*, add_result> find_or_make(const Key& key) {
    if (shut_down_) {
      series_.refused_shut_down.Increment();
      return {nullptr, add_result::shut_down};
    }
    if (auto* const known = find(key)) return {known, {}};
    if (!has_room()) {
      series_.refused_full.Increment();
      return {nullptr, add_result::full};
    }
    if (size() == capacity()) forget(at(place::remembered).front().key);
    if (at(place::free).empty()) at(place::free).push_back(records_.emplace_back());
    auto& fresh = at(place::free).back();
    fresh.key = key;
    index_.insert(&fresh);
    return {&fresh, {}};
  }

  time_point now() {
    if (!*now_valid_) [[unlikely]]
      read_clock();
    return now_;
  }
  [[gnu::noinline]] void read_clock() {
    *now_valid_ = true;
    boost::asio::post(executor_, [valid = now_valid_] { *valid = false; });
    now_ = environment_.time.now();
    if (publish_at_ != never) return;
    publish_at_ = now_ + publish_every;
    alarm_->cancel();  // `run` sets it again
  }

  add_result enqueue(record& key, priority level) {
    const bool queued = key.location <= place::low;
    const bool merged = queued || key.again;
    if (key.location == place::processing) {
      key.again = std::min(level, key.again.value_or(level));
    } else if (!queued || level < key.level) {
      push(key, level);
    }
    if (merged) return add_result::merged;
    key.added = now();
    ++added_;
    return add_result::added;
  }

  add_result postpone(record& key, priority level, duration by) {
    series_.retries.Increment();
    const auto due = now() + std::min(by, never - now() - duration(1));
    const bool has_delay = key.due != never;
    key.delayed_level = has_delay ? std::min(key.delayed_level, level) : level;
    if (has_delay && due >= key.due) return add_result::merged;
    if (key.location > place::processing) move(key, place::delayed);
    delays_.erase({key.due, key.delay, &key});
    const auto at = delays_.insert({key.due = due, key.delay = ++last_delay_, &key}).first;
    if (at == delays_.begin()) alarm_->cancel();
    return add_result::added;
  }

  void push(record& key, priority level) {
    key.level = level;
    move(key, static_cast<place>(level));
    if (!workers_.empty()) workers_.wake_one();
  }

  /// The highest level goes first unless another was passed over 8 times; then the lowest of those.
  record& next() noexcept {
    // Without a choice no turn is counted.
    if (at(place::normal).size() == queued()) return at(place::normal).front();
    std::optional<std::size_t> chosen;
    for (std::size_t i = 0; i < passed_over_.size(); ++i) {
      if (lists_[i].empty()) continue;
      const bool late = passed_over_[i]++ >= 8;
      if (!chosen || late) chosen = i;
    }
    passed_over_[*chosen] = 0;
    return lists_[*chosen].front();
  }

  void finish(record& key) {
    series_.worked.add(static_cast<double>((now() - key.started).count()));
    if (const auto level = std::exchange(key.again, std::nullopt)) {
      push(key, *level);
    } else {
      settle(key);
    }
    if (shut_down_) report_end();
  }

  /// A key is neither queued nor processed: it stays for its delay or its failures, or not at all.
  void settle(record& key) {
    if (key.due != never) return move(key, place::delayed);
    if (key.failures == 0) index_.erase(&key);
    move(key, key.failures > 0 ? place::remembered : place::free);
    if (!room_.empty()) room_.wake_one();
  }

  /// True if nothing is queued, nor will be.
  bool ended() const noexcept {
    return shut_down_ && queued() == 0 &&
           std::ranges::none_of(at(place::processing), [](auto& key) { return bool(key.again); });
  }
  bool drained() const noexcept { return ended() && processing() == 0; }
  void report_end() {
    workers_.wake_all();  // each looks for itself
    alarm_->cancel();
  }

  const boost::asio::any_io_executor executor_;
  const work_queue_options options_;
  const work_queue_environment environment_;
  std::deque<record> records_;
  boost::unordered_flat_set<record*, by_key, by_key> index_;
  std::array<list, 7> lists_;                   ///< by place; each oldest first
  std::array<std::uint32_t, 3> passed_over_{};  ///< levels, in a row, while there was a choice
  std::set<delay> delays_;
  std::uint64_t last_delay_ = 0;
  bool shut_down_ = false;
  wake_list workers_{executor_};  ///< wait for a key; after `shut_down` also for the end
  wake_list room_{executor_};     ///< wait for room
  token_bucket bucket_{options_.retries_per_second, options_.retry_burst};
  work_queue_detail::series series_{environment_.numbers, {{"name", options_.name}}};
  const std::unique_ptr<timer> alarm_ = environment_.time.make_timer(executor_);
  const std::shared_ptr<bool> now_valid_ = std::make_shared<bool>(false);  ///< in this turn
  time_point now_ = {};
  std::uint64_t added_ = 0;        ///< since the metrics were published
  time_point publish_at_ = never;  ///< never: nothing has happened since the last time
};

}  // namespace rw::core
