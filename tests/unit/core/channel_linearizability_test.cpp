// Records short histories of a few threads on a small channel and searches each for an order of its
// steps that a sequential model explains (J. M. Wing and C. Gong, "Testing and verifying concurrent
// objects", 1993, with the memory of visited configurations of G. Lowe, "Testing for
// linearizability", 2017).
//
// The model is a bounded FIFO that can be closed; each operation happens at one instant. "Empty" is
// true if nothing is in it, "full" if `capacity` items are, "closed" to a sender if it is closed,
// and to a receiver if nothing is left besides.

#include "rw/core/channel/state.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_set>
#include <vector>

BOOST_AUTO_TEST_SUITE(channel_linearizability)

namespace core = rw::core;

namespace {

enum class answer : char {
  sent,
  full,
  send_closed,
  received,
  empty,
  receive_closed,
  close_done,
};

struct operation {
  answer what;
  int value;  ///< sent or received
  std::uint64_t begin;
  std::uint64_t end;
};

/// Of each thread its operations, in its order.
using history = std::vector<std::vector<operation>>;

class checker {
 public:
  checker(const history& what, std::size_t capacity)
      : history_(what), capacity_(capacity), cursors_(what.size()) {}

  bool explains() { return search(); }

 private:
  bool search() {
    if (!visited_.insert(configuration()).second) return false;
    bool over = true;
    for (std::size_t t = 0; t < history_.size(); ++t) {
      if (cursors_[t] == history_[t].size()) continue;
      over = false;
      if (!may_be_next(t)) continue;
      const auto saved = std::tuple(items_, closed_);
      if (apply(history_[t][cursors_[t]])) {
        ++cursors_[t];
        if (search()) return true;
        --cursors_[t];
      }
      std::tie(items_, closed_) = saved;
    }
    return over;
  }

  /// True unless some operation that is not yet in the order had ended before this one began.
  bool may_be_next(std::size_t thread) const {
    const std::uint64_t begin = history_[thread][cursors_[thread]].begin;
    for (std::size_t t = 0; t < history_.size(); ++t) {
      if (cursors_[t] < history_[t].size() && history_[t][cursors_[t]].end < begin) return false;
    }
    return true;
  }

  /// Lets the model do it. False if the model would have answered otherwise.
  bool apply(const operation& op) {
    switch (op.what) {
      case answer::sent:
        if (closed_ || items_.size() == capacity_) return false;
        items_.push_back(static_cast<char>(op.value));
        return true;
      case answer::full:
        return !closed_ && items_.size() == capacity_;
      case answer::send_closed:
        return closed_;
      case answer::received:
        if (items_.empty() || items_.front() != static_cast<char>(op.value)) return false;
        items_.erase(0, 1);
        return true;
      case answer::empty:
        return !closed_ && items_.empty();
      case answer::receive_closed:
        return closed_ && items_.empty();
      case answer::close_done:
        closed_ = true;
        return true;
    }
    return false;
  }

  std::string configuration() const {
    std::string text;
    for (const std::size_t each : cursors_) text += static_cast<char>(each);
    text += static_cast<char>(closed_);
    return text + items_;
  }

  const history& history_;
  const std::size_t capacity_;
  std::vector<std::size_t> cursors_;  ///< of each thread, how many operations are in the order
  std::string items_;                 ///< oldest first
  bool closed_ = false;
  std::unordered_set<std::string> visited_;
};

bool explained(const history& what, std::size_t capacity) {
  return checker(what, capacity).explains();
}

/// Lets threads start each round together. They yield while they wait: there may be fewer
/// processors.
class barrier {
 public:
  explicit barrier(std::size_t threads) : threads_(threads) {}

  void arrive_and_wait() {
    const std::uint64_t round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_.store(0);
      round_.store(round + 1);
      return;
    }
    for (int spins = 0; round_.load() == round; ++spins) {
      if (spins > 2000) std::this_thread::yield();
    }
  }

 private:
  const std::size_t threads_;
  std::atomic<std::size_t> arrived_{0};
  std::atomic<std::uint64_t> round_{0};
};

using channel_state = core::channel_detail::state<int>;

operation perform(channel_state& ch, unsigned what, int value, std::atomic<std::uint64_t>& clock) {
  operation op{answer::close_done, value, clock.fetch_add(1), 0};
  if (what == 0) {
    ch.close();
  } else if (what % 2 == 0) {
    const core::send_status status = ch.try_send(value);
    op.what = status == core::send_status::sent   ? answer::sent
              : status == core::send_status::full ? answer::full
                                                  : answer::send_closed;
  } else {
    const core::receive_status status =
        ch.try_receive([&op](int&& got) noexcept { op.value = got; });
    op.what = status == core::receive_status::received ? answer::received
              : status == core::receive_status::empty  ? answer::empty
                                                       : answer::receive_closed;
  }
  op.end = clock.fetch_add(1);
  return op;
}

std::string describe(const history& what) {
  static const char* const names[] = {"sent",  "full",           "send_closed", "received",
                                      "empty", "receive_closed", "close"};
  std::string text;
  for (std::size_t t = 0; t < what.size(); ++t) {
    text += "thread " + std::to_string(t) + ":";
    for (const operation& op : what[t]) {
      text += " [" + std::to_string(op.begin) + "-" + std::to_string(op.end) + " " +
              names[static_cast<int>(op.what)] + " " + std::to_string(op.value) + "]";
    }
    text += "\n";
  }
  return text;
}

struct tally {
  std::uint64_t sent = 0, full = 0, received = 0, empty = 0, overlapping = 0;
};

/// At least `rounds` histories of `threads` threads, and more, for a second at most, while too few
/// operations overlapped because the machine was busy. Every one must be explained.
tally record_and_check(std::size_t threads, std::size_t capacity, int rounds, bool closing) {
  constexpr int operations = 6;
  std::unique_ptr<channel_state> ch;
  history all(threads);
  std::atomic<std::uint64_t> clock{0};
  barrier start(threads);
  barrier finish(threads);
  tally counts;
  std::string unexplained;
  std::atomic<bool> enough{false};
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const auto work = [&](std::size_t me) {
    std::mt19937 random(static_cast<unsigned>(me * 977 + threads * 31 + capacity));
    for (int round = 0;; ++round) {
      if (me == 0) {
        ch = std::make_unique<channel_state>(capacity);
        for (auto& each : all) each.clear();
        clock.store(0);
      }
      start.arrive_and_wait();
      if (enough.load()) return;
      for (int i = 0; i < operations; ++i) {
        const unsigned what =
            closing && me == 0 && i == operations / 2 ? 0 : 1 + static_cast<unsigned>(random() % 2);
        const int value = static_cast<int>(me) * 16 + i + 1;
        all[me].push_back(perform(*ch, what, value, clock));
      }
      finish.arrive_and_wait();
      if (me == 0) {
        if (unexplained.empty() && !explained(all, capacity)) unexplained = describe(all);
        for (const auto& mine : all) {
          for (const operation& op : mine) {
            counts.sent += op.what == answer::sent;
            counts.full += op.what == answer::full;
            counts.received += op.what == answer::received;
            counts.empty += op.what == answer::empty;
            counts.overlapping += op.end - op.begin > 1;
          }
        }
        enough.store(round + 1 >= rounds &&
                     (counts.overlapping >= 1000 || std::chrono::steady_clock::now() > give_up));
      }
    }
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& thread : others) thread.join();
  BOOST_CHECK_MESSAGE(unexplained.empty(), "no order explains\n" << unexplained);
  return counts;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr int rounds = 500;
#else
constexpr int rounds = 5000;
#endif
#else
constexpr int rounds = 5000;
#endif

}  // namespace

BOOST_AUTO_TEST_CASE(checker_accepts_histories_that_the_contract_allows) {
  // In turn.
  BOOST_CHECK(explained({{{answer::sent, 1, 0, 1},
                          {answer::full, 2, 2, 3},
                          {answer::received, 1, 4, 5},
                          {answer::empty, 0, 6, 7}}},
                        1));
  // Two sends at once, received in either order.
  BOOST_CHECK(explained({{{answer::sent, 1, 0, 3}, {answer::received, 2, 4, 5}},
                         {{answer::sent, 2, 1, 2}, {answer::received, 1, 6, 7}}},
                        2));
  BOOST_CHECK(explained({{{answer::sent, 1, 0, 1},
                          {answer::close_done, 0, 2, 3},
                          {answer::send_closed, 2, 4, 5},
                          {answer::received, 1, 6, 7},
                          {answer::receive_closed, 0, 8, 9}}},
                        1));
}

BOOST_AUTO_TEST_CASE(checker_rejects_invalid_histories) {
  // Empty, although a send is done.
  BOOST_CHECK(!explained({{{answer::sent, 1, 0, 1}}, {{answer::empty, 0, 2, 3}}}, 2));
  // The same while an earlier send is still under way, as a ring with a stalled producer answers.
  BOOST_CHECK(!explained({{{answer::sent, 1, 0, 9}},
                          {{answer::sent, 2, 1, 2}, {answer::empty, 0, 3, 4}},
                          {{answer::received, 1, 10, 11}, {answer::received, 2, 12, 13}}},
                         2));
  // Out of order, twice, out of nothing.
  BOOST_CHECK(!explained({{{answer::sent, 1, 0, 1},
                           {answer::sent, 2, 2, 3},
                           {answer::received, 2, 4, 5},
                           {answer::received, 1, 6, 7}}},
                         2));
  BOOST_CHECK(!explained(
      {{{answer::sent, 1, 0, 1}, {answer::received, 1, 2, 3}}, {{answer::received, 1, 2, 3}}}, 2));
  BOOST_CHECK(!explained({{{answer::received, 1, 0, 1}}}, 2));
  // The only slot in the hands of a send under way: full to one call, and then empty to the next.
  BOOST_CHECK(!explained(
      {{{answer::sent, 1, 0, 9}}, {{answer::full, 2, 1, 2}, {answer::empty, 0, 3, 4}}}, 1));
  // Full with room, and more items than fit.
  BOOST_CHECK(!explained({{{answer::sent, 1, 0, 1}, {answer::full, 2, 2, 3}}}, 2));
  BOOST_CHECK(!explained({{{answer::sent, 1, 0, 1}, {answer::sent, 2, 2, 3}}}, 1));
  // Sent after close, and closed with an item left.
  BOOST_CHECK(!explained({{{answer::close_done, 0, 0, 1}, {answer::sent, 1, 2, 3}}}, 1));
  BOOST_CHECK(!explained(
      {{{answer::sent, 1, 0, 1}, {answer::close_done, 0, 2, 3}, {answer::receive_closed, 0, 4, 5}}},
      1));
}

BOOST_AUTO_TEST_CASE(histories_of_two_threads_are_linearizable) {
  for (const std::size_t capacity : {1U, 2U, 3U}) {
    const tally counts = record_and_check(2, capacity, rounds, false);
    BOOST_CHECK_GT(counts.sent, 0U);
    BOOST_CHECK_GT(counts.full, 0U);
    BOOST_CHECK_GT(counts.empty, 0U);
    BOOST_TEST_MESSAGE("capacity " << capacity << ": " << counts.overlapping
                                   << " operations overlapped another");
  }
}

BOOST_AUTO_TEST_CASE(histories_of_three_threads_are_linearizable) {
  for (const std::size_t capacity : {1U, 2U}) record_and_check(3, capacity, rounds, false);
}

BOOST_AUTO_TEST_CASE(histories_with_a_close_are_linearizable) {
  record_and_check(2, 2, rounds, true);
  record_and_check(3, 1, rounds, true);
}

BOOST_AUTO_TEST_SUITE_END()
