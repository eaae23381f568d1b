// The work queue, metrics on, against a queue of std::unordered_set and std::deque with the same
// contract for each key: client-go's, which has one set for dirty keys and one for those in
// processing. Beside it stands what one set and the deque cost alone, which is no work queue.
// Keys are 64-bit integers and namespaced names; they come and go one at a time, and in bursts.
// Prints one line of JSON for each figure: medians of runs in turns, and the ratio of the work
// queue's time to the other's (below 1: the work queue is faster). Ends with 1 if a limit is
// missed.

#include "rw/core/work_queue.hpp"

#include <boost/asio/io_context.hpp>

#include "bench/figure.hpp"
#include "bench/rates.hpp"
#include <benchmark/benchmark.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

namespace asio = boost::asio;

namespace {

constexpr std::size_t keys_in_all = 65'536;
constexpr double ratio_limit = 0.7;

/// As k8s::object_key, which this floor does not know.
struct name {
  std::string ns;
  std::string own;
  friend bool operator==(const name&, const name&) = default;
};

struct name_hash {
  std::size_t operator()(const name& of) const noexcept {
    return std::hash<std::string>()(of.own) * 31 + std::hash<std::string>()(of.ns);
  }
};

using integers = std::uint64_t;
using integer_hash = std::hash<std::uint64_t>;

template <typename Key>
std::vector<Key> make_keys();

template <>
std::vector<integers> make_keys() {
  std::mt19937_64 random(1);
  std::vector<integers> keys(keys_in_all);
  for (auto& key : keys) key = random();
  return keys;
}

template <>
std::vector<name> make_keys() {
  std::mt19937_64 random(1);
  std::vector<name> keys(keys_in_all);
  for (auto& key : keys) {
    char text[40];
    std::snprintf(text, sizeof text, "%016llx-%08llx-kyma",
                  static_cast<unsigned long long>(random()),
                  static_cast<unsigned long long>(random() >> 32));
    key = {"kcp-system", text};
  }
  return keys;
}

template <typename Key, typename Hash>
class work_queue {
 public:
  void add(const Key& key) {
    if (queue_.add(key) != rw::core::add_result::added) std::abort();
  }
  void process() {
    auto item = queue_.try_get();
    benchmark::DoNotOptimize(&item.key());
    item.done();
  }

 private:
  asio::io_context io_;
  rw::core::real_clock time_;
  rw::core::metrics numbers_;
  rw::core::work_queue<Key, Hash> queue_{
      io_.get_executor(), {"bench"}, {time_, numbers_, rw::core::make_random_source()}};
};

/// The least that a work queue is: client-go's, with its sets of dirty keys and of those in
/// processing, but without metrics, delays, priorities, bound or waiting.
template <typename Key, typename Hash>
class sets_and_deque {
 public:
  void add(const Key& key) {
    if (!dirty_.insert(key).second) std::abort();
    if (!processing_.contains(key)) order_.push_back(key);
  }
  void process() {
    const Key key = std::move(order_.front());
    order_.pop_front();
    processing_.insert(key);
    dirty_.erase(key);
    benchmark::DoNotOptimize(&key);
    processing_.erase(key);
    if (dirty_.contains(key)) order_.push_back(key);
  }

 private:
  std::unordered_set<Key, Hash> dirty_;
  std::unordered_set<Key, Hash> processing_;
  std::deque<Key> order_;
};

/// Not even that: a key that is added while it is processed would be processed twice at once, or
/// not again.
template <typename Key, typename Hash>
class set_and_deque {
 public:
  void add(const Key& key) {
    if (!known_.insert(key).second) std::abort();
    order_.push_back(key);
  }
  void process() {
    const Key key = std::move(order_.front());
    order_.pop_front();
    benchmark::DoNotOptimize(&key);
    known_.erase(key);
  }

 private:
  std::unordered_set<Key, Hash> known_;
  std::deque<Key> order_;
};

/// Adds `Burst` keys, then processes them, and so on until all have come and gone.
template <typename Queue, typename Key, std::size_t Burst>
void cycle(benchmark::State& state) {
  const auto keys = make_keys<Key>();
  Queue queue;
  for (auto _ : state) {
    for (std::size_t at = 0; at < keys_in_all; at += Burst) {
      for (std::size_t i = 0; i < Burst; ++i) queue.add(keys[at + i]);
      for (std::size_t i = 0; i < Burst; ++i) queue.process();
    }
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(keys_in_all) * state.iterations());
}

/// The peers in turns, so that whatever else the machine does befalls both.
template <std::size_t Burst>
void add(const std::string& burst) {
  const auto one = [&](const std::string& what, void (*run)(benchmark::State&)) {
    benchmark::RegisterBenchmark((what + "/" + burst).c_str(), run)->MinTime(0.05);
  };
  for (int turn = 0; turn < 9; ++turn) {
    one("integers/work_queue", cycle<work_queue<integers, integer_hash>, integers, Burst>);
    one("integers/sets_and_deque", cycle<sets_and_deque<integers, integer_hash>, integers, Burst>);
    one("integers/set_and_deque", cycle<set_and_deque<integers, integer_hash>, integers, Burst>);
    one("names/work_queue", cycle<work_queue<name, name_hash>, name, Burst>);
    one("names/sets_and_deque", cycle<sets_and_deque<name, name_hash>, name, Burst>);
    one("names/set_and_deque", cycle<set_and_deque<name, name_hash>, name, Burst>);
  }
}

}  // namespace

int main(int argc, char** argv) {
  add<1>("1");
  add<64>("64");
  add<16'384>("16384");
  rw::bench::rates seen;
  if (!seen.run(argc, argv)) return 1;
  bool kept = true;
  for (const std::string keys : {"integers", "names"}) {
    for (const std::string burst : {"1", "64", "16384"}) {
      const double own = seen.nanoseconds(keys + "/work_queue/" + burst);
      const double peer = seen.nanoseconds(keys + "/sets_and_deque/" + burst);
      const double bare = seen.nanoseconds(keys + "/set_and_deque/" + burst);
      if (own == 0 || peer == 0) continue;
      kept = rw::bench::print({.name = "work_queue/" + keys + "_" + burst,
                               .value = own,
                               .unit = "ns",
                               .peer = "two unordered_sets and deque",
                               .peer_value = peer,
                               .ratio_limit = ratio_limit}) &&
             kept;
      if (bare == 0) continue;
      rw::bench::print({.name = "work_queue/one_set_and_deque_" + keys + "_" + burst,
                        .value = bare,
                        .unit = "ns"});
    }
  }
  return kept ? 0 : 1;
}
