#include "rw/k8s/client/client_pool.hpp"

#include "rw/core/metrics.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/run.hpp"
#include <chrono>
#include <memory>
#include <string>

namespace rw::k8s_test {
BOOST_AUTO_TEST_SUITE(client_pool)

namespace asio = boost::asio;
namespace core = rw::core;
using namespace std::chrono_literals;
using rw::test::run;

namespace {

const k8s::client_options named{.user_agent = "test", .field_manager = "test"};

std::string kubeconfig(const std::string& token) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
         "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
         "users: [{name: u, user: {token: " +
         token + "}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n";
}

struct bench {
  ~bench() { run(io, pool.close()); }

  std::shared_ptr<k8s::client> get(const std::string& name, const std::string& token = "t") {
    auto got = pool.get(name, kubeconfig(token));
    BOOST_REQUIRE_MESSAGE(got.has_value(), got.error().message);
    return *got;
  }
  bool given_up(const std::string& reason, int times) {
    const auto series = "rw_client_pool_given_up_total{pool=\"pool\",reason=\"" + reason + "\"} " +
                        std::to_string(times) + "\n";
    return core::expose(numbers).find(series) != std::string::npos;
  }

  asio::io_context io{1};
  core::manual_clock time;
  core::metrics numbers;
  core::logger log{core::log_level::error, [](std::string_view) {}};
  core::watchdog watchdog{time, io.get_executor(), 1s};
  k8s::client_pool pool{
      io.get_executor(),
      {.capacity = 2, .expiry = 1h, .client = named, .local = k8s::local_servers::allowed},
      {time, watchdog, log, numbers}};
};

}  // namespace

BOOST_AUTO_TEST_CASE(cluster_has_one_client) {
  bench b;
  const auto first = b.get("a");
  BOOST_TEST(b.get("a") == first);
  BOOST_TEST(b.get("b") != first);
  BOOST_TEST(b.pool.size() == 2U);
}

BOOST_AUTO_TEST_CASE(client_is_replaced_with_its_kubeconfig) {
  bench b;
  const auto first = b.get("a", "old");
  BOOST_TEST(b.get("a", "new") != first);
  BOOST_TEST(b.given_up("replaced", 1));
  BOOST_TEST(first->configuration().token == "old", "who holds it may go on");
}

BOOST_AUTO_TEST_CASE(client_used_longest_ago_makes_room) {
  bench b;
  const auto a = b.get("a");
  const auto second = b.get("b");
  b.get("a");
  b.get("c");
  BOOST_TEST(b.pool.size() == 2U);
  BOOST_TEST(b.given_up("capacity", 1));
  BOOST_TEST(b.get("a") == a);
  BOOST_TEST(b.get("b") != second);
}

BOOST_AUTO_TEST_CASE(client_is_not_kept_indefinitely_however_much_it_is_used) {
  bench b;
  const auto first = b.get("a");
  for (int i = 0; i < 5; ++i) {
    b.time.advance(10min);
    BOOST_TEST(b.get("a") == first);
  }
  b.time.advance(11min);
  BOOST_TEST(b.get("a") != first);
  BOOST_TEST(b.given_up("expired", 1));
}

BOOST_AUTO_TEST_CASE(evicted_client_is_made_again) {
  bench b;
  const auto first = b.get("a");
  b.pool.evict("a");
  b.pool.evict("a");
  BOOST_TEST(b.given_up("evicted", 1));
  BOOST_TEST(b.get("a") != first);
}

BOOST_AUTO_TEST_CASE(kubeconfig_that_is_no_good_is_an_error_and_ends_the_old_client) {
  bench b;
  b.get("a");
  const auto got = b.pool.get("a", "garbage: [");
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(k8s::errc::not_configured));
  BOOST_TEST(got.error().message.starts_with("kubeconfig of a: "), got.error().message);
  BOOST_TEST(b.pool.size() == 0U);
}

BOOST_AUTO_TEST_CASE(cluster_on_this_machine_is_refused_unless_it_is_allowed) {
  bench b;
  b.pool.set_local(k8s::local_servers::refused);
  const auto got = b.pool.get("a", kubeconfig("t"));
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(k8s::errc::address_refused));
  BOOST_TEST(got.error().message ==
             "context 'c' of a: server 127.0.0.1 is an address of this machine or its link");
  b.pool.set_local(k8s::local_servers::allowed);
  b.get("a");
}

BOOST_AUTO_TEST_CASE(closed_pool_waits_for_clients_in_use) {
  asio::io_context io{1};
  core::manual_clock time;
  core::metrics numbers;
  core::logger log{core::log_level::error, [](std::string_view) {}};
  core::watchdog watchdog{time, io.get_executor(), 1s};
  k8s::client_pool pool{io.get_executor(),
                        {.client = named, .local = k8s::local_servers::allowed},
                        {time, watchdog, log, numbers}};
  auto held = pool.get("a", kubeconfig("t")).value();
  bool closed = false;
  asio::co_spawn(io, pool.close(), [&](std::exception_ptr) { closed = true; });
  io.poll();
  BOOST_TEST(!closed);
  BOOST_TEST(pool.get("a", kubeconfig("t")).error().is(k8s::errc::shut_down));
  held.reset();
  io.restart();
  io.run_for(std::chrono::seconds(20));
  BOOST_TEST(closed);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::k8s_test
