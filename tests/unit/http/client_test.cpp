#include "rw/core/http/client.hpp"

#include "rw/core/http/parser.hpp"
#include "rw/core/stream.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/upstream.hpp"
#include <future>
#include <memory>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(client)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using boost::asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
namespace asio = boost::asio;
using fixture = client_fixture;

constexpr std::string_view good_answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

}  // namespace

BOOST_AUTO_TEST_CASE(requests_share_a_kept_connection) {
  for (const bool http2 : {false, true}) {
    served f(http2);
    for (int i = 0; i < 20; ++i) {
      const auto got = f.ask_client("/" + std::to_string(i), "body");
      BOOST_TEST(!got.error, got.error.message());
      BOOST_TEST(got.answer.status == 200u);
      BOOST_TEST(got.answer.body == "body");
      BOOST_TEST(got.answer.headers.get("x-target") == "/" + std::to_string(i));
    }
    BOOST_TEST(f.opened() == 1);
    BOOST_TEST(f.server.all_rejected() == "");
  }
}

BOOST_AUTO_TEST_CASE(request_with_a_field_of_the_connection_is_refused) {
  for (const bool http2 : {false, true}) {
    served f(http2);
    for (const auto* name : {"host", "Host", "content-length", "Transfer-Encoding", "connection",
                             "Keep-Alive", "proxy-connection", "upgrade"}) {
      request what;
      what.target = "/";
      what.headers.add("accept", "*/*");
      what.headers.add(name, "x");
      BOOST_TEST((f.ask_client(what).error == client_error::field_of_connection), name);
    }
    BOOST_TEST(f.answers.seen == 0);
    BOOST_TEST(!f.ask_client("/").error);
    BOOST_TEST(f.opened() == 1);
  }
}

BOOST_AUTO_TEST_CASE(exchanges_of_http_1_1_use_a_bounded_pool) {
  served f(false, {.connections = 3});
  std::vector<std::future<outcome>> all;
  for (int i = 0; i < 10; ++i) all.push_back(f.begin("/wait", std::to_string(i)));
  BOOST_TEST(eventually([&] { return f.answers.waiting == 3; }));
  BOOST_TEST(f.opened() == 3);
  BOOST_TEST(eventually([&] {
    f.answers.release();
    return f.answers.seen == 10 && f.answers.waiting == 0;
  }));
  for (int i = 0; i < 10; ++i) {
    BOOST_TEST(fixture::end(std::move(all[static_cast<std::size_t>(i)])).answer.body ==
               std::to_string(i));
  }
  BOOST_TEST(f.opened() == 3);
}

BOOST_AUTO_TEST_CASE(exchanges_of_http_2_share_one_connection) {
  served f(true, {.connections = 1, .streams = 50});
  std::vector<std::future<outcome>> all;
  for (int i = 0; i < 70; ++i) all.push_back(f.begin("/wait", std::to_string(i)));
  BOOST_TEST(eventually([&] { return f.answers.waiting == 50; }));
  BOOST_TEST(eventually([&] {
    f.answers.release();
    return f.answers.seen == 70 && f.answers.waiting == 0;
  }));
  for (auto& one : all) BOOST_TEST(!fixture::end(std::move(one)).error);
  BOOST_TEST(f.opened() == 1);
}

BOOST_AUTO_TEST_CASE(retired_connection_ends_in_peace_and_the_next_exchange_has_a_new_one) {
  for (const bool http2 : {false, true}) {
    served f(http2);
    auto waiting = f.begin("/wait", "old");
    BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
    f.here.on_thread([&] { f.used->retire(); });
    BOOST_TEST(f.ask_client("/", "new").answer.body == "new");
    BOOST_TEST(f.opened() == 2);
    f.answers.release();
    BOOST_TEST(fixture::end(std::move(waiting)).answer.body == "old");
    BOOST_TEST(eventually([&] { return f.open() == 1; }));
  }
}

BOOST_AUTO_TEST_CASE(closing_ends_what_is_under_way) {
  for (const bool http2 : {false, true}) {
    served f(http2, {.connections = 1, .streams = 1});
    auto under_way = f.begin("/wait");
    BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
    auto queued = f.begin("/");
    f.here.on_thread([] {});
    f.here.call(f.used->close());
    BOOST_TEST(fixture::end(std::move(under_way)).error.failed());
    BOOST_TEST(fixture::end(std::move(queued)).error == make_error_code(client_error::shut_down));
    BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::shut_down));
    f.answers.release();
  }
}

BOOST_AUTO_TEST_CASE(waiter_that_is_cancelled_leaves_its_connection_to_the_next) {
  for (const bool http2 : {false, true}) {
    served f(http2, {.connections = 1, .streams = 1});
    auto first = f.begin("/wait", "first");
    BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
    asio::cancellation_signal stop;
    auto given_up = asio::co_spawn(f.here.context, exchange_once(f.used.get(), request()),
                                   asio::bind_cancellation_slot(stop.slot(), asio::use_future));
    auto next = f.begin("/", "next");
    f.here.on_thread([&] { stop.emit(asio::cancellation_type::terminal); });
    BOOST_TEST(fixture::end(std::move(given_up)).error == asio::error::operation_aborted);
    f.answers.release();
    BOOST_TEST(fixture::end(std::move(first)).answer.body == "first");
    BOOST_TEST(fixture::end(std::move(next)).answer.body == "next");
  }
}

BOOST_AUTO_TEST_CASE(drained_server_loses_no_exchange) {
  for (const bool http2 : {false, true}) {
    served f(http2);
    auto waiting = f.begin("/wait", "answered");
    BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
    f.server.get().drain();
    f.answers.release();
    BOOST_TEST(fixture::end(std::move(waiting)).answer.body == "answered");
    BOOST_TEST(eventually([&] { return f.server.finished(); }));
    BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::connect));
  }
}

BOOST_AUTO_TEST_CASE(upstream_that_refuses_connections_is_named_so) {
  fixture f;
  std::uint16_t port = 0;
  {
    asio::io_context context;
    port = tcp::acceptor(context, {asio::ip::address_v4::loopback(), 0}).local_endpoint().port();
  }
  f.use(port);
  BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::connect));
  BOOST_TEST(f.here.metric("rw_http_client_connect_errors_total{client=\"test\"}") == 1);
}

BOOST_AUTO_TEST_CASE(name_without_an_address_is_named_so) {
  fixture f;
  f.used = std::make_unique<rw::http::client>(
      f.here.executor(), client_options{"test", "no such host", 1, {}},
      client_environment{*f.transport, f.here.watchdog, f.here.log, f.here.metrics});
  BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::resolve));
}

BOOST_AUTO_TEST_CASE(upstream_that_closes_without_an_response_may_have_taken_the_request) {
  upstream peer(answering(""));
  fixture f;
  f.use(peer.port());
  BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::closed));
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
}

BOOST_AUTO_TEST_CASE(upstream_that_never_responds_is_left_in_time) {
  for (const bool http2 : {false, true}) {
    upstream peer([](tcp::socket& socket, int) { upstream::read_rest(socket); });
    fixture f(http2 ? std::make_unique<h2_transport>() : rw::core::make_plain_transport());
    f.use(peer.port(), {.exchange = milliseconds(100)});
    BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::timed_out));
    BOOST_TEST(eventually([&] { return f.open() == 0; }));
  }
}

BOOST_AUTO_TEST_CASE(response_that_stops_halfway_is_left_in_time) {
  upstream peer([](tcp::socket& socket, int) {
    upstream::read_some(socket);
    upstream::write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
    upstream::read_rest(socket);
  });
  fixture f;
  f.use(peer.port(), {.exchange = milliseconds(100)});
  BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::timed_out));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_http_are_no_response) {
  for (const std::string bytes :
       {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 050 None\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"}) {
    BOOST_TEST_CONTEXT(bytes) {
      upstream peer(answering(bytes));
      fixture f;
      f.use(peer.port());
      BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::protocol));
    }
  }
}

BOOST_AUTO_TEST_CASE(response_that_is_too_large_is_not_read) {
  const std::string chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
  for (const auto& bytes :
       {"HTTP/1.1 200 OK\r\ncontent-length: 300000\r\n\r\n" + std::string(300'000, 'x'),
        "HTTP/1.1 200 OK\r\nx: " + std::string(20'000, 'x'),
        chunked + "50000\r\n" + std::string(0x50000, 'x'),
        chunked + "1;x=" + std::string(100'000, 'x'),
        chunked + "0\r\nx: " + std::string(100'000, 'x')}) {
    BOOST_TEST_CONTEXT(bytes.substr(0, 60)) {
      upstream peer(answering(bytes));
      fixture f;
      f.use(peer.port());
      BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::response_too_large));
    }
  }
}

BOOST_AUTO_TEST_CASE(informational_answers_are_passed_over) {
  upstream peer(
      answering("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" +
                std::string(good_answer)));
  fixture f;
  f.use(peer.port());
  const auto got = f.ask_client("/");
  BOOST_TEST(got.answer.status == 200u);
  BOOST_TEST(got.answer.body == "ok");
}

BOOST_AUTO_TEST_CASE(status_line_may_lack_its_reason_and_the_space_before_it) {
  const std::string last = "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok";
  for (std::size_t piece = 1; piece <= last.size(); ++piece) {
    response into;
    response_parser parser(into, 1024, 1024);
    std::string kept;
    boost::beast::error_code error;
    for (std::size_t at = 0; at < last.size(); at += piece) {
      kept += last.substr(at, piece);
      kept.erase(0, feed_response(parser, kept, error));
      BOOST_TEST(!error, piece << ": " << error.message());
    }
    BOOST_TEST(parser.is_done());
    BOOST_TEST(into.status == 200U);
    BOOST_TEST(into.body == "ok");
  }
  {
    upstream peer(answering("HTTP/1.1 103\r\n\r\n" + last));
    fixture f;
    f.use(peer.port());
    const auto got = f.ask_client("/");
    BOOST_TEST(!got.error, got.error.message());
    BOOST_TEST(got.answer.status == 200U);
    BOOST_TEST(got.answer.body == "ok");
  }
  for (const auto* wrong : {"HTTP/1.1 20\r\n\r\n", "HTTP/1.1  200\r\n\r\n", "HTTP/1.1 2000\r\n\r\n",
                            "HTTP/1.1 abc\r\n\r\n"}) {
    upstream peer(answering(wrong));
    fixture f;
    f.use(peer.port());
    BOOST_TEST(f.ask_client("/").error == make_error_code(client_error::protocol), wrong);
  }
}

BOOST_AUTO_TEST_CASE(response_without_a_length_ends_with_its_connection) {
  upstream peer(answering("HTTP/1.1 200 OK\r\n\r\nto the end"));
  fixture f;
  f.use(peer.port());
  const auto got = f.ask_client("/");
  BOOST_TEST(!got.error, got.error.message());
  BOOST_TEST(got.answer.body == "to the end");
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
}

BOOST_AUTO_TEST_CASE(unused_connection_is_closed) {
  served f(false, {.idle = milliseconds(50)});
  BOOST_TEST(f.ask_client("/", "x").answer.body == "x");
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
  BOOST_TEST(f.ask_client("/", "y").answer.body == "y");
}

// --- HTTP/2 --------------------------------------------------------------------------------------

std::string goaway(std::uint32_t last, std::uint32_t code = 0) {
  return bytes_of({frame::goaway, 0, 0, big_endian(last) + big_endian(code)});
}

BOOST_AUTO_TEST_CASE(streams_beyond_a_goodbye_were_not_processed) {
  upstream peer([](tcp::socket& socket, int) {
    upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}));
    upstream::read_through(socket, "the body");
    upstream::write(socket, goaway(0));
    upstream::read_rest(socket);
  });
  fixture f(std::make_unique<h2_transport>());
  f.use(peer.port());
  BOOST_TEST(f.ask_client("/", "the body").error == make_error_code(client_error::not_processed));
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
}

BOOST_AUTO_TEST_CASE(upstream_hears_how_many_bytes_of_fields_are_kept_for_it) {
  for (const std::uint32_t bytes : {0u, 4096u}) {
    std::string said;
    {
      upstream peer([&](tcp::socket& socket, int) {
        upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}));
        said = upstream::read_some(socket);
      });
      fixture f(std::make_unique<h2_transport>());
      f.use(peer.port(), {.header_table = bytes});
      f.ask_client("/", "x");
    }
    BOOST_TEST(header_table_of(said) == bytes);
  }
}

BOOST_AUTO_TEST_CASE(upstream_that_sends_frames_without_end_is_left_and_told_why) {
  const std::string floods[] = {
      bytes_of({frame::window_update, 0, 0, big_endian(1)}),
      bytes_of({frame::window_update, 0, 1, big_endian(1)}),
      bytes_of({frame::priority, 0, 1, big_endian(0) + '\x10'}),
      bytes_of({frame::settings, 0, 0, {}}), bytes_of({frame::ping, frame::ack, 0, "12345678"}),
      bytes_of({0xfa, 0, 0, "unknown"}), bytes_of({frame::data, frame::end_stream, 3, {}}),
      // 103: informational answers may precede the real one.
      bytes_of({frame::headers, frame::end_headers, 1, hpack({{":status", "103"}})})};
  for (const auto& flood : floods) {
    BOOST_TEST_CONTEXT("type " << static_cast<int>(static_cast<unsigned char>(flood[3]))) {
      std::string said;
      outcome got;
      {
        upstream peer([&](tcp::socket& socket, int) {
          upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}));
          upstream::read_through(socket, "the body");
          std::string all;
          for (int i = 0; i < 2'000; ++i) all += flood;
          upstream::write(socket, all);
          for (std::string bytes = upstream::read_some(socket); !bytes.empty();
               bytes = upstream::read_some(socket)) {
            said += bytes;
          }
        });
        fixture f(std::make_unique<h2_transport>());
        f.use(peer.port());
        got = f.ask_client("/", "the body");
        BOOST_TEST(eventually([&] { return f.open() == 0; }));
      }
      BOOST_TEST(got.error == make_error_code(client_error::protocol), got.error.message());
      BOOST_TEST(said.find(big_endian(0) + big_endian(NGHTTP2_ENHANCE_YOUR_CALM)) !=
                 std::string::npos);
    }
  }
}

asio::awaitable<error_code> post_after_goodbye(rw::http::client* through, std::promise<void>* ready,
                                               std::shared_future<void> said) {
  client_slot slot;
  auto error = co_await through->acquire(slot);
  if (error) co_return error;
  ready->set_value();
  // Held on purpose: the goodbye is to lie in the socket, unread, when the request begins.
  said.wait();
  const request what;
  response answer;
  error = co_await slot.exchange(what, answer);
  co_return error;
}

BOOST_AUTO_TEST_CASE(request_that_the_goodbye_overtook_was_not_processed) {
  std::promise<void> ready;
  std::promise<void> said;
  upstream peer([&](tcp::socket& socket, int) {
    ready.get_future().wait();
    upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}) + goaway(0));
    said.set_value();
    upstream::read_rest(socket);
  });
  fixture f(std::make_unique<h2_transport>());
  f.use(peer.port());
  const auto error =
      f.here.call(post_after_goodbye(f.used.get(), &ready, said.get_future().share()));
  BOOST_TEST(error == make_error_code(client_error::not_processed));
}

BOOST_AUTO_TEST_CASE(goodbye_overtakes_a_request_beside_one_that_goes_on) {
  std::promise<void> read;
  std::promise<void> ready;
  std::promise<void> said;
  upstream peer([&](tcp::socket& socket, int) {
    upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}));
    upstream::read_through(socket, "the first");
    read.set_value();
    ready.get_future().wait();
    upstream::write(socket, goaway(1));
    said.set_value();
    upstream::read_rest(socket);
  });
  fixture f(std::make_unique<h2_transport>());
  f.use(peer.port(), {.exchange = std::chrono::seconds(5)});
  auto first = f.begin("/", "the first");
  read.get_future().wait();
  const auto error =
      f.here.call(post_after_goodbye(f.used.get(), &ready, said.get_future().share()));
  BOOST_TEST(error == make_error_code(client_error::not_processed), error.message());
}

BOOST_AUTO_TEST_CASE(
    stream_that_was_refused_was_not_processed_and_one_that_was_reset_may_have_been) {
  for (const auto& [code, expected] :
       {std::pair{7u, client_error::not_processed}, std::pair{2u, client_error::closed}}) {
    upstream peer([reason = code](tcp::socket& socket, int) {
      upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}));
      upstream::read_through(socket, "the body");
      upstream::write(socket, bytes_of({frame::rst_stream, 0, 1, big_endian(reason)}));
      upstream::read_rest(socket);
    });
    fixture f(std::make_unique<h2_transport>());
    f.use(peer.port());
    const auto got = f.ask_client("/", "the body");
    BOOST_TEST(got.error == make_error_code(expected), got.error.message());
  }
}

BOOST_AUTO_TEST_CASE(stream_that_ends_without_a_final_status_is_no_response) {
  for (const std::string status : {"050", "103", "0", "x", "1000"}) {
    upstream peer([&](tcp::socket& socket, int) {
      upstream::write(socket, bytes_of({frame::settings, 0, 0, {}}));
      upstream::read_through(socket, "the body");
      // HPACK: a literal field whose name is that of the static table's entry 8.
      const std::string block = '\x08' + std::string(1, static_cast<char>(status.size())) + status;
      upstream::write(socket, bytes_of({frame::headers, 5, 1, block}));
      upstream::read_rest(socket);
    });
    fixture f(std::make_unique<h2_transport>());
    f.use(peer.port());
    const auto got = f.ask_client("/", "the body");
    BOOST_TEST(got.error.failed(), status);
  }
}

BOOST_AUTO_TEST_CASE(frames_that_are_none_end_the_connection) {
  upstream peer([](tcp::socket& socket, int) {
    upstream::read_through(socket, "the body");
    upstream::write(socket, "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    upstream::read_rest(socket);
  });
  fixture f(std::make_unique<h2_transport>());
  f.use(peer.port());
  BOOST_TEST(f.ask_client("/", "the body").error == make_error_code(client_error::closed));
  BOOST_TEST(eventually([&] { return f.open() == 0; }));
}

BOOST_AUTO_TEST_SUITE_END()
