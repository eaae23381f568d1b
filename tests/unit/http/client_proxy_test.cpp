#include "rw/core/http/client.hpp"
#include "rw/core/http/client_connection.hpp"
#include "rw/core/http/tunnel.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/upstream.hpp"
#include "tests/unit/tls/pki.hpp"
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <poll.h>
#include <string>

BOOST_AUTO_TEST_SUITE(client_proxy)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using boost::asio::ip::tcp;
using boost::system::error_code;
using rw::tls::test::good;
using rw::tls::test::the_pki;
using std::chrono::milliseconds;
namespace asio = boost::asio;

/// Reads a request's header.
std::string read_head(tcp::socket& from) {
  std::string head;
  while (head.find("\r\n\r\n") == std::string::npos) {
    const auto more = upstream::read_some(from);
    if (more.empty()) break;
    head += more;
  }
  return head;
}

/// Carries bytes both ways until one end closes.
void relay(tcp::socket& near, tcp::socket& far) {
  for (;;) {
    std::array<pollfd, 2> both{pollfd{near.native_handle(), POLLIN, 0},
                               pollfd{far.native_handle(), POLLIN, 0}};
    ::poll(both.data(), both.size(), -1);
    for (const auto& [ready, from, to] :
         {std::tuple{both[0].revents, &near, &far}, std::tuple{both[1].revents, &far, &near}}) {
      if (ready == 0) continue;
      const auto bytes = upstream::read_some(*from);
      if (bytes.empty()) return;
      upstream::write(*to, bytes);
    }
  }
}

constexpr std::string_view connected = "HTTP/1.1 200 Connection established\r\n\r\n";

/// A client behind a proxy.
struct proxied : client_fixture {
  explicit proxied(std::unique_ptr<rw::core::transport> over = rw::core::make_plain_transport())
      : client_fixture(std::move(over)) {}

  void use_proxy(std::uint16_t proxy, std::string host, std::uint16_t port,
                 client_limits limits = {}, std::string authorization = {}) {
    used = std::make_unique<client>(
        here.executor(),
        client_options{"test", std::move(host), port, limits,
                       connect_proxy{"127.0.0.1", proxy, std::move(authorization)}},
        client_environment{*transport, here.watchdog, log, here.metrics});
  }

  std::atomic<bool> logged_status{false};
  rw::core::logger log{rw::core::log_level::debug, [this](std::string_view line) {
                         if (line.find("it answers 407") != std::string_view::npos) {
                           logged_status = true;
                         }
                       }};
};

}  // namespace

BOOST_AUTO_TEST_CASE(tls_runs_through_the_tunnel_and_is_checked_for_the_upstream) {
  const auto& pki = the_pki();
  for (const auto* alpn : {"h2", "http/1.1"}) {
    proxied f(
        good(rw::tls::make_client_transport(rw::tls::test::trusting(pki.ca.certificate_pem()),
                                            {.server_name = "kcp.example.com", .alpn = {alpn}})));
    const auto over = good(rw::tls::make_server_transport(rw::tls::test::holding(pki.server)));
    echo answers{f.here.executor()};
    running_server server(f.here, *over, answers);
    std::string asked;
    upstream proxy([&](tcp::socket& socket, int) {
      asked = read_head(socket);
      asio::io_context context;
      tcp::socket far(context);
      far.connect(server.address);
      upstream::write(socket, connected);
      relay(socket, far);
    });
    f.use_proxy(proxy.port(), "kcp.example.com", 443, {}, "Basic dTpw");
    BOOST_TEST(f.ask_client("/", "through").answer.body == "through");
    BOOST_TEST(f.ask_client("/", "again").answer.body == "again");
    BOOST_TEST(asked ==
               "CONNECT kcp.example.com:443 HTTP/1.1\r\nhost: kcp.example.com:443\r\n"
               "proxy-authorization: Basic dTpw\r\n\r\n");
    BOOST_TEST(f.opened() == 1);
    f.here.call(f.used->close());
    f.used.reset();
    f.here.stop();
  }
}

BOOST_AUTO_TEST_CASE(ipv6_upstream_is_named_in_brackets) {
  std::string asked;
  {
    upstream proxy([&](tcp::socket& socket, int) {
      asked = read_head(socket);
      upstream::write(socket, std::string("HTTP/1.1 102 Processing\r\n\r\n").append(connected));
      upstream::read_through(socket, "body");
      upstream::write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
      upstream::read_rest(socket);
    });
    proxied f;
    f.use_proxy(proxy.port(), "2001:db8::1", 80);
    BOOST_TEST(f.ask_client("/", "body").answer.body == "ok");
  }
  BOOST_TEST(asked == "CONNECT [2001:db8::1]:80 HTTP/1.1\r\nhost: [2001:db8::1]:80\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(proxy_that_refuses_is_named_so_with_its_status_in_the_log) {
  upstream proxy([&](tcp::socket& socket, int) {
    read_head(socket);
    upstream::write(socket,
                    "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 4\r\n\r\nwho?");
    upstream::read_rest(socket);
  });
  proxied f;
  f.use_proxy(proxy.port(), "upstream.test", 443);
  BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::proxy));
  BOOST_TEST(f.logged_status);
  BOOST_TEST(f.here.metric("rw_http_client_connect_errors_total{client=\"test\"}") == 1);
}

BOOST_AUTO_TEST_CASE(tunnel_opens_by_forms_that_other_clients_take) {
  for (const auto& head : {std::string("HTTP/1.1 200\r\n\r\n"), std::string("HTTP/1.0 200 OK\n\n"),
                           std::string("HTTP/1.1 200 OK\nvia: x\n\r\n"),
                           std::string("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 \r\n\r\n"),
                           "HTTP/1.1 200 OK\r\nx: " + std::string(20'000, 'x') + "\r\n\r\n"}) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, head.size()}) {
      tunnel_reader reader(64 * 1024);
      tunnel_result into;
      bool over = false;
      for (std::size_t at = 0; at < head.size(); at += piece) {
        BOOST_TEST(!over);
        over = reader.take(std::string_view(head).substr(at, piece), into);
      }
      BOOST_TEST(over);
      BOOST_TEST(into.open, head.substr(0, 40) << ": " << into.cause);
    }
  }
}

BOOST_AUTO_TEST_CASE(malformed_response_opens_no_tunnel) {
  for (const auto& bytes :
       {std::string("SSH-2.0-OpenSSH_9.2\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\n"),
        std::string(connected) + "and more", "HTTP/1.1 200 OK\r\nx: " + std::string(70'000, 'x'),
        std::string("HTTP/1.1 2x0 OK\r\n\r\n"), std::string("HTTP/1.1\r\n\r\n"),
        std::string("HTTP/1.1 099 x\r\n\r\n")}) {
    BOOST_TEST_CONTEXT(bytes.substr(0, 40)) {
      upstream proxy(answering(bytes));
      proxied f;
      f.use_proxy(proxy.port(), "upstream.test", 443);
      BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::proxy));
    }
  }
  // Informational answers without end are no answer either.
  upstream proxy([&](tcp::socket& socket, int) {
    read_head(socket);
    while (upstream::write(socket, "HTTP/1.1 102 Processing\r\n\r\n")) {
    }
  });
  proxied f;
  f.use_proxy(proxy.port(), "upstream.test", 443);
  BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::proxy));
}

BOOST_AUTO_TEST_CASE(proxy_that_is_silent_is_left_in_time) {
  upstream proxy([&](tcp::socket& socket, int) { upstream::read_rest(socket); });
  proxied f;
  f.use_proxy(proxy.port(), "upstream.test", 443, {.connect = milliseconds(100)});
  BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::timed_out));
}

BOOST_AUTO_TEST_CASE(proxy_that_is_not_there_is_named_so) {
  std::uint16_t port = 0;
  {
    asio::io_context context;
    port = tcp::acceptor(context, {asio::ip::address_v4::loopback(), 0}).local_endpoint().port();
  }
  proxied f;
  f.use_proxy(port, "upstream.test", 443);
  BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::connect));
}

BOOST_AUTO_TEST_CASE(host_field_names_the_port_unless_it_is_the_schemes_own) {
  const auto named = [](std::string host, std::uint16_t port, bool encrypted) {
    return authority({"test", std::move(host), port}, encrypted);
  };
  BOOST_TEST(named("a.test", 443, true) == "a.test");
  BOOST_TEST(named("a.test", 443, false) == "a.test:443");
  BOOST_TEST(named("a.test", 80, false) == "a.test");
  BOOST_TEST(named("127.0.0.1", 8080, false) == "127.0.0.1:8080");
  BOOST_TEST(named("::1", 6443, true) == "[::1]:6443");
}

BOOST_AUTO_TEST_SUITE_END()
