#include "rw/core/resolver.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

BOOST_AUTO_TEST_SUITE(resolver)

namespace {

namespace asio = boost::asio;
using namespace rw::core;
using addresses = std::vector<asio::ip::address>;

constexpr auto patience = std::chrono::seconds(20);

/// A system where names that begin with "dead" keep whoever asks for them until they are let go.
class name_servers {
 public:
  resolved answer(const std::string& host) {
    std::unique_lock lock(guard_);
    ++asked_[host];
    changed_.notify_all();
    if (host.starts_with("dead")) changed_.wait(lock, [&] { return let_go_; });
    if (host == "none") return {{}, "no such name"};
    return {{asio::ip::make_address("192.0.2.1")}, {}};
  }

  int asked(const std::string& host) {
    const std::lock_guard lock(guard_);
    return asked_[host];
  }
  bool await_asked(std::size_t hosts) {
    std::unique_lock lock(guard_);
    return changed_.wait_for(lock, patience, [&] { return asked_.size() >= hosts; });
  }
  void let_go() {
    const std::lock_guard lock(guard_);
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex guard_;
  std::condition_variable changed_;
  std::map<std::string, int> asked_;
  bool let_go_ = false;
};

asio::awaitable<addresses> wait(std::shared_ptr<lookup> what) {
  co_await what->done.wait();
  co_return what->found;
}

struct fixture {
  fixture() {
    asked_of().ask([this](const std::string& host) { return servers.answer(host); });
  }
  ~fixture() {
    servers.let_go();
    work.reset();
    thread.join();
  }

  rw::core::resolver& asked_of() { return rw::core::resolver::of(context.get_executor()); }
  std::shared_ptr<lookup> begin(const std::string& lane, const std::string& host) {
    return asked_of().begin(context.get_executor(), lane, host);
  }
  std::future<addresses> end(std::shared_ptr<lookup> what) {
    return asio::co_spawn(context, wait(std::move(what)), asio::use_future);
  }
  static bool comes(std::future<addresses>& what) {
    return what.wait_for(patience) == std::future_status::ready;
  }

  name_servers servers;
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread{[this] { context.run(); }};
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(name_is_looked_up_and_one_without_addresses_says_why, fixture) {
  auto found = end(begin("a", "good"));
  BOOST_TEST_REQUIRE(comes(found));
  BOOST_TEST(found.get().size() == 1U);
  const auto none = begin("a", "none");
  auto failed = end(none);
  BOOST_TEST_REQUIRE(comes(failed));
  BOOST_TEST(failed.get().empty());
  BOOST_TEST(none->error == "no such name");
}

BOOST_FIXTURE_TEST_CASE(localhost_is_loopback_and_nobody_is_asked, fixture) {
  const addresses loopback{asio::ip::make_address("127.0.0.1"), asio::ip::make_address("::1")};
  for (const auto* name :
       {"localhost", "LocalHost", "localhost.", "a.localhost", "a.b.localhost."}) {
    const auto known = begin("a", name);
    auto found = end(known);
    BOOST_TEST_REQUIRE(comes(found), name);
    BOOST_TEST((found.get() == loopback), name);
    BOOST_TEST(known->error.empty());
    BOOST_TEST(servers.asked(name) == 0);
  }
  for (const auto* name : {"nolocalhost", "localhost.example", ".", "localhost.."}) {
    auto found = end(begin("a", name));
    BOOST_TEST_REQUIRE(comes(found), name);
    BOOST_TEST(servers.asked(name) == 1, name);
  }
}

BOOST_AUTO_TEST_CASE(system_is_asked_for_other_names) {
  asio::io_context context{1};
  const auto failed = rw::core::resolver::of(context.get_executor())
                          .begin(context.get_executor(), "a", "no such name");
  auto got = asio::co_spawn(context, wait(failed), asio::use_future);
  context.run();
  BOOST_TEST(got.get().empty());
  BOOST_TEST(!failed->error.empty());
}

BOOST_FIXTURE_TEST_CASE(names_that_hang_delay_neither_those_beside_them_nor_other_lanes, fixture) {
  std::vector<std::shared_ptr<lookup>> hanging;
  for (std::size_t i = 0; i + 1 < rw::core::resolver::threads; ++i) {
    hanging.push_back(begin("runtimes", "dead" + std::to_string(i)));
  }
  BOOST_TEST_REQUIRE(servers.await_asked(hanging.size()));
  auto beside = end(begin("runtimes", "good"));
  BOOST_TEST(comes(beside));
  // Now the lane is full, and the other one still is not.
  hanging.push_back(begin("runtimes", "dead, too"));
  BOOST_TEST_REQUIRE(servers.await_asked(hanging.size() + 1));
  auto late = end(begin("runtimes", "late"));
  auto other = end(begin("kcp", "good"));
  BOOST_TEST(comes(other));
  BOOST_TEST(servers.asked("late") == 0);
  servers.let_go();
  BOOST_TEST(comes(late));
}

BOOST_FIXTURE_TEST_CASE(host_is_looked_up_once_at_a_time, fixture) {
  auto first = end(begin("a", "dead"));
  BOOST_TEST_REQUIRE(servers.await_asked(1));
  auto second = end(begin("a", "dead"));
  servers.let_go();
  BOOST_TEST(comes(first));
  BOOST_TEST(comes(second));
  BOOST_TEST(second.get().size() == 1U);
  BOOST_TEST(servers.asked("dead") == 1);
  auto third = end(begin("a", "dead"));
  BOOST_TEST(comes(third));
  BOOST_TEST(servers.asked("dead") == 2);
}

BOOST_FIXTURE_TEST_CASE(resolver_skips_a_lookup_abandoned_before_its_start, fixture) {
  std::vector<std::shared_ptr<lookup>> hanging;
  for (std::size_t i = 0; i < rw::core::resolver::threads; ++i) {
    hanging.push_back(begin("a", "dead" + std::to_string(i)));
  }
  BOOST_TEST_REQUIRE(servers.await_asked(hanging.size()));
  begin("a", "unwanted");
  auto last = end(begin("a", "last"));
  servers.let_go();
  BOOST_TEST(comes(last));
  BOOST_TEST(servers.asked("unwanted") == 0);
}

BOOST_FIXTURE_TEST_CASE(beyond_the_bound_a_look_up_is_refused_at_once, fixture) {
  std::vector<std::shared_ptr<lookup>> all;
  for (std::size_t i = 0; i < rw::core::resolver::threads; ++i) {
    all.push_back(begin("a", "dead" + std::to_string(i)));
  }
  BOOST_TEST_REQUIRE(servers.await_asked(all.size()));
  for (std::size_t i = 0; i < rw::core::resolver::waiting; ++i) {
    all.push_back(begin("a", "waits" + std::to_string(i)));
    BOOST_TEST_REQUIRE(all.back()->error.empty());
  }
  const auto refused = begin("a", "one more");
  BOOST_TEST(refused->error == "too many names are being looked up");
  auto ended = end(refused);
  BOOST_TEST(comes(ended));
  auto known = end(begin("a", "dead0"));
  servers.let_go();
  BOOST_TEST(comes(known));
}

BOOST_AUTO_TEST_CASE(look_ups_under_way_end_with_their_context) {
  name_servers servers;
  auto context = std::make_unique<asio::io_context>(1);
  auto& names = rw::core::resolver::of(context->get_executor());
  names.ask([&](const std::string& host) { return servers.answer(host); });
  const auto left = names.begin(context->get_executor(), "a", "dead");
  BOOST_TEST_REQUIRE(servers.await_asked(1));
  BOOST_TEST(names.busy());
  auto gone = std::async(std::launch::async, [&] { context.reset(); });
  servers.let_go();
  BOOST_TEST_REQUIRE((gone.wait_for(patience) == std::future_status::ready));
  BOOST_TEST(left->found.empty());
}

BOOST_AUTO_TEST_SUITE_END()
