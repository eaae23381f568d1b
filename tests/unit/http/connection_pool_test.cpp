// Which connection an exchange takes, when another one is opened, and what may be sent again.

#include "rw/core/http/client.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/upstream.hpp"
#include <atomic>
#include <future>
#include <memory>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(connection_pool)

using namespace rw::http;
using namespace rw::http::test;
using boost::asio::ip::tcp;
using std::chrono::milliseconds;

namespace {

constexpr std::string_view ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Remembers what the sockets were told that it wraps.
class inspecting_transport final : public rw::core::transport {
 public:
  std::unique_ptr<rw::core::stream> wrap(tcp::socket socket) override {
    keep_alive = option(socket, SOL_SOCKET, SO_KEEPALIVE);
    user_timeout = option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT);
    return plain_->wrap(std::move(socket));
  }

  std::atomic<int> keep_alive{0};
  std::atomic<int> user_timeout{0};

 private:
  static int option(tcp::socket& of, int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    ::getsockopt(of.native_handle(), level, name, &value, &size);
    return value;
  }

  std::unique_ptr<rw::core::transport> plain_ = rw::core::make_plain_transport();
};

}  // namespace

BOOST_AUTO_TEST_CASE(client_opens_connections_beyond_those_that_only_finish_their_exchanges) {
  for (const bool http2 : {false, true}) {
    served f(http2, {.connections = 2});
    std::vector<std::future<outcome>> old;
    for (int i = 1; i <= 10; ++i) {
      old.push_back(f.begin("/wait", std::to_string(i)));
      BOOST_TEST(eventually([&] { return f.answers.waiting == i; }));
      f.here.on_thread([&] { f.used->retire(); });
    }
    BOOST_TEST(f.ask_client("/", "new").answer.body == "new");
    BOOST_TEST(f.opened() == 11);
    f.answers.release();
    for (auto& one : old) BOOST_TEST(!client_fixture::end(std::move(one)).error);
    BOOST_TEST(eventually([&] { return f.open() == 1; }));
  }
}

BOOST_AUTO_TEST_CASE(client_waits_when_its_bound_on_all_connections_is_reached) {
  served f(true, {.connections = 2, .all_connections = 3});
  std::vector<std::future<outcome>> old;
  for (int i = 1; i <= 3; ++i) {
    old.push_back(f.begin("/wait"));
    BOOST_TEST(eventually([&] { return f.answers.waiting == i; }));
    f.here.on_thread([&] { f.used->retire(); });
  }
  auto next = f.begin("/", "next");
  f.here.on_thread([] {});
  BOOST_TEST(f.opened() == 3);
  f.answers.release();
  BOOST_TEST(client_fixture::end(std::move(next)).answer.body == "next");
  for (auto& one : old) BOOST_TEST(!client_fixture::end(std::move(one)).error);
}

BOOST_AUTO_TEST_CASE(client_opens_another_http2_connection_when_no_stream_is_left) {
  served f(true, {.connections = 3, .streams = 2});
  std::vector<std::future<outcome>> all;
  for (int i = 0; i < 7; ++i) all.push_back(f.begin("/wait", std::to_string(i)));
  BOOST_TEST(eventually([&] { return f.answers.waiting == 6; }));
  BOOST_TEST(f.opened() == 3);
  BOOST_TEST(eventually([&] {
    f.answers.release();
    return f.answers.seen == 7 && f.answers.waiting == 0;
  }));
  for (auto& one : all) BOOST_TEST(!client_fixture::end(std::move(one)).error);
}

BOOST_AUTO_TEST_CASE(requests_queued_beyond_the_streams_that_the_peer_allows_are_given_back) {
  client_fixture f(std::make_unique<h2_transport>());
  echo answers(f.here.executor());
  running_server server(f.here, *f.transport, answers, {.streams = 3});
  f.use(server.address.port(), {.connections = 1});
  std::vector<std::future<outcome>> all;
  // All of them before the connection exists: a request that comes when the peer's limit is known
  // waits for a free stream instead.
  f.here.on_thread([&] {
    for (int i = 0; i < 10; ++i) all.push_back(f.begin("/wait"));
  });
  BOOST_TEST(eventually([&] { return answers.waiting == 3; }));
  // The other seven were not sent; what waits for a connection gets one that the first three leave.
  int given_back = 0;
  for (auto& one : all) {
    BOOST_TEST(eventually([&] {
      answers.release();
      return one.wait_for(milliseconds(0)) == std::future_status::ready;
    }));
    const auto got = one.get();
    if (got.error == make_error_code(client_error::not_processed))
      ++given_back;
    else
      BOOST_TEST(!got.error, got.error.message());
  }
  BOOST_TEST(given_back == 7);
  f.here.call(f.used->close());
  f.used.reset();
  f.here.stop();
}

BOOST_AUTO_TEST_CASE(response_that_is_the_last_one_ends_its_connection_and_no_other_exchange) {
  for (const bool http2 : {false, true}) {
    served f(http2);
    auto waiting = f.begin("/wait", "long");
    BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
    for (int i = 0; i < 20; ++i) BOOST_TEST(f.ask_client("/last", "x").answer.body == "x");
    BOOST_TEST(f.opened() == (http2 ? 20 : 21));
    BOOST_TEST(f.answers.waiting == 1);
    f.answers.release();
    BOOST_TEST(client_fixture::end(std::move(waiting)).answer.body == "long");
    BOOST_TEST(eventually([&] { return f.open() == (http2 ? 0 : 1); }));
  }
}

BOOST_AUTO_TEST_CASE(client_leaves_a_kept_connection_that_the_peer_closed_without_using_it) {
  std::atomic<int> closed = 0;
  upstream peer(
      [&](tcp::socket& socket, int) {
        upstream::read_some(socket);
        upstream::write(socket, ok);
        socket.close();
        ++closed;
      },
      3);
  client_fixture f;
  f.use(peer.port());
  for (int i = 1; i <= 3; ++i) {
    BOOST_TEST(f.ask_client("/", "body").answer.body == "ok");
    BOOST_TEST(eventually([&] { return closed == i; }));
  }
  BOOST_TEST(f.opened() == 3);
}

BOOST_AUTO_TEST_CASE(client_leaves_a_kept_connection_on_which_an_answer_to_nothing_came) {
  std::atomic<int> unasked = 0;
  upstream peer(
      [&](tcp::socket& socket, int) {
        upstream::read_some(socket);
        upstream::write(socket, std::string(ok));
        upstream::write(socket, "HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n");
        ++unasked;
        upstream::read_rest(socket);
      },
      2);
  client_fixture f;
  f.use(peer.port());
  BOOST_TEST(f.ask_client("/").answer.body == "ok");
  // A request that was sent before would take it for its own.
  BOOST_TEST(eventually([&] { return unasked == 1; }));
  BOOST_TEST(f.ask_client("/").answer.body == "ok");
}

BOOST_AUTO_TEST_CASE(request_that_was_written_before_a_kept_connection_closed_may_be_processed) {
  upstream peer([](tcp::socket& socket, int) {
    upstream::read_some(socket);
    upstream::write(socket, ok);
    upstream::read_through(socket, "the write");
  });
  client_fixture f;
  f.use(peer.port());
  BOOST_TEST(f.ask_client("/").answer.body == "ok");
  BOOST_TEST(f.ask_client("/", "the write").error ==
             make_error_code(client_error::reused_connection_closed));
}

BOOST_AUTO_TEST_CASE(http2_connection_that_closes_under_a_request_may_have_taken_it) {
  for (const bool used_before : {false, true}) {
    upstream peer([used_before](tcp::socket& socket, int) {
      upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}));
      std::uint32_t stream = 1;
      if (used_before) {
        upstream::read_through(socket, "first");
        upstream::write(socket, bytes_of({frame::headers, frame::end_headers | frame::end_stream,
                                          stream, hpack({{":status", "200"}})}));
      }
      upstream::read_through(socket, "the write");
    });
    client_fixture f(std::make_unique<h2_transport>());
    f.use(peer.port());
    if (used_before) BOOST_TEST(!f.ask_client("/", "first").error);
    BOOST_TEST(f.ask_client("/", "the write").error ==
               make_error_code(used_before ? client_error::reused_connection_closed
                                           : client_error::closed));
  }
}

BOOST_AUTO_TEST_CASE(connections_notice_peers_that_vanish) {
  upstream peer(answering(std::string(ok)));
  auto transport = std::make_unique<inspecting_transport>();
  auto& told = *transport;
  client_fixture f(std::move(transport));
  f.use(peer.port());
  BOOST_TEST(f.ask_client("/").answer.body == "ok");
  BOOST_TEST(told.keep_alive == 1);
  BOOST_TEST(told.user_timeout == 60'000);
}

BOOST_AUTO_TEST_CASE(closing_while_a_connection_is_opened_is_no_failure_of_the_upstream) {
  upstream peer([](tcp::socket& socket, int) { upstream::read_rest(socket); });
  client_fixture f;
  // A proxy that never answers keeps the connection from being open.
  f.used = std::make_unique<rw::http::client>(
      f.here.executor(),
      client_options{.name = "test",
                     .host = "upstream.test",
                     .proxy = connect_proxy{.host = "127.0.0.1", .port = peer.port()}},
      client_environment{*f.transport, f.here.watchdog, f.here.log, f.here.metrics});
  auto waiting = f.begin("/");
  f.here.on_thread([] {});
  f.here.call(f.used->close());
  BOOST_TEST(client_fixture::end(std::move(waiting)).error ==
             make_error_code(client_error::shut_down));
  BOOST_TEST(f.here.metric("rw_http_client_connect_errors_total{client=\"test\"}") == 0);
  // Lets the upstream's thread end where the client had not connected yet.
  boost::asio::io_context context;
  tcp::socket other(context);
  boost::system::error_code ignored;
  other.connect({boost::asio::ip::address_v4::loopback(), peer.port()}, ignored);
}

BOOST_AUTO_TEST_SUITE_END()
