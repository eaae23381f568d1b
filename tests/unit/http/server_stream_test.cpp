#include "rw/core/stream.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/http/client_fixture.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/host.hpp"
#include "tests/unit/http/sources.hpp"
#include "tests/unit/http/wire.hpp"
#include <chrono>
#include <memory>
#include <string>

BOOST_AUTO_TEST_SUITE(server_stream)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using std::chrono::milliseconds;
namespace asio = boost::asio;
using state = body_source::state;

rw::http::server_limits short_write(milliseconds write = milliseconds(200)) {
  rw::http::server_limits limits;
  limits.write = write;
  return limits;
}

std::unique_ptr<rw::core::transport> transport_of(bool http2) {
  if (http2) return std::make_unique<h2_transport>();
  return rw::core::make_plain_transport();
}

/// A server of either protocol, with a client on the same host.
struct fixture : client_fixture {
  explicit fixture(bool http2, rw::http::server_limits limits = {})
      : client_fixture(transport_of(http2)), server(here, *transport, answers, limits) {
    use(server.address.port());
  }
  ~fixture() {
    here.call(used->close());
    used.reset();
    here.stop();
  }

  /// Lets the source go on.
  void write(std::string_view text, state then = state::pending) {
    here.on_thread([&] {
      what->text += text;
      what->then = then;
      if (what->ready) what->ready();
    });
  }
  bool gone() {
    return eventually([&] { return what->open == 0; });
  }
  bool pending() {
    return eventually([&] { return what->open == 1 && what->reads > 0; });
  }

  streamer answers;
  std::shared_ptr<script> what = answers.what;
  running_server server;
};

std::string get(std::string_view target, std::string_view version = "1.1",
                std::string_view method = "GET") {
  return std::string(method) + " " + std::string(target) + " HTTP/" + std::string(version) +
         "\r\nhost: test\r\n\r\n";
}

field_list get_fields(std::string_view target, std::string method = "GET") {
  return {{":method", std::move(method)},
          {":scheme", "https"},
          {":path", std::string(target)},
          {":authority", "t"}};
}

bool passes(milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  return eventually([&] { return std::chrono::steady_clock::now() > until; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(pieces_are_sent_as_they_come_to_be_and_the_connection_goes_on) {
  fixture h1(false);
  wire client(h1.server.address);
  client.send(get("/watch"));
  const auto head = client.take_through("\r\n\r\n");
  BOOST_TEST(head.find("transfer-encoding: chunked") != std::string::npos);
  BOOST_TEST(head.find("content-length") == std::string::npos);
  BOOST_TEST(head.find("x-kind: stream") != std::string::npos);
  h1.write("one");
  BOOST_TEST(client.take_through("one\r\n") == "3\r\none\r\n");
  h1.write("and the second");
  BOOST_TEST(client.take_through("second\r\n") == "e\r\nand the second\r\n");
  h1.write("", state::end);
  BOOST_TEST(client.take(5) == "0\r\n\r\n");
  BOOST_TEST(h1.gone());
  BOOST_TEST(ask(client, get("/plain")).body == "plain");

  fixture h2(true);
  h2_wire streams{wire(h2.server.address)};
  streams.send_headers(1, get_fields("/watch"), true);
  BOOST_TEST(h2.pending());
  h2.write("one");
  BOOST_TEST(streams.ask(3, "/plain", "").body == "plain");
  h2.write("two", state::end);
  const auto got = streams.read_answer(1);
  BOOST_TEST(got.complete);
  BOOST_TEST(got.body == "onetwo");
  BOOST_TEST(got.fields.count("content-length") == 0u);
  BOOST_TEST(got.fields.at("x-kind") == "stream");
  BOOST_TEST(h2.gone());
  BOOST_TEST(h2.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(large_source_arrives_whole_whatever_its_pieces) {
  for (const bool http2 : {false, true}) {
    for (const auto piece : {std::string::npos, std::size_t{777}, std::size_t{100'000}}) {
      fixture f(http2);
      std::string text;
      for (int i = 0; text.size() < 2'000'000; ++i) text += std::to_string(i) + ",";
      f.here.on_thread([&] {
        f.what->piece = piece;
        f.what->text = text;
        f.what->then = state::end;
      });
      f.use(f.server.address.port(), {.body_bytes = 4u << 20});
      const auto got = f.ask_client("/list");
      BOOST_TEST(!got.error, got.error.message());
      BOOST_TEST((got.answer.body == text));
      BOOST_TEST(f.gone());
    }
  }
}

BOOST_AUTO_TEST_CASE(source_that_has_nothing_yet_is_asked_again) {
  for (const bool http2 : {false, true}) {
    fixture f(http2);
    f.here.on_thread([&] { f.what->then = state::more; });
    auto under_way = f.begin("/watch");
    BOOST_TEST(eventually([&] { return f.what->reads > 10; }));
    f.write("at last", state::end);
    BOOST_TEST(client_fixture::end(std::move(under_way)).answer.body == "at last");
  }
}

BOOST_AUTO_TEST_CASE(broken_source_is_cut_off_behind_what_it_gave) {
  fixture h1(false);
  wire client(h1.server.address);
  client.send(get("/watch"));
  client.take_through("\r\n\r\n");
  h1.write("last words", state::broken);
  BOOST_TEST(client.take_through("words\r\n") == "a\r\nlast words\r\n");
  BOOST_TEST(client.at_end());
  BOOST_TEST(h1.gone());

  fixture h2(true);
  h2_wire streams{wire(h2.server.address)};
  streams.send_headers(1, get_fields("/watch"), true);
  BOOST_TEST(h2.pending());
  h2.write("last words", state::broken);
  const auto got = streams.read_answer(1);
  BOOST_TEST(got.body == "last words");
  BOOST_TEST(got.reset.value_or(0) == 2u);
  BOOST_TEST(h2.gone());
  BOOST_TEST(streams.ask(3, "/plain", "").body == "plain");
}

BOOST_AUTO_TEST_CASE(status_0_breaks_off_without_an_answer) {
  fixture h1(false);
  wire client(h1.server.address);
  client.send(get("/plain") + get("/broken"));
  BOOST_TEST(read_answer(client).body == "plain");
  BOOST_TEST(client.at_end());
  BOOST_TEST(h1.ask_client("/broken").error == make_error_code(client_error::closed));
  BOOST_TEST(h1.server.requests("http/1.1") == 1);

  fixture h2(true);
  h2_wire streams{wire(h2.server.address)};
  const auto got = streams.ask(1, "/broken", "");
  BOOST_TEST(got.status == 0u);
  BOOST_TEST(got.reset.value_or(0) == 2u);
  BOOST_TEST(streams.ask(3, "/plain", "").body == "plain");
  BOOST_TEST(h2.ask_client("/broken").error == make_error_code(client_error::closed));
}

BOOST_AUTO_TEST_CASE(client_that_goes_frees_its_source_at_once) {
  for (const bool half : {true, false}) {
    fixture h1(false);
    wire client(h1.server.address);
    client.send(get("/watch"));
    BOOST_TEST(h1.pending());
    if (half) {
      client.finish();
    } else {
      client.vanish();
    }
    BOOST_TEST(h1.gone());
    BOOST_TEST(h1.server.is_left_alone());
    h1.write("to nobody");
  }
  for (const bool half : {true, false}) {
    fixture h2(true);
    h2_wire streams{wire(h2.server.address)};
    streams.send_headers(1, get_fields("/watch"), true);
    BOOST_TEST(h2.pending());
    if (half) {
      streams.raw().finish();
    } else {
      streams.raw().vanish();
    }
    BOOST_TEST(h2.gone());
    BOOST_TEST(h2.server.is_left_alone());
    h2.write("to nobody");
  }
}

BOOST_AUTO_TEST_CASE(stream_that_the_client_resets_frees_its_source_at_once) {
  fixture f(true);
  h2_wire streams{wire(f.server.address)};
  streams.send_headers(1, get_fields("/watch"), true);
  BOOST_TEST(f.pending());
  streams.send({frame::rst_stream, 0, 1, big_endian(8)});
  BOOST_TEST(f.gone());
  f.write("to nobody");
  BOOST_TEST(streams.ask(3, "/plain", "").body == "plain");
}

BOOST_AUTO_TEST_CASE(source_may_call_when_everything_has_gone) {
  for (const bool http2 : {false, true}) {
    std::shared_ptr<script> what;
    {
      fixture f(http2);
      what = f.what;
      auto under_way = f.begin("/watch");
      BOOST_TEST(f.pending());
      f.here.call(f.used->close());
      BOOST_TEST(client_fixture::end(std::move(under_way)).error.failed());
      BOOST_TEST(f.gone());
    }
    what->ready();
  }
}

BOOST_AUTO_TEST_CASE(client_that_reads_slowly_gets_it_all_and_holds_little) {
  constexpr std::size_t total = 10u << 20;
  fixture h2(true);
  h2.here.on_thread([&] {
    h2.what->text.assign(total, 'x');
    h2.what->then = state::end;
  });
  h2_wire streams{wire(h2.server.address, 4096)};
  streams.open_windows = false;
  streams.send_headers(1, get_fields("/list"), true);
  BOOST_TEST(eventually([&] { return h2.what->given == 65'535; }));
  BOOST_TEST(h2.what->given == 65'535u);  // what the client's window grants, and no more
  streams.send({frame::window_update, 0, 0, big_endian(total)});
  streams.send({frame::window_update, 0, 1, big_endian(total)});
  const auto got = streams.read_answer(1);
  BOOST_TEST(got.complete);
  BOOST_TEST(got.body.size() == total);

  fixture h1(false);
  wire client(h1.server.address, 4096);
  client.send(get("/endless"));
  client.take_through("\r\n\r\n");
  // The kernel's buffers fill up; from then on nothing is read from the source.
  std::size_t before = 1;
  while (before != h1.what->given) {
    before = h1.what->given;
    passes(milliseconds(100));
  }
  BOOST_TEST(before < 8u << 20);
  BOOST_TEST(client.take(12u << 20).size() == 12u << 20);
}

BOOST_AUTO_TEST_CASE(client_that_takes_nothing_is_left_in_time) {
  for (const bool http2 : {false, true}) {
    fixture f(http2, short_write());
    if (http2) {
      h2_wire streams{wire(f.server.address)};
      streams.open_windows = false;
      streams.send_headers(1, get_fields("/endless"), true);
      BOOST_TEST(streams.read_answer(1).reset.value_or(0) == 8u);
      BOOST_TEST(streams.ask(3, "/fields", "").complete);
    } else {
      wire client(f.server.address, 4096);
      client.send(get("/endless"));
      BOOST_TEST(eventually([&] { return f.server.rejected("write_timeout") == 1; }));
    }
    BOOST_TEST(f.gone());
    f.server.check_rejected("write_timeout");
  }
}

BOOST_AUTO_TEST_CASE(source_may_be_silent_for_longer_than_a_write_may_take) {
  for (const bool http2 : {false, true}) {
    fixture f(http2, short_write(milliseconds(50)));
    auto under_way = f.begin("/watch");
    BOOST_TEST(f.pending());
    f.write("one ");
    BOOST_TEST(passes(milliseconds(300)));
    f.write("two", state::end);
    const auto got = client_fixture::end(std::move(under_way));
    BOOST_TEST(!got.error, got.error.message());
    BOOST_TEST(got.answer.body == "one two");
    BOOST_TEST(f.server.all_rejected() == "");
  }
}

BOOST_AUTO_TEST_CASE(window_that_is_used_up_harms_no_source_that_has_nothing_to_say) {
  fixture f(true, short_write(milliseconds(50)));
  h2_wire streams{wire(f.server.address)};
  streams.open_windows = false;
  streams.send_headers(1, get_fields("/watch"), true);
  BOOST_TEST(f.pending());
  f.write(std::string(65'535, 'x'));
  BOOST_TEST(eventually([&] { return f.what->given == 65'535; }));
  BOOST_TEST(passes(milliseconds(300)));
  BOOST_TEST(f.what->open == 1);
  f.write("too much");
  BOOST_TEST(f.gone());
  f.server.check_rejected("write_timeout");
}

BOOST_AUTO_TEST_CASE(response_to_head_reads_no_source) {
  fixture h1(false);
  wire client(h1.server.address);
  client.send(get("/watch", "1.1", "HEAD"));
  BOOST_TEST(read_answer(client, true).status == 200u);
  BOOST_TEST(h1.gone());
  BOOST_TEST(ask(client, get("/plain")).body == "plain");
  BOOST_TEST(h1.what->reads == 0);

  fixture h2(true);
  h2_wire streams{wire(h2.server.address)};
  streams.send_headers(1, get_fields("/watch", "HEAD"), true);
  const auto got = streams.read_answer(1);
  BOOST_TEST(got.complete);
  BOOST_TEST(got.body == "");
  BOOST_TEST(h2.what->reads == 0);
}

BOOST_AUTO_TEST_CASE(client_of_http_1_0_reads_until_the_connection_ends) {
  fixture f(false);
  wire client(f.server.address);
  client.send(get("/watch", "1.0"));
  const auto head = client.take_through("\r\n\r\n");
  BOOST_TEST(head.find("chunked") == std::string::npos);
  BOOST_TEST(head.find("connection: close") != std::string::npos);
  f.write("one ");
  f.write("two", state::end);
  BOOST_TEST(client.take(100) == "one two");
  BOOST_TEST(client.at_end());
}

BOOST_AUTO_TEST_CASE(request_behind_a_stream_is_answered_after_it) {
  fixture f(false);
  wire client(f.server.address);
  client.send(get("/watch"));
  client.take_through("\r\n\r\n");
  BOOST_TEST(f.pending());
  client.send(get("/plain"));
  f.write("one", state::end);
  BOOST_TEST(client.take_through("0\r\n\r\n") == "3\r\none\r\n0\r\n\r\n");
  BOOST_TEST(read_answer(client).body == "plain");
}

BOOST_AUTO_TEST_CASE(requests_without_end_behind_a_stream_are_not_gathered) {
  fixture f(false);
  wire client(f.server.address);
  client.send(get("/watch"));
  BOOST_TEST(f.pending());
  std::string many;
  for (int i = 0; i < 2000; ++i) many += get("/plain");
  client.send(many);
  f.write("one", state::end);
  client.take_through("0\r\n\r\n");
  for (int i = 0; i < 2000; ++i) {
    if (read_answer(client).body != "plain") BOOST_FAIL("answer " << i);
  }
}

BOOST_AUTO_TEST_CASE(drain_cuts_off_pending_sources) {
  for (const bool http2 : {false, true}) {
    fixture f(http2);
    auto under_way = f.begin("/watch");
    BOOST_TEST(f.pending());
    f.write("something");
    f.server.get().drain();
    BOOST_TEST(client_fixture::end(std::move(under_way)).error ==
               make_error_code(client_error::closed));
    BOOST_TEST(f.gone());
    BOOST_TEST(eventually([&] { return f.server.finished(); }));
  }
}

BOOST_AUTO_TEST_CASE(source_may_come_to_its_end_when_the_server_drains) {
  for (const bool http2 : {false, true}) {
    fixture f(http2);
    f.here.on_thread([&] { f.what->ends_when_drained = true; });
    auto under_way = f.begin("/watch");
    BOOST_TEST(f.pending());
    f.server.get().drain();
    const auto got = client_fixture::end(std::move(under_way));
    BOOST_TEST(!got.error, got.error.message());
    BOOST_TEST(got.answer.body == "goodbye");
    BOOST_TEST(eventually([&] { return f.server.finished(); }));
  }
}

BOOST_AUTO_TEST_CASE(source_without_end_does_not_keep_a_drain_from_its_end) {
  for (const bool http2 : {false, true}) {
    fixture f(http2, short_write());
    f.use(f.server.address.port(), {.body_bytes = std::size_t{1} << 40});
    class discard final : public body_sink {
      bool take(std::string_view) override { return true; }
    } sink;
    auto under_way = f.begin("/endless", {}, {.sink = &sink});
    BOOST_TEST(eventually([&] { return f.what->given > 1'000'000; }));
    f.server.get().drain();
    BOOST_TEST(client_fixture::end(std::move(under_way)).error ==
               make_error_code(client_error::closed));
    BOOST_TEST(f.gone());
    BOOST_TEST(eventually([&] { return f.server.finished(); }));
  }
}

BOOST_AUTO_TEST_CASE(dropped_connections_break_off_and_new_ones_are_served) {
  for (const bool http2 : {false, true}) {
    fixture f(http2);
    auto under_way = f.begin("/watch");
    BOOST_TEST(f.pending());
    wire idle(f.server.address);
    BOOST_TEST(eventually([&] { return f.server.get().open_connections() == 2; }));
    f.server.get().drop_connections();
    BOOST_TEST(client_fixture::end(std::move(under_way)).error ==
               make_error_code(client_error::closed));
    BOOST_TEST(f.gone());
    BOOST_TEST(f.server.is_left_alone());
    BOOST_TEST(eventually([&] { return f.open() == 0; }));
    BOOST_TEST(f.ask_client("/plain").answer.body == "plain");
  }
}

BOOST_AUTO_TEST_CASE(no_field_is_lost_however_many_there_are) {
  for (const bool http2 : {false, true}) {
    fixture f(http2);
    request what;
    what.target = "/fields";
    for (int i = 0; i < 60; ++i) {
      what.headers.add("x-" + std::to_string(i), "value " + std::to_string(i));
    }
    const auto got = f.ask_client(what);
    BOOST_TEST(!got.error, got.error.message());
    for (int i = 0; i < 60; ++i) {
      BOOST_TEST(got.answer.headers.get("x-" + std::to_string(i)) == "value " + std::to_string(i));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
