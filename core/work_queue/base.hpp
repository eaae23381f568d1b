#pragma once

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "core/metrics.hpp"
#include "core/token_bucket.hpp"
#include "core/wake_list.hpp"
#include "core/work_queue/delays.hpp"
#include "core/work_queue/node.hpp"
#include "core/work_queue/ready_list.hpp"
#include "core/work_queue/statistics.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace rw::core {

/// What became of a key that was added to a work_queue.
enum class add_result : std::uint8_t {
  added,      ///< it will be processed (once more) because of this
  merged,     ///< it was to be processed, or to be added as early, anyway
  full,       ///< it is not inside, and there is no room; nothing happened
  shut_down,  ///< no more additions; nothing happened
};

struct work_queue_options {
  std::string name = {};  ///< the metrics' label `name`

  /// Keys inside at once: queued, delayed, being processed, or remembered for their failures.
  /// Memory grows to the most that were ever inside (some 130 bytes each for a key of two short
  /// strings) and is kept.
  std::size_t capacity = std::size_t{1} << 20;

  /// The n-th retry of a key waits for retry_base * 2^n, at most retry_limit, shortened by a random
  /// part of up to `retry_jitter` (0 to 1) of it, so that what failed together does not come back
  /// together.
  duration retry_base = std::chrono::milliseconds(5);
  duration retry_limit = std::chrono::seconds(1000);
  double retry_jitter = 0.2;

  /// All retries together; 0: no limit.
  double retries_per_second = 10;
  unsigned retry_burst = 100;
};

/// All of it must outlive the queue.
struct work_queue_environment {
  clock& time;
  metrics& numbers;
  random_source random;
};

namespace work_queue_detail {

/// All of a work queue that does not depend on the key's type.
class base {
 public:
  base(const base&) = delete;
  base& operator=(const base&) = delete;

  std::size_t queued() const noexcept { return ready_.size(); }
  std::size_t processing() const noexcept { return in_process_.size(); }
  std::size_t delayed() const noexcept { return delays_.size(); }
  bool is_shut_down() const noexcept { return shut_down_; }

  void shut_down();
  boost::asio::awaitable<void> drain();
  boost::asio::awaitable<void> run();
  void publish();
  void time_has_passed() noexcept { readings_ = 0; }

 protected:
  base(boost::asio::any_io_executor executor, work_queue_options options,
       work_queue_environment environment);
  ~base();

  /// False: the clock has to be read again.
  bool time_known() const noexcept { return readings_ != 0; }
  /// The time as of this turn of the executor, or of the last `shared_readings` takings.
  duration::rep now() {
    if (!time_known()) [[unlikely]]
      read_clock();
    return now_;
  }

  /// A key that is in no list is to be processed.
  void enqueue(node& one, priority level, duration::rep since) {
    one.added = since;
    ready_.push(one, level);
    if (!workers_.empty()) [[unlikely]]
      workers_.wake_one();
  }

  /// Adds a key that was not inside.
  void add_new(node& one, priority level) { enqueue(one, level, now()); }
  /// Adds a key that is inside. False: that changes nothing, or only its place in the queue.
  bool add_known(node& one, priority level);
  /// The same after a delay. False: it comes earlier anyway.
  bool delay(node& one, std::optional<priority> level, duration by);
  /// Counts a failure of the key, and says how long it is to wait.
  duration next_retry(node& one);

  /// True if nothing needs thought when a key that was not inside is added.
  bool adding_is_simple(priority level) const noexcept {
    return level == priority::normal && time_known() && ready_.ready() && workers_.empty();
  }
  void add_simply(node& one) noexcept {
    one.added = now_;
    ready_.push_simply(one);
  }

  /// The next key. There must be one.
  node& take() {
    node* const one = ready_.simple();
    const bool simple = one != nullptr && time_known() && !shut_down_;
    if (!simple) [[unlikely]]
      return take_any();
    ready_.take_simple();
    begin(*one);
    return *one;
  }

  /// True if nothing needs thought when the processing of a key is done: then it has only to `end`,
  /// and to be released.
  bool finishing_is_simple(const node& one) const noexcept {
    return time_known() && (one.delay_place | one.failures) == 0 && !one.again && !shut_down_ &&
           room_.empty();
  }
  void end(node& one) noexcept {
    counts_.worked.add(now_ - one.started);
    in_process_.remove(one);
    one.where = place::nowhere;
  }

  /// Ends the processing of a key. True: nothing is left to know of it; it is to be released.
  bool finish(node& one);
  /// A key has become neither queued nor processed: if it is only remembered for its failures, it
  /// gives way when there is no room. True: it is to be released.
  bool settle(node& one);
  void stop_remembering(node& one) noexcept;
  /// Releases the key that is remembered longest; false, and counted as refused, if there is none.
  bool make_room();
  /// Counts an addition after the end.
  add_result refuse() noexcept {
    ++counts_.refused_shut_down;
    return add_result::shut_down;
  }

  /// Nothing is to be taken any more, nor will be.
  bool ended() const noexcept { return shut_down_ && ready_.empty() && adding_again() == 0; }
  bool drained() const noexcept { return ended() && in_process_.size() == 0; }
  /// So many keys may come to be processed at once.
  void reserve(std::size_t keys) { in_process_.reserve(keys); }
  std::size_t adding_again() const noexcept { return again_[0] + again_[1] + again_[2]; }
  void tell_ends();

  virtual void release(node& one) noexcept = 0;
  /// Sets how many keys may be inside before `limit` asks for more thought.
  void set_limit(std::size_t of_index) noexcept {
    limit_ = shut_down_ ? 0 : std::min(options_.capacity, of_index);
  }

  const work_queue_options options_;
  work_queue_detail::counts counts_;
  ready_list ready_;
  std::size_t remembered_ = 0;
  std::size_t limit_ = 0;  ///< with fewer keys inside another may simply be added
  bool shut_down_ = false;
  wake_list workers_;  ///< wait for a key
  wake_list room_;     ///< wait for room

 private:
  static constexpr std::uint32_t shared_readings = 64;
  static constexpr auto never = std::numeric_limits<duration::rep>::max();

  /// Outlives the queue where the executor still has the end of a turn to tell.
  struct turn {
    base* queue;
    bool ends = false;  ///< its end is on its way
  };

  void read_clock();
  void end_delays(duration::rep until);
  node& take_any();

  void begin(node& one) {
    --readings_;
    one.where = place::processing;
    one.started = now_;
    in_process_.add(one);
    counts_.queued.add(now_ - one.added);
  }

  const boost::asio::any_io_executor executor_;
  const work_queue_environment environment_;
  const std::shared_ptr<turn> turn_;
  std::uint32_t readings_ = 0;  ///< how often `now_` may still be used
  duration::rep now_ = 0;
  work_queue_detail::delays delays_;
  list remembered_list_;              ///< longest first
  duration::rep publish_at_ = never;  ///< never: nothing has happened since the last time
  work_queue_detail::in_process in_process_;
  std::array<std::size_t, levels> again_{};  ///< keys that were added while they were processed
  std::size_t depth_ = 0;                    ///< as last published
  wake_list ends_;                           ///< wait until everything is done
  token_bucket bucket_;
  series series_;
  const std::unique_ptr<timer> alarm_;
};

}  // namespace work_queue_detail
}  // namespace rw::core
