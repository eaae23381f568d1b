#include "rw/core/http/client.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/upstream.hpp"
#include <atomic>
#include <chrono>
#include <memory>
#include <string>

BOOST_AUTO_TEST_SUITE(client_liveness)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using boost::asio::ip::tcp;
using std::chrono::milliseconds;

/// An upstream that answers with a head and then nothing, and to a request with a body with nothing
/// at all.
class quiet_upstream {
 public:
  explicit quiet_upstream(bool answers_ping)
      : answers_ping_(answers_ping), peer_([this](tcp::socket& s, int) { serve(s); }, 2) {}

  std::uint16_t port() const { return peer_.port(); }

  std::atomic<int> pings{0};
  std::atomic<bool> finish{false};  ///< with the next PING

 private:
  void serve(tcp::socket& socket) {
    std::string in;
    read(socket, in, 24);
    upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}));
    bool watched = false;
    for (;;) {
      const auto head = read(socket, in, 9);
      if (head.size() < 9) return;
      const auto payload = read(socket, in, read_big_endian(std::string_view(head).substr(0, 3)));
      const auto stream = read_big_endian(std::string_view(head).substr(5));
      if (head[3] == frame::headers && (head[4] & frame::end_stream) != 0) {
        watched = true;
        upstream::write(socket, bytes_of({frame::headers, frame::end_headers, stream,
                                          hpack({{":status", "200"}})}));
      }
      if (head[3] == frame::ping && (head[4] & frame::ack) == 0) {
        ++pings;
        if (answers_ping_) upstream::write(socket, bytes_of({frame::ping, frame::ack, 0, payload}));
        if (finish && watched)
          upstream::write(socket, bytes_of({frame::data, frame::end_stream, 1, {}}));
      }
    }
  }

  /// Takes `size` bytes; fewer if the client ends.
  static std::string read(tcp::socket& from, std::string& in, std::size_t size) {
    while (in.size() < size) {
      const auto more = upstream::read_some(from);
      if (more.empty()) break;
      in += more;
    }
    const auto taken = in.substr(0, size);
    in.erase(0, taken.size());
    return taken;
  }

  const bool answers_ping_;
  upstream peer_;
};

struct fixture : client_fixture {
  fixture(std::uint16_t port, client_limits limits)
      : client_fixture(std::make_unique<h2_transport>()) {
    use(port, limits);
  }
  std::future<outcome> watch() { return begin("/watch", {}, {.limit = std::chrono::hours(1)}); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(quiet_connection_is_probed_and_kept) {
  quiet_upstream peer(true);
  fixture f(peer.port(), {.ping = milliseconds(30), .ping_response = std::chrono::seconds(10)});
  auto watch = f.watch();
  BOOST_TEST(eventually([&] { return peer.pings >= 5; }));
  peer.finish = true;
  const auto got = client_fixture::end(std::move(watch));
  BOOST_TEST(!got.error, got.error.message());
  BOOST_TEST(f.opened() == 1);
}

BOOST_AUTO_TEST_CASE(connection_without_a_response_to_its_probe_is_closed) {
  quiet_upstream peer(false);
  fixture f(peer.port(), {.ping = milliseconds(50), .ping_response = milliseconds(100)});
  auto watch = f.watch();
  BOOST_TEST(client_fixture::end(std::move(watch)).error ==
             make_error_code(client_error::timed_out));
  BOOST_TEST(peer.pings == 1);
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
}

BOOST_AUTO_TEST_CASE(connection_without_exchanges_is_not_probed) {
  quiet_upstream peer(true);
  fixture f(peer.port(), {.idle = milliseconds(300), .ping = milliseconds(20)});
  auto watch = f.watch();
  BOOST_TEST(eventually([&] { return peer.pings >= 1; }));
  peer.finish = true;
  BOOST_TEST(!client_fixture::end(std::move(watch)).error);
  const int before = peer.pings;
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
  BOOST_TEST(peer.pings <= before + 1);
}

BOOST_AUTO_TEST_CASE(exchange_that_times_out_in_silence_makes_its_connection_suspect) {
  quiet_upstream peer(false);
  fixture f(peer.port(), {.exchange = milliseconds(1000), .ping = {}});
  auto watch = f.watch();
  auto ignored = f.begin("/", "ignored");
  BOOST_TEST(client_fixture::end(std::move(ignored)).error ==
             make_error_code(client_error::timed_out));
  // The next one is not lost on the same connection, and what else was on it is given up.
  auto next = f.watch();
  BOOST_TEST(eventually([&] { return f.opened() == 2; }));
  BOOST_TEST(client_fixture::end(std::move(watch)).error ==
             make_error_code(client_error::timed_out));
  f.here.call(f.used->close());
  BOOST_TEST(client_fixture::end(std::move(next)).error.failed());
}

BOOST_AUTO_TEST_CASE(exchange_that_times_out_harms_no_other_while_the_upstream_lives) {
  quiet_upstream peer(true);
  fixture f(peer.port(), {.exchange = milliseconds(100), .ping = {}});
  auto watch = f.watch();
  const auto ended = [&] { return watch.wait_for(milliseconds(0)) == std::future_status::ready; };
  // The answer to a PING counts as life during the next exchange if it comes after that began, and
  // then no PING follows: so there are more exchanges than PINGs. One that begins before the answer
  // goes on another connection.
  for (int i = 0; i < 50 && !ended(); ++i) {
    auto ignored = f.begin("/", "ignored");
    BOOST_TEST(client_fixture::end(std::move(ignored)).error ==
               make_error_code(client_error::timed_out));
    if (peer.pings >= 3) peer.finish = true;
  }
  BOOST_TEST(peer.pings >= 3);
  const auto got = client_fixture::end(std::move(watch));
  BOOST_TEST(!got.error, got.error.message());
}

BOOST_AUTO_TEST_SUITE_END()
