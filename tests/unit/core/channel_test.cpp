#include "rw/core/channel.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

BOOST_AUTO_TEST_SUITE(channel)

namespace asio = boost::asio;
using boost::system::error_code;

namespace core = rw::core;
using rw::core::channel_errc;
using rw::core::send_status;
using namespace std::chrono_literals;

namespace {

using clock_type = std::chrono::steady_clock;

/// Remembers how an operation ended.
template <typename Value>
struct outcome {
  int calls = 0;
  error_code error;
  std::optional<Value> value;
};

template <typename Value>
auto into(asio::io_context& io, std::shared_ptr<outcome<Value>> to) {
  return asio::bind_executor(io, [to](error_code error, std::optional<Value> value) {
    ++to->calls;
    to->error = error;
    to->value = std::move(value);
  });
}

auto into(asio::io_context& io, std::shared_ptr<outcome<int>> to, asio::cancellation_slot slot) {
  return asio::bind_cancellation_slot(slot, into<int>(io, to));
}

auto into_send(asio::io_context& io, std::shared_ptr<outcome<int>> to,
               asio::cancellation_slot slot = {}) {
  return asio::bind_cancellation_slot(slot, asio::bind_executor(io, [to](error_code error) {
                                        ++to->calls;
                                        to->error = error;
                                      }));
}

/// Lets everything run that can, in a context that may have run dry before.
void settle(asio::io_context& io) {
  io.restart();
  io.poll();
}

/// Runs until `done`, at most ten seconds.
template <typename Done>
void run_until(asio::io_context& io, Done done) {
  const auto give_up = clock_type::now() + 10s;
  while (!done() && clock_type::now() < give_up) {
    io.restart();
    io.run_one_for(10ms);
  }
  BOOST_REQUIRE(done());
}

template <typename Coroutine>
void run(asio::io_context& io, Coroutine coroutine) {
  bool over = false;
  asio::co_spawn(io, std::move(coroutine), [&over](std::exception_ptr error) {
    over = true;
    BOOST_CHECK(error == nullptr);
  });
  run_until(io, [&over] { return over; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(items_come_out_in_the_order_in_which_they_went_in) {
  core::channel<int> ch(8);
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < 5; ++i) BOOST_REQUIRE(ch.try_send(round * 5 + i) == send_status::sent);
    BOOST_REQUIRE_EQUAL(ch.size(), 5U);
    for (int i = 0; i < 5; ++i) {
      int got = -1;
      BOOST_REQUIRE(ch.try_receive(got));
      BOOST_REQUIRE_EQUAL(got, round * 5 + i);
    }
    BOOST_REQUIRE(!ch.try_receive().has_value());
  }
}

BOOST_AUTO_TEST_CASE(channel_capacity_is_exactly_the_requested_one) {
  for (const std::size_t capacity : {1U, 2U, 3U, 7U, 255U, 256U, 257U, 1000U, 1024U}) {
    core::channel<std::size_t> ch(capacity);
    BOOST_CHECK_EQUAL(ch.capacity(), capacity);
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < capacity; ++i) BOOST_REQUIRE(ch.try_send(i) == send_status::sent);
      std::size_t extra = 9999;
      BOOST_REQUIRE(ch.try_send(extra) == send_status::full);
      BOOST_REQUIRE_EQUAL(ch.size(), capacity);
      for (std::size_t i = 0; i < capacity; ++i) BOOST_REQUIRE_EQUAL(ch.try_receive().value(), i);
    }
  }
}

BOOST_AUTO_TEST_CASE(capacity_of_zero_is_rejected) {
  BOOST_CHECK_THROW(core::channel<int>(0), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(value_that_was_not_sent_stays_with_the_sender) {
  core::channel<std::unique_ptr<int>> ch(1);
  BOOST_CHECK(ch.try_send(std::make_unique<int>(1)) == send_status::sent);
  auto second = std::make_unique<int>(2);
  BOOST_CHECK(ch.try_send(second) == send_status::full);
  BOOST_REQUIRE(second != nullptr);
  ch.close();
  BOOST_CHECK(ch.try_send(std::move(second)) == send_status::closed);
  BOOST_REQUIRE(second != nullptr);
  BOOST_CHECK_EQUAL(*ch.try_receive().value(), 1);
}

BOOST_AUTO_TEST_CASE(batch_is_appended_up_to_its_maximum) {
  core::channel<int> ch(8);
  for (int i = 0; i < 6; ++i) ch.try_send(i);
  std::vector<int> got{-1};
  BOOST_CHECK_EQUAL(ch.try_receive(got, 4), 4U);
  BOOST_CHECK_EQUAL(ch.try_receive(got, 0), 0U);
  BOOST_CHECK_EQUAL(ch.try_receive(got, 4), 2U);
  BOOST_CHECK_EQUAL(ch.try_receive(got, 4), 0U);
  BOOST_TEST(got == (std::vector<int>{-1, 0, 1, 2, 3, 4, 5}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(items_left_over_are_destroyed_with_the_channel) {
  auto item = std::make_shared<int>(1);
  {
    core::channel<std::shared_ptr<int>> ch(4);
    ch.try_send(std::shared_ptr<int>(item));
    ch.try_send(std::shared_ptr<int>(item));
    BOOST_CHECK_EQUAL(item.use_count(), 3);
  }
  BOOST_CHECK_EQUAL(item.use_count(), 1);
}

BOOST_AUTO_TEST_CASE(channel_returns_remaining_items_and_then_closed_after_close) {
  asio::io_context io;
  core::channel<int> ch(4);
  ch.try_send(1);
  ch.try_send(2);
  ch.close();
  ch.close();
  BOOST_CHECK(ch.is_closed());
  BOOST_CHECK(ch.try_send(3) == send_status::closed);
  run(io, [&]() -> asio::awaitable<void> {
    const auto first = co_await ch.receive();
    BOOST_CHECK_EQUAL(first.value(), 1);
    std::vector<int> rest;
    const auto batch = co_await ch.receive_some(rest, 10);
    BOOST_CHECK_EQUAL(batch.value(), 1U);
    const auto end = co_await ch.receive();
    BOOST_CHECK(end.error() == channel_errc::closed);
    const auto batch_end = co_await ch.receive_some(rest, 10);
    BOOST_CHECK(batch_end.error() == channel_errc::closed);
    const error_code refused = co_await ch.send(3);
    BOOST_CHECK(refused == channel_errc::closed);
  });
  BOOST_CHECK_EQUAL(error_code(channel_errc::closed).message(), "the channel is closed");
}

BOOST_AUTO_TEST_CASE(closed_ring_rejects_a_racing_put_although_it_has_room) {
  core::channel_detail::index_ring ring(4, 8);
  BOOST_CHECK(ring.put(5) == send_status::sent);
  BOOST_CHECK(ring.close());
  BOOST_CHECK(!ring.close());
  BOOST_CHECK(ring.put(6) == send_status::closed);
  std::size_t got[3] = {};
  std::size_t taken = 0;
  BOOST_CHECK(ring.take(got, taken) == core::receive_status::received);
  BOOST_CHECK_EQUAL(taken, 1U);
  BOOST_CHECK_EQUAL(got[0], 5U);
  BOOST_CHECK(ring.take(got, taken) == core::receive_status::closed);
}

BOOST_AUTO_TEST_CASE(close_wakes_every_receiver_and_every_sender) {
  asio::io_context io;
  core::channel<int> full(1);
  core::channel<int> empty(1);
  full.try_send(7);
  std::vector<std::shared_ptr<outcome<int>>> ends;
  for (int i = 0; i < 5; ++i) {
    ends.push_back(std::make_shared<outcome<int>>());
    empty.async_receive(into<int>(io, ends.back()));
    ends.push_back(std::make_shared<outcome<int>>());
    full.async_send(i, into_send(io, ends.back()));
  }
  settle(io);
  BOOST_CHECK_EQUAL(empty.waiting_receivers(), 5U);
  BOOST_CHECK_EQUAL(full.waiting_senders(), 5U);
  empty.close();
  full.close();
  settle(io);
  for (const auto& end : ends) {
    BOOST_CHECK_EQUAL(end->calls, 1);
    BOOST_CHECK(end->error == channel_errc::closed);
  }
  BOOST_CHECK_EQUAL(full.try_receive().value(), 7);
}

BOOST_AUTO_TEST_CASE(handler_is_never_called_from_within_a_call_to_the_channel) {
  asio::io_context io;
  core::channel<int> ch(1);
  const auto sent = std::make_shared<outcome<int>>();
  const auto received = std::make_shared<outcome<int>>();
  asio::post(io, [&] {
    ch.async_send(1, into_send(io, sent));
    BOOST_CHECK_EQUAL(sent->calls, 0);
    ch.async_receive(into<int>(io, received));
    BOOST_CHECK_EQUAL(received->calls, 0);
  });
  settle(io);
  BOOST_CHECK_EQUAL(sent->calls, 1);
  BOOST_CHECK_EQUAL(received->calls, 1);
  BOOST_CHECK_EQUAL(received->value.value(), 1);
}

BOOST_AUTO_TEST_CASE(item_wakes_one_receiver_once_oldest_first) {
  asio::io_context io;
  core::channel<int> ch(4);
  std::vector<std::shared_ptr<outcome<int>>> ends;
  for (int i = 0; i < 4; ++i) {
    ends.push_back(std::make_shared<outcome<int>>());
    ch.async_receive(into<int>(io, ends.back()));
  }
  for (int i = 0; i < 4; ++i) {
    ch.try_send(i);
    settle(io);
    for (int j = 0; j < 4; ++j) {
      BOOST_CHECK_EQUAL(ends[static_cast<std::size_t>(j)]->calls, j <= i ? 1 : 0);
    }
    BOOST_CHECK_EQUAL(ends[static_cast<std::size_t>(i)]->value.value(), i);
  }
}

BOOST_AUTO_TEST_CASE(batch_receive_wakes_as_many_senders_as_it_made_room_for) {
  asio::io_context io;
  core::channel<int> ch(3);
  for (int i = 0; i < 3; ++i) ch.try_send(i);
  std::vector<std::shared_ptr<outcome<int>>> ends;
  for (int i = 0; i < 5; ++i) {
    ends.push_back(std::make_shared<outcome<int>>());
    ch.async_send(3 + i, into_send(io, ends.back()));
  }
  settle(io);
  std::vector<int> got;
  BOOST_CHECK_EQUAL(ch.try_receive(got, 3), 3U);
  settle(io);
  BOOST_CHECK_EQUAL(ch.waiting_senders(), 2U);
  BOOST_CHECK_EQUAL(ch.try_receive(got, 10), 3U);
  settle(io);
  BOOST_CHECK_EQUAL(ch.try_receive(got, 10), 2U);
  BOOST_TEST(got == (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(waiter_that_lost_the_race_waits_again) {
  asio::io_context io;
  core::channel<int> ch(1);
  const auto end = std::make_shared<outcome<int>>();
  ch.async_receive(into<int>(io, end));
  ch.try_send(1);
  BOOST_CHECK_EQUAL(ch.try_receive().value(), 1);  // before the woken one runs
  settle(io);
  BOOST_CHECK_EQUAL(end->calls, 0);
  ch.try_send(2);
  settle(io);
  BOOST_CHECK_EQUAL(end->calls, 1);
  BOOST_CHECK_EQUAL(end->value.value(), 2);
}

BOOST_AUTO_TEST_CASE(cancelled_receive_takes_nothing) {
  asio::io_context io;
  core::channel<int> ch(1);
  asio::cancellation_signal signal;
  const auto end = std::make_shared<outcome<int>>();
  ch.async_receive(into(io, end, signal.slot()));
  settle(io);
  signal.emit(asio::cancellation_type::terminal);
  BOOST_CHECK_EQUAL(end->calls, 0);
  settle(io);
  BOOST_CHECK_EQUAL(end->calls, 1);
  BOOST_CHECK(end->error == asio::error::operation_aborted);
  BOOST_CHECK(!end->value);
  ch.try_send(5);
  settle(io);
  BOOST_CHECK_EQUAL(end->calls, 1);
  BOOST_CHECK_EQUAL(ch.try_receive().value(), 5);
}

BOOST_AUTO_TEST_CASE(cancelled_batch_receive_takes_nothing) {
  asio::io_context io;
  core::channel<int> ch(1);
  asio::cancellation_signal signal;
  std::vector<int> got;
  int calls = 0;
  ch.async_receive_some(
      got, 3,
      asio::bind_cancellation_slot(
          signal.slot(), asio::bind_executor(io, [&](error_code error, std::size_t taken) {
            ++calls;
            BOOST_CHECK(error == asio::error::operation_aborted);
            BOOST_CHECK_EQUAL(taken, 0U);
          })));
  signal.emit(asio::cancellation_type::total);
  settle(io);
  BOOST_CHECK_EQUAL(calls, 1);
  ch.try_send(5);
  BOOST_CHECK_EQUAL(ch.try_receive().value(), 5);
}

BOOST_AUTO_TEST_CASE(cancelled_send_delivers_nothing) {
  asio::io_context io;
  core::channel<int> ch(1);
  ch.try_send(1);
  asio::cancellation_signal signal;
  const auto end = std::make_shared<outcome<int>>();
  ch.async_send(2, into_send(io, end, signal.slot()));
  settle(io);
  signal.emit(asio::cancellation_type::partial);
  settle(io);
  BOOST_CHECK_EQUAL(end->calls, 1);
  BOOST_CHECK(end->error == asio::error::operation_aborted);
  BOOST_CHECK_EQUAL(ch.try_receive().value(), 1);
  BOOST_CHECK(!ch.try_receive().has_value());
}

BOOST_AUTO_TEST_CASE(operation_woken_before_it_is_cancelled_still_takes_its_item) {
  asio::io_context io;
  core::channel<int> ch(1);
  asio::cancellation_signal signal;
  const auto end = std::make_shared<outcome<int>>();
  ch.async_receive(into(io, end, signal.slot()));
  settle(io);
  ch.try_send(9);
  signal.emit(asio::cancellation_type::terminal);
  settle(io);
  BOOST_CHECK_EQUAL(end->calls, 1);
  BOOST_CHECK(!end->error);
  BOOST_CHECK_EQUAL(end->value.value(), 9);
}

BOOST_AUTO_TEST_CASE(cancellation_between_wake_up_and_retry_is_not_forgotten) {
  asio::io_context io;
  core::channel<int> ch(1);
  asio::cancellation_signal signal;
  const auto end = std::make_shared<outcome<int>>();
  ch.async_receive(into(io, end, signal.slot()));
  settle(io);
  ch.try_send(9);
  BOOST_CHECK_EQUAL(ch.try_receive().value(), 9);
  signal.emit(asio::cancellation_type::terminal);
  settle(io);
  BOOST_CHECK_EQUAL(end->calls, 1);
  BOOST_CHECK(end->error == asio::error::operation_aborted);
}

BOOST_AUTO_TEST_CASE(coroutine_that_is_cancelled_gets_operation_aborted_as_a_value) {
  asio::io_context io;
  core::channel<int> ch(1);
  asio::cancellation_signal signal;
  bool over = false;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        const auto got = co_await ch.receive();
        BOOST_CHECK(got.error() == asio::error::operation_aborted);
      },
      asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr) { over = true; }));
  settle(io);
  BOOST_CHECK_EQUAL(ch.waiting_receivers(), 1U);
  signal.emit(asio::cancellation_type::terminal);
  settle(io);
  BOOST_CHECK(over);
}

BOOST_AUTO_TEST_CASE(repeated_cancelled_receives_on_a_silent_channel_keep_memory_bounded) {
  asio::io_context io;
  core::channel<int> ch(1);
  asio::cancellation_signal signal;
  const auto waiting = std::make_shared<outcome<int>>();
  ch.async_receive(into<int>(io, waiting));
  for (int i = 0; i < 10000; ++i) {
    const auto end = std::make_shared<outcome<int>>();
    ch.async_receive(into(io, end, signal.slot()));
    signal.emit(asio::cancellation_type::terminal);
    settle(io);
    BOOST_REQUIRE_EQUAL(end->calls, 1);
    BOOST_REQUIRE_LE(ch.spent_waiters(), 64U);
  }
  BOOST_CHECK_EQUAL(ch.waiting_receivers(), 1U);
  ch.try_send(3);
  settle(io);
  BOOST_CHECK_EQUAL(waiting->value.value(), 3);
}

BOOST_AUTO_TEST_CASE(suspended_operation_keeps_its_context_running) {
  asio::io_context io;
  core::channel<int> ch(1);
  const auto end = std::make_shared<outcome<int>>();
  ch.async_receive(into<int>(io, end));
  std::thread host([&ch] { ch.try_send(4); });
  io.run();  // returns only because the operation is over
  host.join();
  BOOST_CHECK_EQUAL(end->value.value(), 4);
}

BOOST_AUTO_TEST_CASE(host_thread_talks_to_coroutines_in_the_context) {
  asio::io_context io;
  core::channel<int> requests(2);
  core::channel<int> answers(2);
  constexpr int count = 20000;
  int wrong = 0;
  std::thread host([&] {
    int got = 0;
    int next = 0;
    while (got < count) {
      bool idle = true;
      if (next < count && requests.try_send(int{next}) == send_status::sent) {
        ++next;
        idle = false;
      }
      if (const auto answer = answers.try_receive()) {
        wrong += *answer != got * 2;  // Boost.Test's checks belong to one thread
        ++got;
        idle = false;
      }
      if (idle) std::this_thread::yield();
    }
    requests.close();
  });
  run(io, [&]() -> asio::awaitable<void> {
    for (;;) {
      const auto request = co_await requests.receive();
      if (!request) break;
      const error_code error = co_await answers.send(*request * 2);
      if (error) break;
    }
  });
  host.join();
  BOOST_CHECK_EQUAL(wrong, 0);
}

BOOST_AUTO_TEST_CASE(completion_happens_on_the_associated_executor) {
  asio::io_context io;
  asio::strand<asio::io_context::executor_type> strand(io.get_executor());
  core::channel<int> ch(1);
  bool over = false;
  ch.async_receive(asio::bind_executor(
      strand, [&](error_code, std::optional<int>) { over = strand.running_in_this_thread(); }));
  settle(io);
  ch.try_send(1);
  settle(io);
  BOOST_CHECK(over);
}

BOOST_AUTO_TEST_CASE(context_destroyed_with_suspended_operations_destroys_their_handlers) {
  const auto witness = std::make_shared<outcome<int>>();
  core::channel<int> ch(1);
  core::channel<int> full(1);
  full.try_send(1);
  {
    asio::io_context io;
    ch.async_receive(into<int>(io, witness));
    full.async_send(2, into_send(io, witness));
    asio::co_spawn(
        io,
        [](core::channel<int>& from, std::shared_ptr<outcome<int>> kept) -> asio::awaitable<void> {
          const auto got = co_await from.receive();
          BOOST_CHECK(got.has_value() && kept != nullptr);
        }(ch, witness),
        [](std::exception_ptr) {});
    settle(io);
    BOOST_CHECK_EQUAL(ch.waiting_receivers(), 2U);
    BOOST_CHECK_EQUAL(full.waiting_senders(), 1U);
    BOOST_CHECK_GT(witness.use_count(), 1);
  }
  BOOST_CHECK_EQUAL(witness.use_count(), 1);
  BOOST_CHECK_EQUAL(witness->calls, 0);
  BOOST_CHECK_EQUAL(ch.waiting_receivers(), 0U);
  ch.try_send(3);
  BOOST_CHECK_EQUAL(ch.try_receive().value(), 3);
  BOOST_CHECK_EQUAL(full.try_receive().value(), 1);
  BOOST_CHECK(!full.try_receive().has_value());
}

BOOST_AUTO_TEST_CASE(wake_up_that_dies_with_its_context_goes_to_the_next_waiter) {
  asio::io_context io;
  core::channel<int> ch(1);
  const auto dead = std::make_shared<outcome<int>>();
  const auto alive = std::make_shared<outcome<int>>();
  {
    asio::io_context doomed;
    ch.async_receive(into<int>(doomed, dead));
    ch.async_receive(into<int>(io, alive));
    ch.try_send(6);  // posted to the doomed one, which never runs
  }
  settle(io);
  BOOST_CHECK_EQUAL(dead->calls, 0);
  BOOST_CHECK_EQUAL(alive->calls, 1);
  BOOST_CHECK_EQUAL(alive->value.value(), 6);
}

BOOST_AUTO_TEST_CASE(channel_destroyed_before_its_context_completes_suspended_operations) {
  asio::io_context io;
  const auto end = std::make_shared<outcome<int>>();
  {
    core::channel<int> ch(1);
    ch.async_receive(into<int>(io, end));
  }
  settle(io);
  BOOST_CHECK_EQUAL(end->calls, 1);
  BOOST_CHECK(end->error == channel_errc::closed);
}

BOOST_AUTO_TEST_CASE(type_that_can_only_be_moved_passes_through_every_operation) {
  asio::io_context io;
  core::channel<std::unique_ptr<int>> ch(1);
  run(io, [&]() -> asio::awaitable<void> {
    const error_code first = co_await ch.send(std::make_unique<int>(1));
    BOOST_CHECK(!first);
    auto got = co_await ch.receive();
    BOOST_CHECK_EQUAL(*got.value(), 1);
    ch.try_send(std::make_unique<int>(3));
    std::vector<std::unique_ptr<int>> some;
    const auto taken = co_await ch.receive_some(some, 2);
    BOOST_CHECK_EQUAL(taken.value(), 1U);
    BOOST_CHECK_EQUAL(*some.front(), 3);
  });
}

BOOST_AUTO_TEST_SUITE_END()
