// How a client finds the address of its upstream.

#include "rw/core/http/client.hpp"
#include "rw/core/resolver.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>

BOOST_AUTO_TEST_SUITE(client_names)

namespace {

using namespace rw;
using namespace rw::http;
using namespace rw::http::test;

/// A server that is known as alive.example, and name servers that never answer for dead.example.
struct fixture : client_fixture {
  fixture() : server(here, *transport, answers) {
    core::resolver::of(here.executor()).ask([this](const std::string& host) {
      std::unique_lock lock(guard);
      if (host == "dead.example") changed.wait(lock, [&] { return let_go; });
      if (host == "alive.example") {
        return core::resolved{{boost::asio::ip::make_address("127.0.0.1")}, {}};
      }
      return core::resolved{{}, "no such name"};
    });
  }
  ~fixture() {
    for (const auto& each : made) here.call(each->close());
    made.clear();
    let_names_go();
    here.stop();
  }

  void let_names_go() {
    const std::lock_guard lock(guard);
    let_go = true;
    changed.notify_all();
  }

  client& of(const std::string& name, const std::string& host, std::chrono::milliseconds connect) {
    client_limits limits;
    limits.connect = connect;
    made.push_back(std::make_unique<client>(
        here.executor(), client_options{name, host, server.address.port(), limits},
        client_environment{*transport, here.watchdog, here.log, here.metrics}));
    return *made.back();
  }
  std::future<outcome> get(client& through) {
    request what;
    what.target = "/";
    return boost::asio::co_spawn(here.context, exchange_once(&through, what),
                                 boost::asio::use_future);
  }

  echo answers{here.executor()};
  running_server server;
  std::vector<std::unique_ptr<client>> made;
  std::mutex guard;
  std::condition_variable changed;
  bool let_go = false;
};

constexpr auto ages = std::chrono::milliseconds(std::chrono::hours(1));

}  // namespace

BOOST_FIXTURE_TEST_CASE(dead_name_server_delays_no_look_up_of_others, fixture) {
  auto hangs = get(of("runtimes", "dead.example", ages));
  auto beside = get(of("runtimes", "alive.example", ages));
  auto other = get(of("kcp", "alive.example", ages));
  BOOST_TEST(!client_fixture::end(std::move(beside)).error);
  BOOST_TEST(!client_fixture::end(std::move(other)).error);
  let_names_go();
  BOOST_TEST((client_fixture::end(std::move(hangs)).error == client_error::resolve));
}

BOOST_FIXTURE_TEST_CASE(waiter_for_a_name_waits_no_longer_than_for_a_connection, fixture) {
  auto& late = of("runtimes", "dead.example", std::chrono::milliseconds(50));
  BOOST_TEST((client_fixture::end(get(late)).error == client_error::timed_out));
  BOOST_TEST(late.connect_failure() == "the name can't be resolved in time");
}

BOOST_FIXTURE_TEST_CASE(name_without_addresses_is_reported_with_the_reason, fixture) {
  auto& unknown = of("runtimes", "nobody.example", ages);
  BOOST_TEST((client_fixture::end(get(unknown)).error == client_error::resolve));
  BOOST_TEST(unknown.connect_failure() == "the name can't be resolved: no such name");
}

BOOST_FIXTURE_TEST_CASE(host_that_others_name_leads_to_no_local_address, fixture) {
  for (const auto* host :
       {"alive.example", "127.0.0.1", "::ffff:127.0.0.1", "localhost", "0.0.0.0"}) {
    made.push_back(std::make_unique<client>(
        here.executor(),
        client_options{
            .name = "refuses", .host = host, .port = server.address.port(), .refuse_local = true},
        client_environment{*transport, here.watchdog, here.log, here.metrics}));
    const auto got = client_fixture::end(get(*made.back()));
    BOOST_TEST(got.error == make_error_code(client_error::address_refused),
               host << ": " << got.error.message());
    BOOST_TEST(
        made.back()->connect_failure().ends_with("is an address of this machine or its link"));
  }
  BOOST_TEST(answers.seen == 0);
}

BOOST_FIXTURE_TEST_CASE(local_proxy_of_such_a_host_is_refused_too, fixture) {
  made.push_back(std::make_unique<client>(
      here.executor(),
      client_options{.name = "refuses",
                     .host = "runtime.example",
                     .proxy = connect_proxy{"alive.example", server.address.port()},
                     .refuse_local = true},
      client_environment{*transport, here.watchdog, here.log, here.metrics}));
  const auto got = client_fixture::end(get(*made.back()));
  BOOST_TEST(got.error == make_error_code(client_error::address_refused), got.error.message());
}

BOOST_AUTO_TEST_SUITE_END()
