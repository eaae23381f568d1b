#include <boost/test/unit_test.hpp>

#include "tests/unit/http/echo.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/host.hpp"
#include <memory>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(server_http2)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using std::chrono::milliseconds;

server_limits small_limits() {
  server_limits limits;
  limits.header = limits.body = limits.write = limits.linger = milliseconds(200);
  return limits;
}

/// A server for HTTP/2 on plain sockets.
struct fixture {
  explicit fixture(server_limits limits = {}) : server(here, transport, answers, limits) {}
  ~fixture() { here.stop(); }

  h2_wire connect(std::string settings = {}) {
    return h2_wire(wire(server.address), std::move(settings));
  }

  /// Whatever happened before, the next client is served.
  void check_good_request() {
    auto next = connect();
    const auto got = next.ask(1, "/next", "good");
    BOOST_TEST(got.status == 200u);
    BOOST_TEST(got.body == "good");
  }

  /// The connection of `client` comes to its end, counted once as `reason`.
  void check_ended(h2_wire& client, const std::string& reason) {
    BOOST_TEST(client.read_end());
    client.raw().finish();  // the server waits for that
    server.check_rejected(reason);
    BOOST_TEST(server.is_left_alone());
    check_good_request();
  }

  /// One stream was refused, counted once as `reason`; its connection goes on.
  void check_refused(h2_wire& client, const h2_answer& got, unsigned status,
                     const std::string& reason) {
    BOOST_TEST(got.status == status);
    BOOST_TEST(!got.body.empty());
    BOOST_TEST(answers.last_refused == status);
    server.check_rejected(reason);
    BOOST_TEST(client.ask(101, "/same", "good").body == "good");
    check_good_request();
  }

  host here;
  h2_transport transport;
  echo answers{here.executor()};
  running_server server;
};

frame headers_frame(std::uint32_t stream, const field_list& fields, bool end_stream = true) {
  return {frame::headers,
          static_cast<std::uint8_t>(frame::end_headers | (end_stream ? frame::end_stream : 0)),
          stream, hpack(fields)};
}

}  // namespace

BOOST_AUTO_TEST_CASE(requests_are_answered_one_after_another) {
  fixture f;
  auto client = f.connect();
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto target = "/" + std::to_string(i);
    const auto got = client.ask(2 * i + 1, target, "body of " + target);
    BOOST_TEST(got.status == 200u);
    BOOST_TEST(got.fields.at("x-target") == target);
    BOOST_TEST(got.fields.at("content-length") == std::to_string(got.body.size()));
    BOOST_TEST(got.body == "body of " + target);
  }
  BOOST_TEST(f.server.requests("h2") == 50);
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(many_streams_are_open_at_once) {
  fixture f;
  auto client = f.connect();
  for (std::uint32_t i = 0; i < 250; ++i) client.send_post(2 * i + 1, "/wait", std::to_string(i));
  BOOST_TEST(eventually([&] { return f.answers.waiting == 250; }));
  f.answers.release();
  for (std::uint32_t i = 0; i < 250; ++i) {
    BOOST_TEST(client.read_answer(2 * i + 1).body == std::to_string(i));
  }
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(stream_is_answered_while_another_waits) {
  fixture f;
  auto client = f.connect();
  client.send_post(1, "/wait", "first");
  BOOST_TEST(client.ask(3, "/", "second").body == "second");
  f.answers.release();
  BOOST_TEST(client.read_answer(1).body == "first");
}

BOOST_AUTO_TEST_CASE(body_of_8_mib_goes_through_the_windows) {
  fixture f;
  auto client = f.connect();
  const std::string body(8u << 20, 'x');
  const auto got = client.ask(1, "/large", body);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST((got.body == body));
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(response_to_head_has_a_length_and_no_body) {
  fixture f;
  auto client = f.connect();
  client.send_headers(
      1, {{":method", "HEAD"}, {":scheme", "https"}, {":path", "/big"}, {":authority", "t"}}, true);
  const auto got = client.read_answer(1);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.fields.at("content-length") == "16777216");
  BOOST_TEST(got.body.empty());
  BOOST_TEST(got.complete);
}

BOOST_AUTO_TEST_CASE(header_in_pieces_and_trailers_are_understood) {
  fixture f;
  auto client = f.connect();
  const auto block = hpack(post_fields("/pieces"));
  client.send({frame::headers, 0, 1, block.substr(0, 5)});
  client.send({frame::continuation, 0, 1, block.substr(5, 7)});
  client.send({frame::continuation, frame::end_headers, 1, block.substr(12)});
  client.send({frame::data, 0, 1, "body"});
  client.send_headers(1, {{"x-trailer", "passed over"}}, true);
  const auto got = client.read_answer(1);
  BOOST_TEST(got.fields.at("x-target") == "/pieces");
  BOOST_TEST(got.body == "body");
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(drain_says_goodbye_and_serves_open_streams) {
  fixture f;
  auto idle = f.connect();
  BOOST_TEST(idle.ask(1, "/", "x").status == 200u);
  auto client = f.connect();
  client.send_post(1, "/wait", "answered");
  client.send_headers(3, post_fields("/half"), false);
  BOOST_TEST(client.ask(5, "/", "x").status == 200u);
  f.server.get().drain();
  BOOST_TEST(idle.read_goaway().value_or(99) == 0u);
  BOOST_TEST(idle.read_end());
  BOOST_TEST(client.read_goaway().value_or(99) == 0u);
  client.send_body(3, "answered too");
  BOOST_TEST(client.read_answer(3).body == "answered too");
  BOOST_TEST(!f.server.finished());
  f.answers.release();
  BOOST_TEST(client.read_answer(1).body == "answered");
  BOOST_TEST(client.read_end());
  BOOST_TEST(eventually([&] { return f.server.finished(); }));
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(released_connection_says_goodbye_with_its_next_response) {
  fixture f;
  auto client = f.connect();
  client.send_post(1, "/wait", "answered");
  BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
  f.server.get().release_connections();
  BOOST_TEST(client.ask(3, "/", "x").status == 200u);
  BOOST_TEST(client.read_goaway().value_or(99) == 0u);
  f.answers.release();
  BOOST_TEST(client.read_answer(1).body == "answered");
  BOOST_TEST(client.read_end());
  auto next = f.connect();
  BOOST_TEST(next.ask(1, "/", "y").status == 200u);
}

BOOST_AUTO_TEST_CASE(server_that_is_cancelled_ends_its_handlers) {
  fixture f;
  auto idle = f.connect();
  auto client = f.connect();
  for (std::uint32_t id = 1; id < 20; id += 2) client.send_post(id, "/wait", "never answered");
  BOOST_TEST(eventually([&] { return f.answers.waiting == 10; }));
  f.here.stop();
  BOOST_TEST(idle.read_end());
  BOOST_TEST(client.read_end());
  BOOST_TEST(f.answers.waiting == 0);
}

BOOST_AUTO_TEST_CASE(client_that_vanishes_while_handlers_wait_is_counted_and_they_are_ended) {
  fixture f;
  auto client = f.connect();
  for (std::uint32_t id = 1; id < 20; id += 2) client.send_post(id, "/wait", "x");
  BOOST_TEST(eventually([&] { return f.answers.waiting == 10; }));
  client.raw().vanish();
  f.server.check_rejected("vanished");
  BOOST_TEST(f.server.is_left_alone());
  BOOST_TEST(f.answers.waiting == 0);
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(client_that_vanishes_in_the_middle_of_its_response_is_counted) {
  fixture f;
  auto client = f.connect();
  client.send_post(1, "/big", "");
  BOOST_TEST(client.raw().fill(60'000));
  client.raw().vanish();
  f.server.check_rejected("vanished");
  BOOST_TEST(f.server.is_left_alone());
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(stream_that_is_reset_while_its_handler_waits_is_forgotten) {
  fixture f;
  auto client = f.connect();
  client.send_post(1, "/wait", "x");
  BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
  client.send({frame::rst_stream, 0, 1, big_endian(8)});
  BOOST_TEST(client.ask(3, "/", "y").body == "y");
  f.answers.release();
  BOOST_TEST(eventually([&] { return f.answers.waiting == 0; }));
  BOOST_TEST(client.ask(5, "/", "z").body == "z");
}

// --- floods --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(rapid_resets_end_the_connection) {
  fixture f;
  auto client = f.connect();
  std::string all;
  for (std::uint32_t id = 1; id < 10'000; id += 2) {
    all += bytes_of(headers_frame(id, post_fields("/x"))) +
           bytes_of({frame::rst_stream, 0, id, big_endian(8)});
  }
  client.raw().send(all);
  f.check_ended(client, "flood");
  BOOST_TEST(f.answers.seen < 3'000);
}

BOOST_AUTO_TEST_CASE(rapid_resets_of_streams_whose_handlers_wait_end_the_connection) {
  fixture f;
  auto client = f.connect();
  std::string all;
  for (std::uint32_t id = 1; id < 10'000; id += 2) {
    all += bytes_of(headers_frame(id, post_fields("/wait"))) +
           bytes_of({frame::rst_stream, 0, id, big_endian(8)});
  }
  client.raw().send(all);
  f.check_ended(client, "flood");
  BOOST_TEST(f.answers.waiting == 0);
  BOOST_TEST(f.answers.seen <= 501);
}

BOOST_AUTO_TEST_CASE(flood_of_continuations_ends_the_connection) {
  fixture f;
  auto client = f.connect();
  std::string all = bytes_of({frame::headers, frame::end_stream, 1, hpack(post_fields("/x"))});
  for (int i = 0; i < 10'000; ++i) all += bytes_of({frame::continuation, 0, 1, {}});
  client.raw().send(all);
  f.check_ended(client, "flood");
}

BOOST_AUTO_TEST_CASE(flood_of_pings_ends_the_connection) {
  fixture f;
  auto client = f.connect();
  std::string all;
  for (int i = 0; i < 20'000; ++i) all += bytes_of({frame::ping, 0, 0, "12345678"});
  client.raw().send(all);
  f.check_ended(client, "flood");
}

BOOST_AUTO_TEST_CASE(few_pings_are_answered) {
  fixture f;
  auto client = f.connect();
  for (int i = 0; i < 50; ++i) client.send({frame::ping, 0, 0, "12345678"});
  BOOST_TEST(client.read_pongs(50));
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(flood_of_settings_ends_the_connection) {
  fixture f;
  auto client = f.connect();
  std::string all;
  for (int i = 0; i < 20'000; ++i) all += bytes_of({frame::settings, 0, 0, setting(4, 65'535)});
  client.raw().send(all);
  f.check_ended(client, "flood");
}

BOOST_AUTO_TEST_CASE(flood_of_empty_data_frames_ends_the_connection) {
  fixture f;
  auto client = f.connect();
  std::string all = bytes_of(headers_frame(1, post_fields("/x"), false));
  for (int i = 0; i < 20'000; ++i) all += bytes_of({frame::data, 0, 1, {}});
  client.raw().send(all);
  f.check_ended(client, "flood");
}

BOOST_AUTO_TEST_CASE(flood_of_priorities_ends_the_connection) {
  fixture f;
  auto client = f.connect();
  std::string all;
  for (int i = 0; i < 20'000; ++i) {
    all += bytes_of({frame::priority, 0, 1, big_endian(0) + std::string(1, '\x10')});
  }
  client.raw().send(all);
  f.check_ended(client, "flood");
}

BOOST_AUTO_TEST_CASE(frames_that_carry_nothing_end_the_connection_and_it_is_told_why) {
  const std::pair<std::string, int> floods[] = {
      {bytes_of({frame::window_update, 0, 0, big_endian(1)}), 6},
      {bytes_of({frame::priority, 0, 1, big_endian(0) + std::string(1, '\x10')}), 201},
      {bytes_of({0xfa, 0xff, 7, "unknown"}), 2'000},
      // nghttp2 tells nothing of these.
      {bytes_of({frame::data, frame::end_stream, 1, {}}), 1'010},
      {bytes_of({frame::data, 0, 1, "x"}), 25'000},
      {bytes_of({frame::window_update, 0, 1, big_endian(1)}), 20}};
  for (const auto& [bytes, count] : floods) {
    BOOST_TEST_CONTEXT("type " << static_cast<int>(static_cast<unsigned char>(bytes[3]))) {
      fixture f;
      auto client = f.connect();
      BOOST_TEST(client.ask(1, "/", "x").body == "x");
      std::string all;
      for (int i = 0; i < count + 20; ++i) all += bytes;
      client.raw().send(all);
      BOOST_TEST(client.read_goaway().value_or(99) == NGHTTP2_ENHANCE_YOUR_CALM);
      f.check_ended(client, "flood");
    }
  }
}

BOOST_AUTO_TEST_CASE(header_bomb_is_rejected_and_ends_the_connection) {
  fixture f;
  auto client = f.connect();
  // One field of 4000 bytes goes into the dynamic table, then one byte each repeats it.
  auto block = hpack(post_fields("/bomb")) + '\x40' + hpack_text("x-bomb") +
               hpack_text(std::string(3'900, 'x'));
  block += std::string(16'000 - block.size(), '\xbe');
  client.send({frame::headers, frame::end_headers | frame::end_stream, 1, block});
  BOOST_TEST(client.read_end());
  BOOST_TEST(eventually([&] { return f.server.rejected("flood") == 1; }));
  BOOST_TEST(f.server.rejected("header_size") == 1);
  BOOST_TEST(f.answers.seen == 0);
  f.check_good_request();
}

// --- limits --------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(header_that_is_too_large_is_rejected) {
  fixture f;
  auto client = f.connect();
  const std::string large(12'000, 'x');
  const auto block = hpack(post_fields("/h", {{"x-1", large}, {"x-2", large}}));
  client.send({frame::headers, frame::end_stream, 1, block.substr(0, 16'000)});
  client.send({frame::continuation, frame::end_headers, 1, block.substr(16'000)});
  f.check_refused(client, client.read_answer(1), 431, "header_size");
}

BOOST_AUTO_TEST_CASE(server_refuses_method_that_is_longer_than_any) {
  fixture f;
  auto client = f.connect();
  auto fields = post_fields("/h");
  fields.front().second = std::string(4'000, 'M');
  client.send({frame::headers, frame::end_headers | frame::end_stream, 1, hpack(fields)});
  f.check_refused(client, client.read_answer(1), 501, "malformed");
}

BOOST_AUTO_TEST_CASE(body_that_claims_9_mib_is_rejected_before_it_is_sent) {
  fixture f;
  auto client = f.connect();
  client.send_headers(1, post_fields("/large", {{"content-length", "9437184"}}), false);
  f.check_refused(client, client.read_answer(1), 413, "body_size");
}

BOOST_AUTO_TEST_CASE(body_of_9_mib_is_rejected_when_it_outgrows_the_limit) {
  fixture f;
  auto client = f.connect();
  const auto got = client.ask(1, "/large", std::string(9u << 20, 'x'));
  f.check_refused(client, got, 413, "body_size");
}

BOOST_AUTO_TEST_CASE(bodies_beyond_the_memory_that_is_granted_are_refused) {
  server_limits limits;
  limits.buffered_bytes = 3u << 20;
  fixture f(limits);
  auto client = f.connect();
  const std::string half(1u << 20, 'x');
  client.send_headers(1, post_fields("/1", {{"content-length", "4194304"}}), false);
  client.send_headers(3, post_fields("/2", {{"content-length", "4194304"}}), false);
  unsigned refused = 0;
  for (int i = 0; i < 4; ++i) {
    for (const std::uint32_t id : {1u, 3u}) {
      for (std::size_t at = 0; at < half.size(); at += 16'384) {
        client.send_unfinished(id, std::string_view(half).substr(at, 16'384));
      }
    }
  }
  for (const std::uint32_t id : {1u, 3u}) {
    client.send({frame::data, frame::end_stream, id, {}});
    if (client.read_answer(id).status == 503u) ++refused;
  }
  BOOST_TEST(refused > 0u);
  BOOST_TEST(f.server.rejected("memory") == refused);
  BOOST_TEST(client.ask(101, "/same", "good").body == "good");
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(many_small_bodies_that_do_not_end_count_as_memory_too) {
  server_limits limits;
  limits.buffered_bytes = 4u << 20;
  fixture f(limits);
  auto client = f.connect();
  const std::string part(16'000, 'x');
  for (std::uint32_t id = 1; id < 200; id += 2) client.send_headers(id, post_fields("/x"), false);
  for (int i = 0; i < 6; ++i) {
    for (std::uint32_t id = 1; id < 200; id += 2) client.send_unfinished(id, part);
  }
  BOOST_TEST(eventually([&] { return f.server.rejected("memory") > 0; }));
  client.raw().vanish();
  BOOST_TEST(f.server.is_left_alone());
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(streams_beyond_the_limit_are_refused) {
  server_limits limits;
  limits.streams = 10;
  fixture f(limits);
  auto client = f.connect();
  // Before the client has heard of the limit it can't be blamed: such a stream is refused alone.
  client.acknowledge_settings = false;
  for (std::uint32_t id = 1; id <= 23; id += 2) client.send_post(id, "/wait", "");
  BOOST_TEST(client.read_answer(21).reset.value_or(99) == NGHTTP2_REFUSED_STREAM);
  BOOST_TEST(client.read_answer(23).reset.value_or(99) == NGHTTP2_REFUSED_STREAM);
  f.server.check_rejected("streams", 2);
  BOOST_TEST(eventually([&] { return f.answers.waiting == 10; }));
  f.answers.release();
  BOOST_TEST(client.read_answer(19).status == 200u);
  BOOST_TEST(client.ask(101, "/same", "good").body == "good");
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(streams_beyond_a_limit_that_the_client_knows_end_the_connection) {
  server_limits limits;
  limits.streams = 10;
  fixture f(limits);
  auto client = f.connect();
  BOOST_TEST(client.ask(1, "/", "x").status == 200u);
  for (std::uint32_t id = 3; id <= 23; id += 2) client.send_post(id, "/wait", "");
  BOOST_TEST(client.read_goaway().value_or(99) == NGHTTP2_PROTOCOL_ERROR);
  f.answers.release();
  BOOST_TEST(client.read_end());
  f.server.check_rejected("protocol");
  f.check_good_request();
}

// --- what is not HTTP/2 --------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(client_that_speaks_http_1_1_is_left) {
  fixture f;
  wire client(f.server.address);
  client.send("POST / HTTP/1.1\r\nhost: t\r\ncontent-length: 0\r\n\r\n");
  while (!client.take(1).empty()) {
  }
  f.server.check_rejected("protocol");
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(frames_that_break_the_protocol_end_the_connection) {
  const std::pair<const char*, std::string> cases[] = {
      {"oversized", bytes_of({frame::data, 0, 1, std::string(20'000, 'x')})},
      {"oversized headers", bytes_of({frame::headers, 4, 1, std::string(20'000, 'x')})},
      {"a length of 16 MiB", std::string("\xff\xff\xff\x00\x00\x00\x00\x00\x01", 9)},
      {"data on stream 0", bytes_of({frame::data, 0, 0, "x"})},
      {"data on an idle stream", bytes_of({frame::data, 0, 1, "x"})},
      {"an even stream", bytes_of(headers_frame(2, post_fields("/x")))},
      {"a ping of 5 bytes", bytes_of({frame::ping, 0, 0, "12345"})},
      {"settings of 5 bytes", bytes_of({frame::settings, 0, 0, "12345"})},
      {"an impossible setting", bytes_of({frame::settings, 0, 0, setting(4, 0xffffffff)})},
      {"a continuation of nothing", bytes_of({frame::continuation, 4, 1, {}})},
      {"a window update of 0", bytes_of({frame::window_update, 0, 0, big_endian(0)})},
      {"a window too large", bytes_of({frame::window_update, 0, 0, big_endian(0x7fffffff)})},
      {"a push promise", bytes_of({frame::push_promise, 4, 1, big_endian(2) + hpack({})})},
      {"HPACK that is none", bytes_of({frame::headers, 5, 1, "\xff\xff\xff\xff\xff\xff\xff"})},
      {"another frame amid a header", bytes_of({frame::headers, 0, 1, hpack(post_fields("/x"))}) +
                                          bytes_of({frame::ping, 0, 0, "12345678"})},
  };
  for (const auto& [name, bytes] : cases) {
    BOOST_TEST_CONTEXT(name) {
      fixture f;
      auto client = f.connect();
      client.raw().send(bytes);
      f.check_ended(client, "protocol");
    }
  }
}

BOOST_AUTO_TEST_CASE(requests_that_are_malformed_are_reset_and_counted) {
  const std::pair<const char*, field_list> cases[] = {
      {"no path", {{":method", "POST"}, {":scheme", "https"}, {":authority", "t"}}},
      {"two paths", post_fields("/x", {{":path", "/y"}})},
      {"a capital letter in a name", post_fields("/x", {{"X-Name", "y"}})},
      {"a field of the connection", post_fields("/x", {{"connection", "close"}})},
      {"a line break in a value", post_fields("/x", {{"x", "a\r\nb: c"}})},
      {"a length that is none", post_fields("/x", {{"content-length", "-5"}})},
      {"a length that is not kept", post_fields("/x", {{"content-length", "5"}})},
  };
  for (const auto& [name, fields] : cases) {
    BOOST_TEST_CONTEXT(name) {
      fixture f;
      auto client = f.connect();
      client.send_headers(1, fields, true);
      BOOST_TEST(client.read_answer(1).reset.value_or(99) == NGHTTP2_PROTOCOL_ERROR);
      BOOST_TEST(f.answers.seen == 0);
      f.server.check_rejected("malformed");
      BOOST_TEST(client.ask(101, "/same", "good").body == "good");
      f.check_good_request();
    }
  }
}

// --- the slow and the silent ---------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(client_that_never_says_anything_is_left) {
  fixture f(small_limits());
  wire client(f.server.address);
  while (!client.take(1).empty()) {
  }
  f.server.check_rejected("header_timeout");
  BOOST_TEST(f.server.is_left_alone());
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(slow_header_times_out) {
  fixture f(small_limits());
  auto client = f.connect();
  client.acknowledge_settings = false;  // nothing may come between the parts of a header
  client.send({frame::headers, frame::end_stream, 1, hpack(post_fields("/slow"))});
  BOOST_TEST(client.read_end());
  f.server.check_rejected("header_timeout");
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(slow_body_times_out) {
  fixture f(small_limits());
  auto client = f.connect();
  client.send_headers(1, post_fields("/slow"), false);
  client.send({frame::data, 0, 1, "the first part"});
  BOOST_TEST(client.read_answer(1).reset.has_value());
  f.server.check_rejected("body_timeout");
  BOOST_TEST(client.ask(101, "/same", "good").body == "good");
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(slow_body_times_out_on_a_connection_that_was_idle_too) {
  auto limits = small_limits();
  limits.header = milliseconds(50);
  fixture f(limits);
  auto client = f.connect();
  BOOST_TEST(client.ask(1, "/", "x").status == 200u);
  const auto start = f.here.clock.now();
  // Past the first look at what is overdue.
  BOOST_TEST(eventually([&] { return f.here.clock.now() - start > milliseconds(150); }));
  client.send_headers(3, post_fields("/slow"), false);
  BOOST_TEST(client.read_answer(3).reset.has_value());
  f.server.check_rejected("body_timeout");
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(client_with_zero_windows_does_not_keep_its_responses_indefinitely) {
  fixture f(small_limits());
  auto client = f.connect(setting(4, 0));
  client.open_windows = false;
  for (std::uint32_t id = 1; id < 20; id += 2) client.send_post(id, "/x", "an answer");
  for (std::uint32_t id = 1; id < 20; id += 2) {
    const auto got = client.read_answer(id);
    BOOST_TEST(got.status == 200u);
    BOOST_TEST(got.body.empty());
    BOOST_TEST(got.reset.has_value());
  }
  f.server.check_rejected("write_timeout", 10);
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(client_that_opens_its_window_by_single_bytes_is_left_in_time) {
  fixture f(small_limits());
  auto client = f.connect(setting(4, 1));
  client.open_windows = false;
  client.send_post(1, "/big", "");
  // Fast enough to look alive, slow enough that the answer does not get through. Where the server
  // is slow, too, so many for so little data are a flood.
  const auto left = [&] {
    return f.server.rejected("write_timeout") + f.server.rejected("flood") > 0;
  };
  for (int i = 0; i < 1000 && !eventually(left, std::chrono::milliseconds(5)); ++i) {
    client.send({frame::window_update, 0, 1, big_endian(1)});
  }
  BOOST_TEST(!client.read_answer(1).complete);
  BOOST_TEST(f.server.rejected("write_timeout") + f.server.rejected("flood") == 1);
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(client_that_does_not_read_is_left) {
  fixture f(small_limits());
  h2_wire client(wire(f.server.address, 4096), setting(4, 0x7fffffff));
  client.send({frame::window_update, 0, 0, big_endian(0x7fff0000)});
  client.send_post(1, "/big", "");

  BOOST_TEST(eventually([&] { return f.server.rejected("write_timeout") == 1; }));
  BOOST_TEST(f.server.is_left_alone());
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(unused_connection_is_closed_with_a_goodbye_and_without_a_complaint) {
  server_limits limits;
  limits.header = milliseconds(50);
  limits.idle = milliseconds(100);
  fixture f(limits);
  auto client = f.connect();
  BOOST_TEST(client.ask(1, "/", "x").status == 200u);
  BOOST_TEST(client.read_goaway().value_or(99) == 0u);
  BOOST_TEST(client.read_end());
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(connection_whose_streams_timed_out_is_closed_once_it_is_idle) {
  auto limits = small_limits();
  limits.idle = milliseconds(300);
  fixture f(limits);
  auto client = f.connect();
  BOOST_TEST(client.ask(1, "/", "x").status == 200u);
  client.send_headers(3, post_fields("/slow"), false);
  BOOST_TEST(client.read_answer(3).reset.has_value());
  BOOST_TEST(client.read_end());
  f.server.check_rejected("body_timeout");
}

BOOST_AUTO_TEST_SUITE_END()
