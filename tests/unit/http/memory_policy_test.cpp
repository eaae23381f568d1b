#include "rw/core/http/memory_policy.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <list>
#include <memory>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(memory_policy)

namespace {

namespace asio = boost::asio;
using rw::http::account;
using std::chrono::milliseconds;

constexpr std::size_t mib = 1u << 20;

/// A connection that does what it is told.
struct owner final : rw::http::account_owner {
  explicit owner(std::shared_ptr<account> own) : entry(std::move(own)) { entry->attach(this); }
  ~owner() {
    if (entry) entry->attach(nullptr);
  }
  void drain() override { ++drained; }
  void drop() override { gone = true; }
  void evict(std::size_t bytes) override {
    gone = true;
    evicted = bytes;
    if (bytes > 0) entry->hold(0, {});
  }

  std::shared_ptr<account> entry;
  std::size_t evicted = 0;
  int drained = 0;
  bool gone = false;
};

struct fixture {
  owner* open(const char* from = "10.0.0.1") {
    auto entry = books.open(context.get_executor(), asio::ip::make_address(from), now);
    run();
    return entry ? &owners.emplace_back(std::move(entry)) : nullptr;
  }
  owner* idle(const char* from = "10.0.0.1") {
    auto* const made = open(from);
    made->entry->enter(account::phase::idle, now);
    return made;
  }
  owner* receive(std::size_t bytes) {
    auto* const made = open();
    made->entry->enter(account::phase::receiving, now);
    made->entry->hold(bytes, now);
    run();
    return made;
  }
  void run() {
    context.restart();
    context.poll();
  }
  void close(owner* which) { which->entry.reset(); }

  asio::io_context context{1};
  rw::core::metrics metrics;
  rw::core::time_point now{std::chrono::hours(1)};
  rw::http::memory_policy books{{.connections = 4, .handshakes = 3, .bytes = 16 * mib},
                                rw::core::make_gauge(metrics, "open", "Connections that are open")};
  std::list<owner> owners;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(policy_drops_most_bytes_without_progress_when_full, fixture) {
  auto* const small_and_old = receive(10'000);
  auto* const large_and_old = receive(8 * mib);
  now += milliseconds(200);
  auto* const fresh = receive(7 * mib);
  BOOST_TEST(!large_and_old->gone);
  fresh->entry->hold(9 * mib, now);
  run();
  BOOST_TEST(large_and_old->gone);
  BOOST_TEST(large_and_old->evicted > 0u);
  BOOST_TEST(!small_and_old->gone);
  BOOST_TEST(!fresh->gone);
  BOOST_TEST(books.held() == 9 * mib + 10'000);
}

BOOST_FIXTURE_TEST_CASE(policy_drops_request_that_outgrows_it_alone, fixture) {
  auto* const only = receive(16 * mib);
  BOOST_TEST(!only->gone);
  only->entry->hold(17 * mib, now);
  run();
  BOOST_TEST(only->gone);
  BOOST_TEST(books.held() == 0u);
}

BOOST_FIXTURE_TEST_CASE(policy_spares_connections_at_work_when_full, fixture) {
  auto* const at_work = receive(15 * mib);
  at_work->entry->enter(account::phase::handling, now);
  now += milliseconds(5'000);
  auto* const fresh = receive(2 * mib);
  BOOST_TEST(!at_work->gone);
  BOOST_TEST(fresh->gone);
}

BOOST_FIXTURE_TEST_CASE(policy_closes_longest_idle_at_connection_limit, fixture) {
  auto* const slow = receive(1'000);
  now += milliseconds(100);
  auto* const oldest = idle();
  now += milliseconds(100);
  auto* const used_again = idle();
  auto* const newest = idle();
  now += milliseconds(100);
  oldest->entry->enter(account::phase::idle, now);
  BOOST_TEST(open() != nullptr);
  BOOST_TEST(used_again->gone);
  BOOST_TEST(used_again->evicted == 0u);
  BOOST_TEST(!slow->gone);
  BOOST_TEST(!oldest->gone);
  BOOST_TEST(!newest->gone);
}

BOOST_FIXTURE_TEST_CASE(policy_closes_unfinished_request_when_no_connection_is_idle, fixture) {
  auto* const stuck = receive(1'000);
  now += milliseconds(100);
  for (int i = 0; i < 3; ++i) receive(1'000);
  BOOST_TEST(open() != nullptr);
  BOOST_TEST(stuck->gone);
}

BOOST_FIXTURE_TEST_CASE(policy_refuses_connection_when_all_are_at_work, fixture) {
  for (int i = 0; i < 4; ++i) idle()->entry->enter(account::phase::handling, now);
  BOOST_TEST(open() == nullptr);
  BOOST_TEST(books.connections() == 4u);
}

BOOST_FIXTURE_TEST_CASE(policy_closes_each_victim_once_while_it_is_closing, fixture) {
  std::vector<owner*> all;
  for (int i = 0; i < 4; ++i) {
    now += milliseconds(100);
    all.push_back(idle());
  }
  open();
  open();
  BOOST_TEST(all[0]->gone);
  BOOST_TEST(all[1]->gone);
  BOOST_TEST(!all[2]->gone);
  close(all[0]);
  close(all[1]);
  BOOST_TEST(books.connections() == 4u);
}

BOOST_FIXTURE_TEST_CASE(policy_closes_oldest_handshake_of_busiest_address_at_its_limit, fixture) {
  auto* const honest = open("10.0.0.2");
  auto* const first = open("10.0.0.66");
  auto* const second = open("10.0.0.66");
  BOOST_TEST(open("10.0.0.3") != nullptr);
  BOOST_TEST(!honest->gone);
  BOOST_TEST(first->gone);
  BOOST_TEST(!second->gone);
}

BOOST_FIXTURE_TEST_CASE(policy_keeps_established_connections_while_handshakes_flood, fixture) {
  auto* const established = idle();
  now += milliseconds(60'000);
  for (int i = 0; i < 20; ++i) {
    for (auto& each : owners) {
      if (each.gone && each.entry) close(&each);
    }
    BOOST_TEST(open("10.0.0.66") != nullptr);
  }
  BOOST_TEST(!established->gone);
}

BOOST_FIXTURE_TEST_CASE(policy_passes_drain_to_every_owner, fixture) {
  auto* const one = idle();
  auto* const two = receive(100);
  books.for_each(&rw::http::account_owner::drain);
  run();
  BOOST_TEST(one->drained == 1);
  BOOST_TEST(two->drained == 1);
}

BOOST_AUTO_TEST_SUITE_END()
