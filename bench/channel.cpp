// The channel against boost::asio::experimental::concurrent_channel and boost::lockfree::queue
// (fixed capacity): 1024 items of std::uint64_t each, moved by threads that yield where they find
// the queue full or empty, and by two coroutines on one thread. Prints one line of JSON for each
// figure: medians, and the ratio to the better of the alternatives (above 1: the channel is
// faster).
//
// On a machine that is not idle the threads' figures say more about its other load than about the
// queues (a queue whose threads happen to share one processor is several times faster); with the
// right to do so, run under `chrt -f 5`.

#include "rw/core/channel.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/lockfree/queue.hpp>

#include "bench/figure.hpp"
#include "bench/rates.hpp"
#include <algorithm>
#include <atomic>
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

using item = std::uint64_t;
constexpr std::size_t capacity = 1024;

/// What a benchmark needs of a queue: made with a context, send and receive without waiting.
class own_queue {
 public:
  explicit own_queue(asio::io_context&) : queue_(capacity) {}
  bool send(item value) { return queue_.try_send(value) == rw::core::send_status::sent; }
  bool receive(item& value) { return queue_.try_receive(value); }

 private:
  rw::core::channel<item> queue_;
};

using asio_channel = asio::experimental::concurrent_channel<void(error_code, item)>;

class asio_queue {
 public:
  explicit asio_queue(asio::io_context& io) : queue_(io, capacity) {}
  bool send(item value) { return queue_.try_send(error_code(), value); }
  bool receive(item& value) {
    return queue_.try_receive([&value](error_code, item got) { value = got; });
  }

 private:
  asio_channel queue_;
};

class lockfree_queue {
 public:
  explicit lockfree_queue(asio::io_context&) {}
  bool send(item value) { return queue_.push(value); }
  bool receive(item& value) { return queue_.pop(value); }

 private:
  boost::lockfree::queue<item, boost::lockfree::capacity<capacity>> queue_;
};

/// Moves `count` items through `queue` and returns how long it took.
template <typename Queue>
std::chrono::duration<double> move_items(Queue& queue, int senders, int receivers, item count) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<item> sum{0};
  const auto wait = [&ready, &go] {
    ready.fetch_add(1);
    while (!go.load()) std::this_thread::yield();
  };
  std::vector<std::thread> threads;
  for (int s = 0; s < senders; ++s) {
    threads.emplace_back([&queue, &wait, share = count / static_cast<item>(senders)] {
      wait();
      for (item i = 0; i < share; ++i) {
        while (!queue.send(i)) std::this_thread::yield();
      }
    });
  }
  for (int r = 0; r < receivers; ++r) {
    threads.emplace_back([&queue, &wait, &sum, share = count / static_cast<item>(receivers)] {
      wait();
      item value = 0;
      item mine = 0;
      for (item i = 0; i < share; ++i) {
        while (!queue.receive(value)) std::this_thread::yield();
        mine += value;
      }
      sum.fetch_add(mine);
    });
  }
  while (ready.load() != senders + receivers) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  go.store(true);
  for (std::thread& thread : threads) thread.join();
  const auto end = std::chrono::steady_clock::now();
  const item share = count / static_cast<item>(senders);
  if (sum.load() != static_cast<item>(senders) * (share * (share - 1) / 2)) std::abort();
  return end - begin;
}

template <typename Queue>
void threads(benchmark::State& state) {
  constexpr item count = 400'000;
  asio::io_context io;
  Queue queue(io);
  for (auto _ : state) {
    const auto took = move_items(queue, static_cast<int>(state.range(0)),
                                 static_cast<int>(state.range(1)), count);
    state.SetIterationTime(took.count());
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(count) * state.iterations());
}

// What users write.
asio::awaitable<void> send_all(rw::core::channel<item>& to, item count) {
  for (item i = 0; i < count; ++i) {
    const error_code error = co_await to.send(i);
    if (error) std::abort();
  }
}

asio::awaitable<void> receive_all(rw::core::channel<item>& from, item count) {
  item sum = 0;
  for (item i = 0; i < count; ++i) {
    const auto got = co_await from.receive();
    sum += got.value();
  }
  if (sum != count * (count - 1) / 2) std::abort();
}

asio::awaitable<void> send_all(asio_channel& to, item count) {
  for (item i = 0; i < count; ++i) {
    co_await to.async_send(error_code(), i, asio::use_awaitable);
  }
}

asio::awaitable<void> receive_all(asio_channel& from, item count) {
  item sum = 0;
  for (item i = 0; i < count; ++i) {
    sum += co_await from.async_receive(asio::use_awaitable);
  }
  if (sum != count * (count - 1) / 2) std::abort();
}

/// The peer in its best light: take what is there without suspending.
struct asio_fast_channel : asio_channel {
  using asio_channel::asio_channel;
};

asio::awaitable<void> send_all(asio_fast_channel& to, item count) {
  for (item i = 0; i < count; ++i) {
    if (to.try_send(error_code(), i)) continue;
    co_await to.async_send(error_code(), i, asio::use_awaitable);
  }
}

asio::awaitable<void> receive_all(asio_fast_channel& from, item count) {
  item sum = 0;
  for (item i = 0; i < count; ++i) {
    if (from.try_receive([&sum](error_code, item got) { sum += got; })) continue;
    sum += co_await from.async_receive(asio::use_awaitable);
  }
  if (sum != count * (count - 1) / 2) std::abort();
}

void rethrow(std::exception_ptr error) {
  if (error) std::rethrow_exception(error);
}

template <typename Channel, typename... Arguments>
void coroutines(benchmark::State& state, Arguments... arguments) {
  constexpr item count = 200'000;
  asio::io_context io(1);
  Channel* channel = nullptr;
  if constexpr (std::is_same_v<Channel, rw::core::channel<item>>) {
    channel = new Channel(arguments..., capacity);
  } else {
    channel = new Channel(io, arguments..., capacity);
  }
  const std::unique_ptr<Channel> owner(channel);
  for (auto _ : state) {
    io.restart();
    asio::co_spawn(io, send_all(*channel, count), rethrow);
    asio::co_spawn(io, receive_all(*channel, count), rethrow);
    io.run();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(count) * state.iterations());
}

void print(const std::string& figure, double own, const char* peer, double peers) {
  if (own == 0 || peers == 0) return;
  rw::bench::print({.name = "channel/" + figure,
                    .value = own,
                    .unit = "items/s",
                    .peer = peer,
                    .peer_value = peers});
}

}  // namespace

int main(int argc, char** argv) {
  const auto with_threads = [](const char* name, void (*run)(benchmark::State&)) {
    benchmark::RegisterBenchmark(name, run)
        ->Args({1, 1})
        ->Args({4, 1})
        ->Args({4, 4})
        ->UseManualTime()
        ->MinTime(0.05)
        ->Repetitions(5)
        ->Unit(benchmark::kMillisecond);
  };
  const auto with_coroutines = [](const char* name, auto run) {
    benchmark::RegisterBenchmark(name, run)->MinTime(0.05)->Repetitions(5)->Unit(
        benchmark::kMillisecond);
  };
  with_threads("threads/channel", threads<own_queue>);
  with_threads("threads/concurrent_channel", threads<asio_queue>);
  with_threads("threads/lockfree_queue", threads<lockfree_queue>);
  with_coroutines("coroutines/channel", coroutines<rw::core::channel<item>>);
  with_coroutines("coroutines/concurrent_channel", coroutines<asio_channel>);
  with_coroutines("coroutines/concurrent_channel_try_first", coroutines<asio_fast_channel>);

  rw::bench::rates seen;
  if (!seen.run(argc, argv)) return 1;
  for (const std::string shape : {"1/1", "4/1", "4/4"}) {
    std::string figure = "threads_" + shape;
    std::replace(figure.begin() + 8, figure.end(), '/', ':');
    print(figure, seen.median("threads/channel/" + shape),
          "the faster of concurrent_channel and boost::lockfree::queue",
          std::max(seen.median("threads/concurrent_channel/" + shape),
                   seen.median("threads/lockfree_queue/" + shape)));
  }
  const double own = seen.median("coroutines/channel");
  print("coroutines", own, "concurrent_channel", seen.median("coroutines/concurrent_channel"));
  print("coroutines_against_try_first", own, "concurrent_channel, try first",
        seen.median("coroutines/concurrent_channel_try_first"));
  return 0;
}
