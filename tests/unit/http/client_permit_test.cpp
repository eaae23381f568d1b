// Guarded exchanges, and the permit that goes while they are on their way.

#include "rw/core/http/client.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/upstream.hpp"
#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <utility>

BOOST_AUTO_TEST_SUITE(client_permit)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using boost::asio::ip::tcp;

/// Open until told otherwise.
class permit final : public send_permit {
 public:
  bool open() const noexcept override { return open_; }
  void set(bool open) { open_ = open; }

 private:
  std::atomic<bool> open_ = true;
};

/// A client that has a permit.
struct permitted : client_fixture {
  explicit permitted(bool http2)
      : client_fixture(http2 ? std::make_unique<h2_transport>()
                             : rw::core::make_plain_transport()) {}

  void use_permit(std::uint16_t port) {
    used = std::make_unique<client>(
        here.executor(), client_options{.name = "test", .host = "127.0.0.1", .port = port},
        client_environment{*transport, here.watchdog, here.log, here.metrics});
  }

  const std::shared_ptr<permit> leave = std::make_shared<permit>();
  const exchange_options guarded{.permit = leave};
};

/// The same with our own server as the upstream.
struct permitted_and_served : permitted {
  explicit permitted_and_served(bool http2) : permitted(http2), server(here, *transport, answers) {
    use_permit(server.address.port());
  }
  ~permitted_and_served() {
    here.call(used->close());
    used.reset();
    here.stop();
  }

  echo answers{here.executor()};
  running_server server;
};

constexpr std::size_t more_than_buffers_hold = std::size_t{64} << 20;

/// Reads until the client closes, and counts.
std::size_t count_rest(tcp::socket& from) {
  std::size_t bytes = 0;
  for (auto more = upstream::read_some(from); !more.empty(); more = upstream::read_some(from)) {
    bytes += more.size();
  }
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(guarded_request_goes_out_while_the_permit_is_open) {
  for (const bool http2 : {false, true}) {
    permitted_and_served f(http2);
    const auto got = client_fixture::end(f.begin("/", "body", f.guarded));
    BOOST_TEST(!got.error, got.error.message());
    BOOST_TEST(got.answer.body == "body");
  }
}

BOOST_AUTO_TEST_CASE(without_the_permit_only_what_is_not_guarded_goes_out_on_the_same_connection) {
  for (const bool http2 : {false, true}) {
    for (const auto* body : {"", "body"}) {
      permitted_and_served f(http2);
      BOOST_TEST(!f.ask_client("/", "warm").error);
      f.leave->set(false);
      auto held_back = f.begin("/", body, f.guarded);
      auto sent = f.begin("/", "sent");
      BOOST_TEST(client_fixture::end(std::move(held_back)).error ==
                 make_error_code(client_error::not_permitted));
      BOOST_TEST(client_fixture::end(std::move(sent)).answer.body == "sent");
      BOOST_TEST(f.answers.seen == 2);
      f.leave->set(true);
      BOOST_TEST(client_fixture::end(f.begin("/", "again", f.guarded)).answer.body == "again");
      if (http2) BOOST_TEST(f.opened() == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(request_has_a_permit_of_its_own) {
  for (const bool http2 : {false, true}) {
    permitted_and_served f(http2);
    BOOST_TEST(!f.ask_client("/", "warm").error);
    const exchange_options others{.permit = std::make_shared<permit>()};
    f.leave->set(false);
    auto held_back = f.begin("/", "a", f.guarded);
    auto sent = f.begin("/", "b", others);
    BOOST_TEST(client_fixture::end(std::move(held_back)).error ==
               make_error_code(client_error::not_permitted));
    BOOST_TEST(client_fixture::end(std::move(sent)).answer.body == "b");
    BOOST_TEST(f.answers.seen == 2);
    if (http2) BOOST_TEST(f.opened() == 1);
  }
}

BOOST_AUTO_TEST_CASE(request_that_is_half_sent_when_the_permit_goes_is_never_completed) {
  for (const bool http2 : {false, true}) {
    std::promise<void> begun;
    std::promise<void> go_on;
    std::promise<std::size_t> read;
    upstream peer([&](tcp::socket& socket, int) {
      const auto largest = big_endian(0x7fffffff);
      std::size_t bytes = 0;
      if (http2) {
        upstream::write(socket, bytes_of({frame::settings, 0, 0, big_endian(4, 2) + largest}));
        upstream::write(socket,
                        bytes_of({frame::window_update, 0, 0, big_endian(0x7fffffff - 65535)}));
        upstream::read_through(socket, std::string(100, 'x'));
      } else {
        bytes = upstream::read_some(socket).size();
      }
      begun.set_value();
      go_on.get_future().wait();
      read.set_value(bytes + count_rest(socket));
    });
    permitted f(http2);
    f.use_permit(peer.port());
    auto under_way = f.begin("/", std::string(more_than_buffers_hold, 'x'), f.guarded);
    begun.get_future().wait();
    f.leave->set(false);
    go_on.set_value();
    BOOST_TEST(client_fixture::end(std::move(under_way)).error ==
               make_error_code(client_error::not_permitted));
    // With HTTP/1.1 only the connection's end can tell that the request is not whole. With HTTP/2 a
    // reset of its stream does, where nothing of it had been gathered for writing.
    if (!http2) BOOST_TEST(eventually([&] { return f.open() == 0; }));
    f.here.call(f.used->close());
    BOOST_TEST(read.get_future().get() < more_than_buffers_hold);
  }
}

BOOST_AUTO_TEST_SUITE_END()
