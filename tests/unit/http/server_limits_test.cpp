#include "rw/core/stream.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/http/echo.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/host.hpp"
#include "tests/unit/http/wire.hpp"
#include <atomic>
#include <malloc.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// What a server does when a client takes more than its share, for both protocols.
BOOST_AUTO_TEST_SUITE(server_limits)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using std::chrono::milliseconds;

constexpr std::size_t mib = 1u << 20;

/// A server for one protocol on plain sockets, or on the transport that is given.
struct fixture {
  explicit fixture(rw::http::server_limits limits = {}, bool http2 = false)
      : fixture(http2 ? std::make_unique<h2_transport>() : rw::core::make_plain_transport(),
                limits) {}
  fixture(std::unique_ptr<rw::core::transport> over, rw::http::server_limits limits)
      : transport(std::move(over)), server(here, *transport, answers, limits) {}
  ~fixture() { here.stop(); }

  wire connect() { return wire(server.address); }
  h2_wire connect2() { return h2_wire(wire(server.address)); }

  bool opens(std::size_t connections) {
    return eventually([&] { return server.get().open_connections() == connections; });
  }

  host here;
  std::unique_ptr<rw::core::transport> transport;
  echo answers{here.executor()};
  running_server server;
};

/// A request in two parts, with a look of the server at the first one between.
answer ask_in_parts(fixture& f, wire& with, std::string_view request) {
  with.send(request.substr(0, request.size() / 2));
  auto other = f.connect();
  ask(other, post("/other", "x"));
  with.send(request.substr(request.size() / 2));
  return read_answer(with);
}

/// A header block with `count` one-byte fields, `via` without a value (RFC 7541, appendix A).
std::string indexed_block(std::size_t count) {
  return hpack(post_fields("/x")) + std::string(count, '\xbc');
}

double allocated() {
  const auto info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

}  // namespace

// --- memory --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(http2_server_bounds_memory_while_streams_of_one_byte_fields_do_not_end) {
  fixture f({}, true);
  std::vector<h2_wire> clients;
  const auto before = allocated();
  for (int i = 0; i < 6; ++i) {
    clients.push_back(f.connect2());
    clients.back().acknowledge_settings = false;
    for (std::uint32_t id = 1; id < 500; id += 2) {
      clients.back().send({frame::headers, frame::end_headers, id, indexed_block(5'000)});
    }
    // All of it was read: it is acknowledged in order.
    clients.back().send({frame::ping, 0, 0, "12345678"});
    BOOST_TEST(clients.back().read_pongs(1));
  }
  BOOST_TEST(allocated() - before < 64.0 * mib);
}

BOOST_AUTO_TEST_CASE(http2_server_drops_streams_when_unfinished_headers_fill_its_memory) {
  rw::http::server_limits limits;
  limits.buffered_bytes = 2 * mib;
  fixture f(limits, true);
  std::vector<h2_wire> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(f.connect2());
    for (std::uint32_t id = 1; id < 400; id += 2) {
      clients.back().send({frame::headers, frame::end_headers, id, indexed_block(400)});
    }
    clients.back().send({frame::ping, 0, 0, "12345678"});
    BOOST_TEST(clients.back().read_pongs(1));
  }
  BOOST_TEST(f.server.rejected("memory") > 100);
  auto honest = f.connect2();
  BOOST_TEST(honest.ask(1, "/", std::string(20'000, 'x')).status == 200u);
}

BOOST_AUTO_TEST_CASE(http2_server_drops_small_bodies_that_do_not_end_when_they_fill_its_memory) {
  rw::http::server_limits limits;
  limits.buffered_bytes = 2 * mib;
  fixture f(limits, true);
  std::vector<h2_wire> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(f.connect2());
    for (std::uint32_t id = 1; id < 10; id += 2) {
      clients.back().send_headers(id, post_fields("/x"), false);
      clients.back().send({frame::data, 0, id, std::string(12'000, 'x')});
    }
  }
  BOOST_TEST(eventually([&] { return f.server.rejected("memory") > 0; }));
  auto honest = f.connect2();
  BOOST_TEST(honest.ask(1, "/", std::string(20'000, 'x')).status == 200u);
}

BOOST_AUTO_TEST_CASE(http1_server_takes_requests_while_others_announce_large_bodies) {
  rw::http::server_limits limits;
  limits.buffered_bytes = 64 * mib;
  fixture f(limits);
  std::vector<wire> halves;
  for (int i = 0; i < 8; ++i) {
    halves.push_back(f.connect());
    halves.back().send("POST /half HTTP/1.1\r\nhost: t\r\ncontent-length: 8388608\r\n\r\nhalf");
  }
  auto honest = f.connect();
  BOOST_TEST(ask_in_parts(f, honest, post("/", std::string(20'000, 'x'))).status == 200u);
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(http1_server_drops_request_with_least_progress_when_its_memory_is_full) {
  rw::http::server_limits limits;
  limits.buffered_bytes = 3 * mib;
  fixture f(limits);
  const auto request = post("/stuck", std::string(4 * mib, 'x'));
  auto stuck = f.connect();
  stuck.send(std::string_view(request).substr(0, 2'000'000));
  const auto start = f.here.clock.now();
  BOOST_TEST(eventually([&] { return f.here.clock.now() - start > milliseconds(200); }));
  auto honest = f.connect();
  BOOST_TEST(ask(honest, post("/", std::string(2'000'000, 'x'))).status == 200u);
  BOOST_TEST(read_answer(stuck).status == 503u);
  f.server.check_rejected("memory");
  BOOST_TEST(f.here.logged({"request refused", "memory", "\"path\":\"/stuck\"", "127.0.0.1:"}));
}

BOOST_AUTO_TEST_CASE(server_times_out_body_that_comes_below_least_rate) {
  for (const bool http2 : {false, true}) {
    BOOST_TEST_CONTEXT("http2 " << http2) {
      rw::http::server_limits limits;
      limits.body_grace = milliseconds(100);
      limits.body_rate = 100'000;
      fixture f(limits, http2);
      if (http2) {
        auto client = f.connect2();
        client.send_headers(1, post_fields("/slow"), false);
        client.send({frame::data, 0, 1, std::string(10'000, 'x')});
        BOOST_TEST(client.read_answer(1).reset.has_value());
      } else {
        auto client = f.connect();
        client.send("POST /slow HTTP/1.1\r\nhost: t\r\ncontent-length: 20000\r\n\r\n" +
                    std::string(10'000, 'x'));
        BOOST_TEST(read_answer(client).status == 408u);
      }
      f.server.check_rejected("body_timeout");
      BOOST_TEST(f.here.logged({"request refused", "body_timeout", "\"path\":\"/slow\""}));
    }
  }
}

// --- connections ---------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(server_closes_connection_idle_longest_when_another_comes_at_the_limit) {
  rw::http::server_limits limits;
  limits.connections = 2;
  fixture f(limits);
  auto first = f.connect();
  BOOST_TEST(ask(first, post("/", "x")).status == 200u);
  const auto start = f.here.clock.now();
  BOOST_TEST(eventually([&] { return f.here.clock.now() - start > milliseconds(50); }));
  auto second = f.connect();
  BOOST_TEST(ask(second, post("/", "x")).status == 200u);
  auto third = f.connect();
  BOOST_TEST(ask(third, post("/", "x")).status == 200u);
  BOOST_TEST(first.at_end());
  BOOST_TEST(ask(second, post("/", "x")).status == 200u);
  f.server.check_rejected("connections");
  BOOST_TEST(f.here.logged({"connection refused", "connections", "127.0.0.1:"}));
}

BOOST_AUTO_TEST_CASE(server_serves_new_client_while_silent_ones_fill_its_limit) {
  for (const bool http2 : {false, true}) {
    BOOST_TEST_CONTEXT("http2 " << http2) {
      rw::http::server_limits limits;
      limits.connections = 64;
      fixture f(limits, http2);
      std::vector<wire> silent;
      for (int i = 0; i < 64; ++i) silent.push_back(f.connect());
      BOOST_TEST(f.opens(64));
      if (http2) {
        auto client = f.connect2();
        BOOST_TEST(client.ask(1, "/readyz", "x").status == 200u);
      } else {
        auto client = f.connect();
        BOOST_TEST(ask(client, post("/readyz", "x")).status == 200u);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(server_spares_connections_whose_handlers_wait_at_the_limit) {
  rw::http::server_limits limits;
  limits.connections = 2;
  fixture f(limits);
  auto first = f.connect();
  auto second = f.connect();
  first.send(post("/wait", "first"));
  second.send(post("/wait", "second"));
  BOOST_TEST(eventually([&] { return f.answers.waiting == 2; }));
  auto third = f.connect();
  BOOST_TEST(third.at_end());
  f.answers.release();
  BOOST_TEST(read_answer(first).body == "first");
  BOOST_TEST(read_answer(second).body == "second");
  f.server.check_rejected("connections");
}

// --- handshakes ----------------------------------------------------------------------------------

namespace {

/// Streams whose handshake is one byte from the client, and a step that is counted.
class greeting_transport final : public rw::core::transport {
 public:
  std::unique_ptr<rw::core::stream> wrap(boost::asio::ip::tcp::socket socket) override {
    return std::make_unique<greeting>(plain_->wrap(std::move(socket)), steps);
  }

  std::atomic<int> steps{0};

 private:
  class greeting final : public rw::core::stream {
   public:
    greeting(std::unique_ptr<rw::core::stream> plain, std::atomic<int>& steps)
        : plain_(std::move(plain)), steps_(steps) {}
    boost::asio::ip::tcp::socket& socket() noexcept override { return plain_->socket(); }
    rw::core::io_result handshake() override {
      char hello = 0;
      auto got = plain_->read({&hello, 1});
      if (got.bytes > 0) ++steps_;
      return got;
    }
    rw::core::io_result read(std::span<char> into) override { return plain_->read(into); }
    rw::core::io_result write(std::span<const char> from) override { return plain_->write(from); }
    rw::core::io_result shutdown() override { return plain_->shutdown(); }
    std::string_view protocol() const noexcept override { return {}; }
    bool encrypted() const noexcept override { return true; }
    std::string_view peer_certificate() const noexcept override { return {}; }

   private:
    std::unique_ptr<rw::core::stream> plain_;
    std::atomic<int>& steps_;
  };

  std::unique_ptr<rw::core::transport> plain_ = rw::core::make_plain_transport();
};

/// Notes how many steps of handshakes went before the request.
class step_reader final : public handler {
 public:
  explicit step_reader(const std::atomic<int>& steps) : steps_(steps) {}
  std::size_t body_limit(const request&) const override { return 100; }
  boost::asio::awaitable<void> handle(request&, response& into) override {
    into.body = std::to_string(steps_);
    return {};
  }

 private:
  const std::atomic<int>& steps_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(server_closes_oldest_handshake_when_too_many_are_under_way) {
  rw::http::server_limits limits;
  limits.handshakes = 2;
  fixture f(std::make_unique<greeting_transport>(), limits);
  auto established = f.connect();
  established.send("h");
  BOOST_TEST(ask(established, post("/", "x")).status == 200u);
  auto first = f.connect();
  auto second = f.connect();
  BOOST_TEST(f.opens(3));
  auto third = f.connect();
  BOOST_TEST(first.at_end());
  f.server.check_rejected("handshakes");
  third.send("h");
  BOOST_TEST(ask(third, post("/", "x")).status == 200u);
  BOOST_TEST(ask(established, post("/", "x")).status == 200u);
  BOOST_TEST(f.here.logged({"connection refused", "handshakes", "127.0.0.1:"}));
}

BOOST_AUTO_TEST_CASE(server_answers_established_connections_before_handshakes_that_are_ready) {
  host here;
  greeting_transport transport;
  step_reader answers(transport.steps);
  running_server server(here, transport, answers);
  wire established(server.address);
  established.send("h");
  BOOST_TEST(ask(established, post("/", "")).body == "1");
  std::vector<wire> many;
  for (int i = 0; i < 50; ++i) many.emplace_back(server.address);
  BOOST_TEST(eventually([&] { return server.get().open_connections() == 51; }));
  // While the server's thread does this, all of it becomes ready, the request last.
  here.on_thread([&] {
    for (auto& each : many) each.send("h");
    established.send(post("/", ""));
  });
  const auto steps = std::stoi(read_answer(established).body);
  BOOST_TEST(steps <= 3);
  BOOST_TEST(eventually([&] { return transport.steps == 51; }));
  here.stop();
}

// --- refusals ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(http1_server_takes_whole_body_that_it_refuses_before_it_closes) {
  fixture f;
  auto client = f.connect();
  // Sent without a look at the answer, as many clients do: it must not end in a reset.
  BOOST_TEST(client.send(post("/large", std::string(24 * mib, 'x'))));
  const auto got = read_answer(client);
  BOOST_TEST(got.status == 413u);
  BOOST_TEST(got.says("connection: close"));
  BOOST_TEST(client.at_end());
  BOOST_TEST(f.here.logged(
      {"request refused", "body_size", "\"path\":\"/large\"", "\"status\":413", "127.0.0.1:"}));
}

BOOST_AUTO_TEST_CASE(http1_server_takes_what_follows_last_request_before_it_closes) {
  fixture f;
  auto client = f.connect();
  BOOST_TEST(client.send(post("/last", "x", "connection: close\r\n") + std::string(8 * mib, 'x')));
  const auto got = read_answer(client);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.body == "x");
}

// --- handlers that throw -------------------------------------------------------------------------

namespace {

struct broken_source final : body_source {
  state read(std::string&, std::size_t) override { throw std::runtime_error("broken source"); }
  void on_ready(std::function<void()>) override {}
};

/// Throws where its path says.
class thrower final : public handler {
 public:
  std::size_t body_limit(const request& head) const override {
    if (head.target == "/limit") throw std::runtime_error("broken limit");
    return 1000;
  }
  boost::asio::awaitable<void> handle(request& from, response& into) override {
    if (from.target == "/now") throw std::runtime_error("broken handler");
    if (from.target == "/odd") throw 42;
    if (from.target == "/later") return later();
    if (from.target == "/source") into.source = std::make_unique<broken_source>();
    return {};
  }

 private:
  static boost::asio::awaitable<void> later() {
    throw std::runtime_error("broken rest");
    co_return;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(server_answers_500_when_its_handler_throws) {
  for (const bool http2 : {false, true}) {
    BOOST_TEST_CONTEXT("http2 " << http2) {
      host here;
      h2_transport over2;
      const auto over1 = rw::core::make_plain_transport();
      thrower answers;
      running_server server(here, http2 ? static_cast<rw::core::transport&>(over2) : *over1,
                            answers);
      unsigned statuses[4] = {};
      const char* const paths[] = {"/now", "/odd", "/later", "/fine"};
      if (http2) {
        h2_wire client{wire(server.address)};
        for (unsigned i = 0; i < 4; ++i) statuses[i] = client.ask(2 * i + 1, paths[i], "x").status;
        BOOST_TEST(client.ask(11, "/source", "x").reset.has_value());
        BOOST_TEST(client.ask(13, "/limit", "x").status == 413u);
        BOOST_TEST(client.ask(15, "/fine", "x").status == 200u);
      } else {
        wire client(server.address);
        for (unsigned i = 0; i < 4; ++i) statuses[i] = ask(client, post(paths[i], "x")).status;
        wire second(server.address);
        BOOST_TEST(ask(second, post("/limit", "x")).status == 413u);
        ask(client, post("/source", "x"));
        BOOST_TEST(client.at_end());
      }
      const unsigned expected[] = {500, 500, 500, 200};
      BOOST_TEST(statuses == expected, boost::test_tools::per_element());
      BOOST_TEST(eventually([&] { return server.rejected("exception") == 5; }));
      BOOST_TEST(here.logged({"\"path\":\"/later\"", "broken rest"}));
      here.stop();
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
