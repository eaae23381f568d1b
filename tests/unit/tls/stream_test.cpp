#include "rw/tls/stream.hpp"

#include "rw/tls/openssl.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <boost/test/unit_test.hpp>
#include <openssl/err.h>

#include "tests/unit/tls/pki.hpp"
#include "tests/unit/tls/stream_pair.hpp"
#include <csignal>
#include <sys/socket.h>

BOOST_AUTO_TEST_SUITE(stream)

using namespace rw::tls;
using namespace rw::tls::test;
using rw::core::want;

BOOST_FIXTURE_TEST_CASE(large_transfers_arrive_whole_in_both_directions, loop) {
  const auto server = serving();
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
  // Small socket buffers, so that writes are cut short.
  pair.server->socket().set_option(boost::asio::socket_base::send_buffer_size(8192));
  pair.client->socket().set_option(boost::asio::socket_base::send_buffer_size(8192));
  std::string text(3 * 1024 * 1024 + 7, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 + i / 997);
  BOOST_TEST((stream_pair::pass(*pair.client, *pair.server, text) == text));
  BOOST_TEST((stream_pair::pass(*pair.server, *pair.client, text) == text));
}

BOOST_FIXTURE_TEST_CASE(blocked_write_may_be_offered_again_from_another_address, loop) {
  const auto server = serving();
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
  auto block = std::make_unique<std::string>(16'000, 'x');
  rw::core::io_result last{};
  while ((last = pair.client->write(*block)).wants == want::nothing) {
    BOOST_REQUIRE(!last.error);
  }
  BOOST_TEST((last.wants == want::write));
  block = std::make_unique<std::string>(16'000, 'x');
  std::string buffer(32'000, '\0');
  const deadline end;
  while ((last = pair.client->write(*block)).wants != want::nothing) {
    end.check();
    BOOST_REQUIRE(!last.error);
    BOOST_REQUIRE(!pair.server->read(buffer).error);
  }
  BOOST_TEST(!last.error);
  BOOST_TEST(last.bytes > 0U);
}

BOOST_FIXTURE_TEST_CASE(empty_reads_and_writes_do_nothing, loop) {
  const auto server = serving();
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
  BOOST_TEST(!pair.client->write({}).error);
  BOOST_TEST((pair.client->read({}).wants == want::nothing));
  char one = 0;
  BOOST_TEST((pair.server->read({&one, 1}).wants == want::read));
}

BOOST_FIXTURE_TEST_CASE(read_says_drained_only_when_nothing_is_left, loop) {
  const auto server = serving();
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
  for (const auto* record : {"first", "second"}) {
    BOOST_TEST(!pair.client->write(std::string_view(record)).error);
  }
  std::string got;
  char buffer[3];
  const deadline end;
  for (rw::core::io_result last; !last.drained;) {
    end.check();
    last = pair.server->read(buffer);
    BOOST_REQUIRE(!last.error);
    got.append(buffer, last.bytes);
    // Both records came before: it is not said in the middle of one, nor between them.
    if (last.bytes > 0) BOOST_TEST(last.drained == (got == "firstsecond"));
  }
  BOOST_TEST(got == "firstsecond");
  BOOST_TEST((pair.server->read(buffer).wants == want::read));
}

BOOST_FIXTURE_TEST_CASE(close_notify_is_an_orderly_end, loop) {
  const auto server = serving();
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
  const auto done = pair.client->shutdown();
  BOOST_TEST(!done.error);
  BOOST_TEST((done.wants == want::nothing));
  BOOST_TEST(stream_pair::read_end(*pair.server).error == make_error_code(boost::asio::error::eof));
  // The other direction is still open.
  BOOST_TEST(stream_pair::pass(*pair.server, *pair.client, "answer") == "answer");
  BOOST_TEST(!pair.server->shutdown().error);
  BOOST_TEST(stream_pair::read_end(*pair.client).error == make_error_code(boost::asio::error::eof));
}

BOOST_FIXTURE_TEST_CASE(peer_that_vanishes_is_no_orderly_end, loop) {
  const auto server = serving();
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
  pair.client.reset();
  const auto end = stream_pair::read_end(*pair.server);
  BOOST_TEST(end.error == make_error_code(error::stream_truncated));
  // Dead for good, and harmless.
  BOOST_TEST(pair.server->write(std::string_view("x")).error == end.error);
  BOOST_TEST(!pair.server->shutdown().error);
}

BOOST_FIXTURE_TEST_CASE(writing_to_a_reset_connection_raises_no_signal, loop) {
  std::signal(SIGPIPE, SIG_DFL);
  const auto server = serving();
  const auto client = connecting();
  stream_pair pair(context, *server, *client);
  pair.establish();
  pair.client->socket().set_option(boost::asio::socket_base::linger(true, 0));
  pair.client.reset();
  const deadline end;
  rw::core::io_result written{};
  while (!written.error) {
    end.check();
    written = pair.server->write(std::string_view("x"));
  }
  BOOST_TEST((written.error.category() == boost::system::system_category()));
  BOOST_TEST(pair.server->read({}).error == written.error);
}

BOOST_FIXTURE_TEST_CASE(shutting_down_before_the_handshake_is_harmless, loop) {
  const auto server = serving();
  auto [far, near] = connected(context);
  const auto stream = server->wrap(std::move(far));
  BOOST_TEST(!stream->shutdown().error);
  BOOST_TEST(stream->protocol().empty());
  BOOST_TEST(stream->peer_certificate().empty());
}

BOOST_FIXTURE_TEST_CASE(peer_that_hangs_up_in_the_handshake_is_an_error, loop) {
  const auto server = serving();
  auto [far, near] = connected(context);
  const auto stream = server->wrap(std::move(far));
  BOOST_TEST((stream->handshake().wants == want::read));
  near.close();
  wait_for(*stream, want::read, *stream, want::read);
  BOOST_TEST(stream->handshake().error == make_error_code(error::stream_truncated));
}

BOOST_FIXTURE_TEST_CASE(plain_http_on_the_tls_port_is_named_as_such, loop) {
  const auto server = serving();
  auto [far, near] = connected(context);
  const auto stream = server->wrap(std::move(far));
  boost::asio::write(near, boost::asio::buffer(std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  wait_for(*stream, want::read, *stream, want::read);
  const auto done = stream->handshake();
  BOOST_TEST(is_openssl(done.error));
  BOOST_TEST(done.error.message() == "http request");
  BOOST_TEST(ERR_peek_error() == 0UL);
}

BOOST_FIXTURE_TEST_CASE(random_bytes_are_a_clean_error, loop) {
  const auto server = serving();
  auto [far, near] = connected(context);
  const auto stream = server->wrap(std::move(far));
  boost::asio::write(near, boost::asio::buffer(std::string(600, '\x16')));
  wait_for(*stream, want::read, *stream, want::read);
  BOOST_TEST(is_openssl(stream->handshake().error));
}

BOOST_FIXTURE_TEST_CASE(tls_12_client_is_rejected_with_an_alert, loop) {
  const auto server = serving();
  auto [far, near] = connected(context);
  const auto stream = server->wrap(std::move(far));
  near.non_blocking(true);
  const std::unique_ptr<SSL_CTX, openssl_free<&SSL_CTX_free>> old(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_max_proto_version(old.get(), TLS1_2_VERSION);
  const ssl_ptr ssl(SSL_new(old.get()));
  SSL_set_fd(ssl.get(), near.native_handle());
  BOOST_TEST(SSL_connect(ssl.get()) < 0);
  wait_for(*stream, want::read, *stream, want::read);
  const auto done = stream->handshake();
  BOOST_TEST(is_openssl(done.error));
  BOOST_TEST(done.error.message() == "unsupported protocol");
  near.non_blocking(false);
  BOOST_TEST(SSL_connect(ssl.get()) < 0);
  BOOST_TEST(ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
  ERR_clear_error();
}

BOOST_AUTO_TEST_SUITE_END()
