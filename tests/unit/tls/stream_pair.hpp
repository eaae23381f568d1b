#pragma once

#include "rw/core/stream.hpp"
#include "rw/tls/stream.hpp"
#include "rw/tls/transport.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/pki.hpp"
#include <chrono>
#include <memory>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <utility>

namespace rw::tls::test {

using boost::asio::ip::tcp;

/// Two connected sockets.
inline std::pair<tcp::socket, tcp::socket> connected(boost::asio::io_context& context) {
  tcp::acceptor acceptor(context, {boost::asio::ip::address_v4::loopback(), 0});
  tcp::socket near(context);
  near.connect(acceptor.local_endpoint());
  return {acceptor.accept(), std::move(near)};
}

/// Gives up on a test that does not come to an end.
class deadline {
 public:
  void check() const {
    // No assertion: those are not made for several threads.
    if (std::chrono::steady_clock::now() >= end_) throw std::runtime_error("no end in sight");
  }

 private:
  std::chrono::steady_clock::time_point end_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
};

/// Waits until one of two streams can go on.
inline void wait_for(core::stream& a, core::want wants_a, core::stream& b, core::want wants_b) {
  const auto events = [](core::want wants) -> short {
    return wants == core::want::read ? POLLIN : wants == core::want::write ? POLLOUT : 0;
  };
  pollfd both[] = {{a.socket().native_handle(), events(wants_a), 0},
                   {b.socket().native_handle(), events(wants_b), 0}};
  ::poll(both, 2, 1000);
}

/// A server's and a client's end of one connection.
struct stream_pair {
  std::unique_ptr<core::stream> server;
  std::unique_ptr<core::stream> client;
  core::io_result at_server{};
  core::io_result at_client{};

  stream_pair(boost::asio::io_context& context, core::transport& serving,
              core::transport& connecting) {
    auto [far, near] = connected(context);
    server = serving.wrap(std::move(far));
    client = connecting.wrap(std::move(near));
  }

  stream& tls_server() { return dynamic_cast<stream&>(*server); }
  stream& tls_client() { return dynamic_cast<stream&>(*client); }

  /// Until both ends are done, each in its own way.
  void handshake() {
    const deadline end;
    do {
      end.check();
      at_client = client->handshake();
      at_server = server->handshake();
      // An end that has failed hangs up, as its owner would.
      if (at_client.error) close(*client);
      if (at_server.error) close(*server);
      if (at_client.wants != core::want::nothing && at_server.wants != core::want::nothing) {
        wait_for(*client, at_client.wants, *server, at_server.wants);
      }
    } while (at_client.wants != core::want::nothing || at_server.wants != core::want::nothing);
  }

  /// Handshake that must succeed, and one byte each way, so that tickets have arrived.
  void establish() {
    handshake();
    BOOST_REQUIRE_MESSAGE(!at_server.error, at_server.error.message());
    BOOST_REQUIRE_MESSAGE(!at_client.error, at_client.error.message());
    BOOST_TEST(pass(*client, *server, "a") == "a");
    BOOST_TEST(pass(*server, *client, "b") == "b");
  }

  /// Sends `text` whole, and returns what comes out at the other end.
  static std::string pass(core::stream& from, core::stream& to, std::string_view text) {
    const deadline end;
    std::string out;
    std::string buffer(40'000, '\0');
    std::size_t sent = 0;
    while (out.size() < text.size()) {
      end.check();
      core::io_result written{};
      if (sent < text.size()) {
        written = from.write(text.substr(sent));
        BOOST_REQUIRE_MESSAGE(!written.error, written.error.message());
        sent += written.bytes;
      }
      const auto read = to.read(buffer);
      BOOST_REQUIRE_MESSAGE(!read.error, read.error.message());
      out.append(buffer, 0, read.bytes);
      if (read.wants != core::want::nothing &&
          (written.wants != core::want::nothing || sent == text.size()))
        wait_for(to, read.wants, from, written.wants);
    }
    return out;
  }

  /// What a read at `at` ends in.
  static core::io_result read_end(core::stream& at) {
    const deadline end;
    char buffer[1000];
    for (;;) {
      end.check();
      const auto read = at.read(buffer);
      if (read.error) return read;
      if (read.wants != core::want::nothing) wait_for(at, read.wants, at, read.wants);
    }
  }

  static void close(core::stream& which) {
    boost::system::error_code ignored;
    which.socket().shutdown(boost::asio::socket_base::shutdown_both, ignored);
  }
};

using transport_ptr = std::unique_ptr<core::transport>;

inline transport_ptr serving(server_options options = {}) {
  const auto& pki = the_pki();
  return good(make_server_transport(holding(pki.server, pki.ca.certificate_pem()), options));
}

inline transport_ptr connecting(client_options options = {.server_name = "kcp.example.com"}) {
  return good(make_client_transport(trusting(the_pki().ca.certificate_pem()), options));
}

inline transport_ptr connecting_as(const key_pair& own) {
  return good(make_client_transport(holding(own, the_pki().ca.certificate_pem()),
                                    {.server_name = "kcp.example.com"}));
}

struct loop {
  boost::asio::io_context context{1};
};

inline bool is_openssl(const boost::system::error_code& code) {
  return code.category() == openssl_category();
}

}  // namespace rw::tls::test
