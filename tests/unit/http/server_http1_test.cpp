#include "rw/core/stream.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/http/echo.hpp"
#include "tests/unit/http/host.hpp"
#include "tests/unit/http/wire.hpp"
#include <memory>
#include <optional>
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(server_http1)

namespace {

using namespace rw::http;
using namespace rw::http::test;
using std::chrono::milliseconds;

server_limits small_limits() {
  server_limits limits;
  limits.header = limits.body = limits.write = milliseconds(200);
  return limits;
}

/// A server for HTTP/1.1 without TLS.
struct fixture {
  explicit fixture(server_limits limits = {}) : server(here, *transport, answers, limits) {}
  ~fixture() { here.stop(); }

  wire connect() { return wire(server.address); }

  /// Whatever happened before, the next client is served.
  void check_good_request() {
    auto next = connect();
    const auto got = ask(next, post("/next", "good"));
    BOOST_TEST(got.status == 200u);
    BOOST_TEST(got.body == "good");
  }

  /// `client` gets `status` and then the end of its connection, counted once as `reason`.
  void check_refused(wire& client, unsigned status, const std::string& reason) {
    const auto got = read_answer(client);
    BOOST_TEST(got.status == status);
    BOOST_TEST(got.says("connection: close"));
    BOOST_TEST(!got.body.empty());
    BOOST_TEST(client.at_end());
    BOOST_TEST(answers.last_refused == status);
    server.check_rejected(reason);
    check_good_request();
  }

  void check_refused(std::string_view bytes, unsigned status, const std::string& reason) {
    auto client = connect();
    client.send(bytes);
    check_refused(client, status, reason);
  }

  host here;
  std::unique_ptr<rw::core::transport> transport = rw::core::make_plain_transport();
  echo answers{here.executor()};
  running_server server;
};

std::string chunk(std::string_view bytes) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return std::string(size).append(bytes).append("\r\n");
}

constexpr std::string_view chunked_head =
    "POST /c HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n";

std::string pattern(std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>('a' + i % 23);
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(kept_connection_serves_one_request_after_another) {
  fixture f;
  auto client = f.connect();
  for (int i = 0; i < 50; ++i) {
    const auto body = "body " + std::to_string(i);
    const auto got = ask(client, post("/" + std::to_string(i), body));
    BOOST_TEST(got.status == 200u);
    BOOST_TEST(got.body == body);
    BOOST_TEST(got.says("x-target: /" + std::to_string(i) + "\r\n"));
    BOOST_TEST(!got.says("connection: close"));
  }
  BOOST_TEST(f.server.requests("http/1.1") == 50);
  BOOST_TEST(f.here.metric("rw_http_connections_total{server=\"test\"}") == 1);
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(pipelined_requests_are_answered_in_order) {
  fixture f;
  auto client = f.connect();
  std::string all;
  for (int i = 0; i < 200; ++i) all += post("/p", std::to_string(i));
  client.send(all);
  for (int i = 0; i < 200; ++i) BOOST_TEST(read_answer(client).body == std::to_string(i));
}

BOOST_AUTO_TEST_CASE(pipelined_requests_wait_for_a_handler_that_waits) {
  fixture f;
  auto client = f.connect();
  client.send(post("/1", "one") + post("/wait", "two") + post("/3", "three"));
  BOOST_TEST(read_answer(client).body == "one");
  BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
  BOOST_TEST(f.answers.seen == 2);
  f.answers.release();
  BOOST_TEST(read_answer(client).body == "two");
  BOOST_TEST(read_answer(client).body == "three");
}

BOOST_AUTO_TEST_CASE(request_in_single_bytes_is_put_together) {
  fixture f;
  auto client = f.connect();
  for (const char c : post("/slow", "letter by letter")) client.send({&c, 1});
  BOOST_TEST(read_answer(client).body == "letter by letter");
  client.send(std::string(chunked_head.substr(0, chunked_head.size())));
  for (const char c : chunk("in ") + chunk("pieces") + "0\r\n\r\n") client.send({&c, 1});
  BOOST_TEST(read_answer(client).body == "in pieces");
}

BOOST_AUTO_TEST_CASE(chunked_request_is_put_together_and_its_trailers_are_passed_over) {
  fixture f;
  auto client = f.connect();
  client.send(std::string(chunked_head) + chunk("one ") + "4;ext=\"1\"\r\ntwo \r\n" +
              chunk("three") + "0\r\nx-sum: 1\r\n\r\n" + post("/next", "and the next"));
  BOOST_TEST(read_answer(client).body == "one two three");
  BOOST_TEST(read_answer(client).body == "and the next");
}

BOOST_AUTO_TEST_CASE(client_that_expects_it_gets_100_continue) {
  fixture f;
  auto client = f.connect();
  client.send("POST /e HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n");
  BOOST_TEST(read_answer(client).status == 100u);
  client.send("body");
  const auto got = read_answer(client);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.body == "body");
}

BOOST_AUTO_TEST_CASE(client_that_expects_to_send_too_much_is_rejected_before_it_does) {
  fixture f;
  f.check_refused(
      "POST /e HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\n"
      "content-length: 9437184\r\n\r\n",
      413, "body_size");
}

BOOST_AUTO_TEST_CASE(response_to_head_has_a_length_and_no_body) {
  fixture f;
  auto client = f.connect();
  client.send("HEAD /big HTTP/1.1\r\nhost: t\r\n\r\n");
  const auto got = read_answer(client, true);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.says("content-length: 16777216\r\n"));
  BOOST_TEST(ask(client, post("/next", "good")).body == "good");
}

BOOST_AUTO_TEST_CASE(client_of_http_1_0_gets_a_response_and_a_close) {
  fixture f;
  auto client = f.connect();
  const auto got = ask(client, "POST /old HTTP/1.0\r\ncontent-length: 3\r\n\r\nold");
  BOOST_TEST(got.body == "old");
  BOOST_TEST(got.says("connection: close"));
  BOOST_TEST(client.at_end());
}

BOOST_AUTO_TEST_CASE(connection_that_the_client_wants_closed_is_closed) {
  fixture f;
  auto client = f.connect();
  const auto got = ask(client, post("/last", "x", "connection: close\r\n"));
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.says("connection: close"));
  BOOST_TEST(client.at_end());
}

BOOST_AUTO_TEST_CASE(client_that_has_finished_sending_still_gets_its_responses) {
  fixture f;
  auto client = f.connect();
  client.send(post("/1", "one") + post("/wait", "two"));
  client.finish();
  BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
  f.answers.release();
  BOOST_TEST(read_answer(client).body == "one");
  BOOST_TEST(read_answer(client).body == "two");
  BOOST_TEST(client.at_end());
  BOOST_TEST(f.server.is_left_alone());
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(body_of_8_mib_is_taken_whole_and_in_chunks) {
  fixture f;
  auto client = f.connect();
  const auto body = pattern(8u << 20);
  BOOST_TEST((ask(client, post("/whole", body)).body == body));
  std::string chunks(chunked_head);
  for (std::size_t at = 0; at < body.size(); at += 100'000) {
    chunks += chunk(std::string_view(body).substr(at, 100'000));
  }
  BOOST_TEST((ask(client, chunks + "0\r\n\r\n").body == body));
  BOOST_TEST(f.server.all_rejected() == "");
}

BOOST_AUTO_TEST_CASE(body_of_9_mib_is_rejected) {
  fixture f;
  f.check_refused(post("/large", std::string(9u << 20, 'x')), 413, "body_size");
}

BOOST_AUTO_TEST_CASE(chunked_body_of_9_mib_is_rejected) {
  fixture f;
  std::string all(chunked_head);
  for (int i = 0; i < 9; ++i) all += chunk(std::string(1u << 20, 'x'));
  f.check_refused(all, 413, "body_size");
}

BOOST_AUTO_TEST_CASE(chunk_that_claims_to_be_huge_is_rejected_when_it_outgrows_the_limit) {
  fixture f;
  f.check_refused(std::string(chunked_head) + "ffffffffffffff\r\n" + std::string(9u << 20, 'x'),
                  413, "body_size");
}

BOOST_AUTO_TEST_CASE(chunked_body_without_an_end_times_out) {
  fixture f(small_limits());
  f.check_refused(std::string(chunked_head) + chunk("and then nothing"), 408, "body_timeout");
}

BOOST_AUTO_TEST_CASE(slow_header_times_out) {
  fixture f(small_limits());
  f.check_refused("POST /slow HTTP/1.1\r\nhost:", 408, "header_timeout");
}

BOOST_AUTO_TEST_CASE(header_that_trickles_in_times_out_all_the_same) {
  fixture f(small_limits());
  auto client = f.connect();
  client.send("POST /slow HTTP/1.1\r\n");
  // Fast enough to look alive, slow enough not to meet the header's limit first.
  const auto refused = [&] { return f.server.rejected("header_timeout") > 0; };
  for (int i = 0; i < 1000 && !eventually(refused, milliseconds(5)); ++i) client.send("a:b\r\n");
  BOOST_TEST(read_answer(client).status == 408u);
  f.server.check_rejected("header_timeout");
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(slow_body_times_out) {
  fixture f(small_limits());
  f.check_refused("POST /slow HTTP/1.1\r\nhost: t\r\ncontent-length: 10\r\n\r\nfive5", 408,
                  "body_timeout");
}

BOOST_AUTO_TEST_CASE(header_that_is_too_large_is_rejected) {
  fixture f;
  f.check_refused(post("/h", "", "x: " + std::string(20'000, 'x') + "\r\n"), 431, "header_size");
}

BOOST_AUTO_TEST_CASE(server_refuses_method_that_is_longer_than_any) {
  fixture f;
  f.check_refused(std::string(4'000, 'M') + " / HTTP/1.1\r\nhost: t\r\n\r\n", 400, "malformed");
}

BOOST_AUTO_TEST_CASE(header_line_without_an_end_is_rejected) {
  fixture f;
  f.check_refused("POST /" + std::string(100'000, 'x'), 431, "header_size");
}

BOOST_AUTO_TEST_CASE(chunk_extension_without_an_end_is_rejected) {
  fixture f;
  auto client = f.connect();
  client.send(std::string(chunked_head) + "5;x=");
  const std::string more(64 * 1024, 'x');
  for (int i = 0; i < 64 && f.server.all_rejected().empty(); ++i) client.send(more);
  f.check_refused(client, 431, "header_size");
}

BOOST_AUTO_TEST_CASE(trailers_without_an_end_are_refused) {
  fixture f;
  auto client = f.connect();
  client.send(std::string(chunked_head) + "0\r\n");
  std::string more;
  while (more.size() < 64 * 1024) more += "x-trailer: of some length\r\n";
  for (int i = 0; i < 64 && f.server.all_rejected().empty(); ++i) client.send(more);
  f.check_refused(client, 431, "header_size");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_http_are_rejected) {
  const std::string_view cases[] = {
      "hello, is anybody there?\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS client\r\n\r\n",
      "POST  /two-spaces HTTP/1.1\r\nhost: t\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\nno colon\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\n: no name\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\nname : space before the colon\r\n\r\n",
      "POST /x\x01y HTTP/1.1\r\nhost: t\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\ncontent-length: -1\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\ncontent-length: ten\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\ncontent-length: 99999999999999999999999\r\n\r\n",
  };
  for (const auto bytes : cases) {
    BOOST_TEST_CONTEXT(bytes) {
      fixture f;
      f.check_refused(bytes, 400, "malformed");
    }
  }
}

BOOST_AUTO_TEST_CASE(request_whose_length_is_ambiguous_is_rejected) {
  // Two readings of one request are how requests are smuggled past a proxy (RFC 9112,
  // section 11.2).
  const std::string_view cases[] = {
      "POST /x HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
      "POST /x HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\ntransfer-encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\ncontent-length: "
      "5\r\n\r\n0\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\ntransfer-encoding: "
      "chunked\r\n\r\n3;a=\"b\nc\"\r\nabc\r\n0\r\n\r\n",
      "POST /x HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nabc\r\n0\r\n\r\n",
  };
  for (const auto bytes : cases) {
    BOOST_TEST_CONTEXT(bytes) {
      fixture f;
      f.check_refused(bytes, 400, "malformed");
    }
  }
}

BOOST_AUTO_TEST_CASE(request_without_one_host_is_rejected) {
  fixture f;
  f.check_refused("GET /x HTTP/1.1\r\n\r\n", 400, "malformed");
  fixture g;
  g.check_refused("GET /x HTTP/1.1\r\nhost: a\r\nHost: b\r\n\r\n", 400, "malformed");
}

BOOST_AUTO_TEST_CASE(transfer_coding_other_than_chunked_is_not_implemented) {
  fixture f;
  f.check_refused(
      "POST /x HTTP/1.1\r\nhost: t\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501,
      "malformed");
}

BOOST_AUTO_TEST_CASE(request_with_a_whole_uri_has_its_path_and_its_authority) {
  for (const auto& [target, path] :
       {std::pair("https://other:80/validate/x?a=b", "/validate/x?a=b"),
        std::pair("HTTP://other", "/"), std::pair("http://other?a", "/?a")}) {
    fixture f;
    auto client = f.connect();
    client.send("GET " + std::string(target) + " HTTP/1.1\r\nhost: t\r\n\r\n");
    const auto got = read_answer(client);
    BOOST_TEST(got.status == 200u);
    BOOST_TEST(got.says("x-target: " + std::string(path) + "\r\n"));
  }
}

BOOST_AUTO_TEST_CASE(empty_lines_before_a_request_are_passed_over) {
  fixture f;
  auto client = f.connect();
  client.send("\r\n\r\n" + post("/a", "one") + "\r\n" + post("/b", "two"));
  BOOST_TEST(read_answer(client).body == "one");
  BOOST_TEST(read_answer(client).body == "two");
  for (const char byte : "\r\n" + post("/c", "three")) client.send(std::string(1, byte));
  BOOST_TEST(read_answer(client).body == "three");
}

BOOST_AUTO_TEST_CASE(empty_line_behind_a_body_begins_no_request) {
  auto limits = small_limits();
  limits.idle = std::chrono::seconds(60);
  for (const std::string behind : {"\r\n", "\r\n\r\n", "\r"}) {
    fixture f(limits);
    auto client = f.connect();
    client.send(post("/a", "one") + behind);
    BOOST_TEST(read_answer(client).body == "one");
    // The time that a header may take passes: one that began later is timed out.
    auto slow = f.connect();
    slow.send("POST /x HT");
    f.check_refused(slow, 408, "header_timeout");
    BOOST_TEST(ask(client, post("/b", "two")).body == "two");
  }
}

BOOST_AUTO_TEST_CASE(transfer_coding_over_http_1_0_is_rejected) {
  fixture f;
  f.check_refused("POST /x HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400,
                  "malformed");
}

BOOST_AUTO_TEST_CASE(host_that_is_none_is_rejected) {
  for (const std::string head :
       {"/x HTTP/1.1\r\nhost: a b", "/x HTTP/1.1\r\nhost: a/b", "/x HTTP/1.1\r\nhost: u@b",
        "http:///x HTTP/1.1\r\nhost: t", "http://u@h/x HTTP/1.1\r\nhost: t"}) {
    fixture f;
    f.check_refused("GET " + head + "\r\n\r\n", 400, "malformed");
  }
  fixture f;
  auto client = f.connect();
  client.send("GET /x HTTP/1.1\r\nhost: [fd00::1]:8443\r\n\r\nGET /x HTTP/1.1\r\nhost:\r\n\r\n");
  BOOST_TEST(read_answer(client).status == 200u);
  BOOST_TEST(read_answer(client).status == 200u);
}

BOOST_AUTO_TEST_CASE(version_of_http_other_than_1_is_rejected) {
  fixture f;
  f.check_refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "malformed");
}

BOOST_AUTO_TEST_CASE(client_that_does_not_take_its_response_is_left) {
  fixture f(small_limits());
  wire client(f.server.address, 4096);
  client.send(post("/big", ""));
  f.server.check_rejected("write_timeout");
  BOOST_TEST(f.server.is_left_alone());
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(client_that_vanishes_in_the_middle_of_its_response_is_counted) {
  fixture f;
  wire client(f.server.address, 4096);
  client.send(post("/big", ""));
  BOOST_TEST(client.fill(1000));
  client.vanish();
  f.server.check_rejected("vanished");
  BOOST_TEST(f.server.is_left_alone());
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(client_that_vanishes_in_the_middle_of_its_request_is_counted) {
  for (const std::string_view bytes :
       {"POST /x HT", "POST /x HTTP/1.1\r\nhost: t\r\ncontent-length: 5\r\n\r\na",
        "POST /x HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n5\r\na"}) {
    BOOST_TEST_CONTEXT(bytes) {
      fixture f;
      auto client = f.connect();
      client.send(bytes);
      client.finish();
      BOOST_TEST(client.at_end());
      f.server.check_rejected("vanished");
      f.check_good_request();
    }
  }
}

BOOST_AUTO_TEST_CASE(client_that_vanishes_while_its_handler_waits_leaves_nothing_behind) {
  fixture f;
  auto client = f.connect();
  client.send(post("/wait", "x"));
  BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
  client.vanish();
  f.answers.release();
  BOOST_TEST(f.server.is_left_alone());
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(unused_connection_is_closed_without_a_complaint) {
  server_limits limits;
  limits.idle = milliseconds(50);
  fixture f(limits);
  auto fresh = f.connect();
  auto used = f.connect();
  BOOST_TEST(ask(used, post("/", "x")).status == 200u);
  BOOST_TEST(fresh.at_end());
  BOOST_TEST(used.at_end());
  BOOST_TEST(f.server.all_rejected() == "");
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(chunked_body_beyond_the_memory_that_is_granted_is_rejected) {
  server_limits limits;
  limits.buffered_bytes = 1u << 20;
  fixture f(limits);
  std::string all(chunked_head);
  for (int i = 0; i < 40; ++i) all += chunk(std::string(100'000, 'x'));
  f.check_refused(all, 503, "memory");
}

BOOST_AUTO_TEST_CASE(many_connections_are_served_at_once) {
  fixture f;
  std::vector<wire> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(f.connect());
  for (auto& client : clients) client.send(post("/wait", "x"));
  BOOST_TEST(eventually([&] { return f.answers.waiting == 100; }));
  BOOST_TEST(f.here.metric("rw_http_open_connections{server=\"test\"}") == 100);
  f.check_good_request();
  f.answers.release();
  for (auto& client : clients) BOOST_TEST(read_answer(client).body == "x");
}

BOOST_AUTO_TEST_CASE(drain_does_not_break_off_connections_that_wait_to_be_accepted) {
  fixture f;
  std::vector<wire> waiting;
  // The server's thread does not accept while it does this.
  f.here.on_thread([&] {
    for (int i = 0; i < 3; ++i) waiting.emplace_back(f.server.address);
    f.server.get().drain();
  });
  for (auto& one : waiting) BOOST_TEST(one.at_end());
  BOOST_TEST(eventually([&] { return f.server.finished(); }));
  // By an orderly end, that is; the system would have reset those that the server had not taken.
  BOOST_TEST(f.here.metric("rw_http_connections_total{server=\"test\"}") == 3);
}

BOOST_AUTO_TEST_CASE(released_connection_ends_with_its_next_response_and_new_ones_are_accepted) {
  fixture f;
  auto client = f.connect();
  BOOST_TEST(ask(client, post("/1", "one")).body == "one");
  f.server.get().release_connections();
  const auto got = ask(client, post("/2", "two"));
  BOOST_TEST(got.body == "two");
  BOOST_TEST(got.says("connection: close"));
  BOOST_TEST(client.at_end());
  f.check_good_request();
}

BOOST_AUTO_TEST_CASE(drain_serves_begun_requests_and_closes_the_rest) {
  fixture f;
  auto idle = f.connect();
  BOOST_TEST(ask(idle, post("/", "x")).status == 200u);
  auto waiting = f.connect();
  waiting.send(post("/wait", "answered"));
  auto halfway = f.connect();
  const auto request = post("/half", "answered too");
  halfway.send(std::string_view(request).substr(0, 30));
  BOOST_TEST(
      eventually([&] { return f.answers.waiting == 1 && f.server.get().open_connections() == 3; }));
  // The half request was read: another connection's request was answered after it.
  BOOST_TEST(ask(idle, post("/", "y")).status == 200u);

  f.server.get().drain();
  BOOST_TEST(idle.at_end());
  halfway.send(std::string_view(request).substr(30));
  const auto second = read_answer(halfway);
  BOOST_TEST(second.body == "answered too");
  BOOST_TEST(second.says("connection: close"));
  BOOST_TEST(halfway.at_end());
  BOOST_TEST(!f.server.finished());
  f.answers.release();
  const auto got = read_answer(waiting);
  BOOST_TEST(got.body == "answered");
  BOOST_TEST(got.says("connection: close"));
  BOOST_TEST(waiting.at_end());
  BOOST_TEST(eventually([&] { return f.server.finished(); }));
  BOOST_CHECK_THROW(f.connect(), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(server_that_is_cancelled_closes_its_connections_and_ends_its_handlers) {
  fixture f;
  auto idle = f.connect();
  auto waiting = f.connect();
  waiting.send(post("/wait", "never answered"));
  BOOST_TEST(eventually([&] { return f.answers.waiting == 1; }));
  f.here.stop();
  BOOST_TEST(idle.at_end());
  BOOST_TEST(waiting.at_end());
  BOOST_TEST(f.answers.waiting == 0);
}

BOOST_AUTO_TEST_CASE(address_that_is_taken_is_named_at_the_start) {
  fixture f;
  const auto taken = [&] {
    server second(f.here.executor(), {"second", f.server.address, {}}, f.answers,
                  {*f.transport, f.here.watchdog, f.here.log, f.here.metrics});
  };
  const auto names_it = [&](const std::runtime_error& e) {
    return std::string(e.what()).find(std::to_string(f.server.address.port())) != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(taken(), std::runtime_error, names_it);
}

BOOST_AUTO_TEST_SUITE_END()
