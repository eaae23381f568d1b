// Whose connections a context's clients and servers use.

#include "rw/core/network.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/wire.hpp"
#include <stdexcept>

BOOST_AUTO_TEST_SUITE(network)

namespace {

namespace asio = boost::asio;
using namespace rw;
using namespace rw::http;
using namespace rw::http::test;

/// A network without any connections.
class silent_network final : public core::network {
 public:
  asio::awaitable<boost::system::error_code> connect(asio::ip::tcp::socket*,
                                                     asio::ip::tcp::endpoint) override {
    co_return asio::error::network_unreachable;
  }
  boost::system::error_code listen(asio::ip::tcp::acceptor&,
                                   const asio::ip::tcp::endpoint&) override {
    return asio::error::network_unreachable;
  }
};

struct fixture : served {
  fixture() : served(false) {}

  void use_network(core::network* other) { here.call(replace(other)); }
  static asio::awaitable<void> replace(core::network* other) {
    const auto executor = co_await asio::this_coro::executor;
    core::network::replace(executor, other);
  }

  silent_network none;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(client_connects_through_the_network_of_its_context, fixture) {
  use_network(&none);
  BOOST_TEST(ask_client("/").error == make_error_code(client_error::connect));
  BOOST_TEST(used->connect_failure() == "Network is unreachable");
  use_network(nullptr);
  BOOST_TEST(!ask_client("/").error);
}

BOOST_AUTO_TEST_CASE(server_of_both_families_knows_a_client_of_ipv4_by_its_ipv4_address) {
  namespace ip = asio::ip;
  host here;
  const auto transport = core::make_plain_transport();
  std::vector<ip::address> peers;
  struct : handler {
    std::size_t body_limit(const request&) const override { return 100; }
    asio::awaitable<void> handle(request& from, response&) override {
      peers->push_back(from.peer.address.address());
      return {};
    }
    std::vector<ip::address>* peers = nullptr;
  } answers;
  answers.peers = &peers;
  http::server server(here.executor(), {"test", {ip::address_v6::any(), 0}, {}}, answers,
                      {*transport, here.watchdog, here.log, here.metrics});
  here.spawn(server.run());
  const auto port = server.address().port();
  std::vector<ip::address> clients{ip::address_v4::loopback()};
  if (server.address().address().is_v6()) clients.emplace_back(ip::address_v6::loopback());
  for (const auto& address : clients) {
    wire client(ip::tcp::endpoint(address, port));
    BOOST_TEST(ask(client, post("/", "x")).status == 200u);
  }
  here.stop();
  BOOST_TEST(peers == clients);
}

BOOST_AUTO_TEST_CASE(local_addresses_are_known_in_each_of_their_forms) {
  const auto local = [](const char* text) { return core::is_local(asio::ip::make_address(text)); };
  for (const auto* text :
       {"127.0.0.1", "127.255.0.9", "0.0.0.0", "0.1.2.3", "169.254.169.254", "::", "::1", "fe80::1",
        "febf::1", "::ffff:127.0.0.1", "::ffff:169.254.0.1", "::ffff:0.0.0.0", "64:ff9b::127.0.0.1",
        "64:ff9b::169.254.169.254", "64:ff9b:1::127.0.0.1", "64:ff9b:1:a9fe:a9:fe00::"}) {
    BOOST_TEST(local(text), text);
  }
  for (const auto* text :
       {"10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.253.0.1", "128.0.0.1",
        "8.8.8.8", "fd00::1", "fec0::1", "2001:db8::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1",
        "64:ff9b:1:a00:0:100:a00:1", "64:ff9b:1::10.0.0.1", "2001:db8::127.0.0.1"}) {
    BOOST_TEST(!local(text), text);
  }
}

BOOST_FIXTURE_TEST_CASE(server_listens_on_the_network_of_its_context, fixture) {
  use_network(&none);
  BOOST_CHECK_THROW(running_server(here, *transport, answers), std::runtime_error);
  use_network(nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
