// Many threads, small channels. What each consumer got is checked afterwards, in one thread:
// nothing lost, nothing twice, and each producer's items in the order in which it sent them.

#include "rw/core/channel.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(channel_stress)

namespace asio = boost::asio;
namespace core = rw::core;
using boost::system::error_code;
using rw::core::channel_errc;
using rw::core::send_status;
using namespace std::chrono_literals;

namespace {

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr std::uint64_t scale = 1;
#else
constexpr std::uint64_t scale = 10;
#endif
#else
constexpr std::uint64_t scale = 10;
#endif

using item = std::uint64_t;
using items = std::vector<item>;

constexpr item make_item(std::uint64_t producer, std::uint64_t number) {
  return (producer << 32) | number;
}

/// Checks what all consumers of one channel got against what the producers sent: 0 to `count` - 1
/// each.
void check_complete(const std::vector<items>& consumers, std::size_t producers,
                    std::uint64_t count) {
  std::vector<std::vector<bool>> seen(producers, std::vector<bool>(count, false));
  std::uint64_t total = 0;
  std::uint64_t twice = 0;
  std::uint64_t disorder = 0;
  for (const items& got : consumers) {
    std::vector<std::uint64_t> next(producers, 0);
    for (const item each : got) {
      const std::uint64_t producer = each >> 32;
      const std::uint64_t number = each & 0xffffffffU;
      BOOST_REQUIRE_LT(producer, producers);
      BOOST_REQUIRE_LT(number, count);
      if (number < next[producer]) ++disorder;
      next[producer] = number + 1;
      if (seen[producer][number]) ++twice;
      seen[producer][number] = true;
      ++total;
    }
  }
  BOOST_CHECK_EQUAL(total, producers * count);
  BOOST_CHECK_EQUAL(twice, 0U);
  BOOST_CHECK_EQUAL(disorder, 0U);
}

void run_threads(std::size_t capacity, std::size_t producers, std::size_t consumers,
                 std::uint64_t count) {
  core::channel<item> ch(capacity);
  std::vector<items> got(consumers);
  std::atomic<std::uint64_t> left{producers * count};
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p < producers; ++p) {
    threads.emplace_back([&ch, p, count] {
      for (std::uint64_t i = 0; i < count; ++i) {
        while (ch.try_send(make_item(p, i)) != send_status::sent) std::this_thread::yield();
      }
    });
  }
  for (std::size_t c = 0; c < consumers; ++c) {
    threads.emplace_back([&ch, &left, &mine = got[c], batches = c % 2 == 1] {
      while (left.load() != 0) {
        const std::size_t taken = ch.try_receive(mine, batches ? 5 : 1);
        if (taken == 0) std::this_thread::yield();
        left.fetch_sub(taken);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  check_complete(got, producers, count);
}

/// A coroutine's own strand and cancellation; others may ask for the latter at any time.
struct actor {
  explicit actor(asio::io_context& io) : strand(asio::make_strand(io)) {}

  void cancel() {
    asio::post(strand, [this] { signal.emit(asio::cancellation_type::terminal); });
  }

  asio::strand<asio::io_context::executor_type> strand;
  asio::cancellation_signal signal;
  items got{};
  std::uint64_t stopped = 0;  ///< operations that ended by cancellation
};

asio::awaitable<void> produce(core::channel<item>& ch, actor& self, std::uint64_t id,
                              std::uint64_t count, std::atomic<std::size_t>& producing) {
  std::mt19937 random(static_cast<unsigned>(id));
  for (std::uint64_t i = 0; i < count;) {
    error_code error;
    const unsigned way = random() % 8;
    if (way < 4) {
      error = co_await ch.send(make_item(id, i));
    } else {
      co_await ch.async_send(
          make_item(id, i),
          asio::bind_cancellation_slot(self.signal.slot(),
                                       asio::redirect_error(asio::use_awaitable, error)));
    }
    // What was not sent is sent again: if it had been delivered all the same, it would be there
    // twice.
    if (error) {
      ++self.stopped;
    } else {
      ++i;
    }
  }
  if (producing.fetch_sub(1) == 1) ch.close();
}

asio::awaitable<void> consume(core::channel<item>& ch, actor& self, bool batches) {
  for (;;) {
    error_code error;
    if (batches) {
      co_await ch.async_receive_some(
          self.got, 4,
          asio::bind_cancellation_slot(self.signal.slot(),
                                       asio::redirect_error(asio::use_awaitable, error)));
    } else {
      const std::optional<item> one = co_await ch.async_receive(asio::bind_cancellation_slot(
          self.signal.slot(), asio::redirect_error(asio::use_awaitable, error)));
      if (one) self.got.push_back(*one);
    }
    if (error == channel_errc::closed) co_return;
    if (error) ++self.stopped;
  }
}

void run_coroutines(std::size_t capacity, std::size_t producers, std::size_t consumers,
                    std::uint64_t count, bool cancelling) {
  asio::io_context io;
  core::channel<item> ch(capacity);
  std::vector<std::unique_ptr<actor>> actors;
  std::atomic<std::size_t> producing{producers};
  std::atomic<std::size_t> running{producers + consumers};
  const auto finished = [&running](std::exception_ptr error) {
    if (error) std::terminate();
    running.fetch_sub(1);
  };
  for (std::size_t i = 0; i < producers + consumers; ++i) {
    actors.push_back(std::make_unique<actor>(io));
    actor& self = *actors.back();
    if (i < producers) {
      asio::co_spawn(self.strand, produce(ch, self, i, count, producing), finished);
    } else {
      asio::co_spawn(self.strand, consume(ch, self, i % 2 == 1), finished);
    }
  }
  // Runs in between the others as often as they give way, whatever the machine is busy with.
  std::mt19937 random(7);
  std::function<void()> disturb = [&] {
    if (running.load() == 0) return;
    actors[random() % actors.size()]->cancel();
    asio::post(io, disturb);
  };
  if (cancelling) asio::post(io, disturb);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([&io] { io.run_for(60s); });
  for (std::thread& thread : threads) thread.join();
  BOOST_REQUIRE_EQUAL(running.load(), 0U);  // otherwise somebody slept through his wake-up
  std::vector<items> got;
  std::uint64_t stopped = 0;
  for (const auto& each : actors) {
    got.push_back(each->got);
    stopped += each->stopped;
  }
  check_complete(got, producers, count);
  if (cancelling) BOOST_CHECK_GT(stopped, 0U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(threads_lose_nothing_and_keep_each_producers_order) {
  run_threads(1, 2, 2, 3000 * scale);
  run_threads(3, 3, 3, 3000 * scale);
  run_threads(1024, 1, 1, 10000 * scale);
  run_threads(64, 4, 4, 5000 * scale);
}

BOOST_AUTO_TEST_CASE(suspended_peers_are_all_woken) {
  run_coroutines(1, 1, 1, 2000 * scale, false);
  run_coroutines(1, 3, 3, 1000 * scale, false);
  run_coroutines(7, 4, 2, 1000 * scale, false);
}

BOOST_AUTO_TEST_CASE(random_cancellation_neither_loses_nor_doubles_an_item) {
  run_coroutines(1, 2, 2, 1000 * scale, true);
  run_coroutines(5, 3, 3, 1000 * scale, true);
}

BOOST_AUTO_TEST_CASE(items_accepted_before_close_are_received_and_none_after_the_end) {
  for (std::uint64_t round = 0; round < 50 * scale; ++round) {
    core::channel_detail::state<item> ch(1 + round % 4);
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> received{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&ch, &sent] {
        for (;;) {
          item value = 1;
          const send_status status = ch.try_send(value);
          if (status == send_status::closed) return;
          if (status == send_status::sent) sent.fetch_add(1);
          if (status == send_status::full) std::this_thread::yield();
        }
      });
      threads.emplace_back([&ch, &received] {
        for (;;) {
          const auto status = ch.try_receive([](item&&) noexcept {});
          if (status == core::receive_status::closed) return;
          if (status == core::receive_status::received) received.fetch_add(1);
          if (status == core::receive_status::empty) std::this_thread::yield();
        }
      });
    }
    while (received.load() < 20) std::this_thread::yield();
    ch.close();
    for (std::thread& thread : threads) thread.join();
    BOOST_REQUIRE_EQUAL(sent.load(), received.load());
  }
}

BOOST_AUTO_TEST_SUITE_END()
