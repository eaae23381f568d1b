#include "rw/reactors/events/admission.hpp"
#include "rw/tls/transport.hpp"

#include <boost/test/unit_test.hpp>

#include "review_text.hpp"
#include "tests/unit/http/echo.hpp"
#include "tests/unit/http/frames.hpp"
#include "tests/unit/http/host.hpp"
#include "tests/unit/http/wire.hpp"
#include "tests/unit/tls/pki.hpp"
#include <memory>
#include <string>

BOOST_AUTO_TEST_SUITE(webhook)

namespace {

using namespace rw::admission;
using namespace rw::http::test;
using rw::watch_event;

/// A webhook on plain sockets, or over TLS, with a channel that the test reads.
struct fixture {
  explicit fixture(std::unique_ptr<rw::core::transport> over = rw::core::make_plain_transport(),
                   std::size_t capacity = 100, rw::http::server_limits limits = {},
                   const rw::managers_in_use* managers = nullptr, probe_observer probe = {})
      : transport(std::move(over)),
        events(capacity),
        hook({.wait = std::chrono::milliseconds(50),
              .managers = managers,
              .probe = std::move(probe)},
             events, here.clock, here.log, here.metrics),
        server(here, *transport, hook, limits) {}
  ~fixture() { here.stop(); }

  wire connect() { return wire(server.address); }

  /// Whatever happened before, the next review is answered, and its event comes.
  void check_good_review() {
    while (events.try_receive()) {
    }
    auto next = connect();
    const auto got = ask(next, post("/validate/klm", review_text().text()));
    BOOST_TEST(got.status == 200u);
    BOOST_TEST(got.body.find(R"("allowed":true)") != std::string::npos);
    const auto event = events.try_receive();
    BOOST_TEST_REQUIRE(event.has_value());
    BOOST_TEST(event->manager == "klm");
    BOOST_TEST(event->watched.name == "default");
  }

  /// `request` is refused with `status` and one line, counted as an error; no event came of it, and
  /// the connection (unless it is to be closed) and the next review go on.
  void check_refused(const std::string& request, unsigned status) {
    const auto errors = metric("watcher_admission_request_error_total");
    auto client = connect();
    const auto got = ask(client, request);
    BOOST_TEST(got.status == status);
    BOOST_TEST(!got.body.empty());
    BOOST_TEST(got.body.find('\n') == got.body.size() - 1);
    BOOST_TEST(metric("watcher_admission_request_error_total") == errors + 1);
    BOOST_TEST(!events.try_receive());
    if (!got.says("connection: close")) {
      BOOST_TEST(ask(client, post("/validate/klm", review_text().text())).status == 200u);
    }
    check_good_review();
  }
  void check_refused_body(const std::string& body, unsigned status = 400) {
    check_refused(post("/validate/klm", body), status);
  }

  /// `body` is allowed, counted under `verdict`, and there is no event.
  void check_allowed(const std::string& body, const std::string& verdict) {
    auto client = connect();
    const auto got = ask(client, post("/validate/klm", body));
    BOOST_TEST(got.status == 200u);
    BOOST_TEST(got.body.find(R"("allowed":true)") != std::string::npos);
    BOOST_TEST(metric("rw_admission_reviews_total{verdict=\"" + verdict + "\"}") == 1);
    BOOST_TEST(!events.try_receive());
    check_good_review();
  }

  double metric(const std::string& series) { return here.metric(series); }

  host here;
  std::unique_ptr<rw::core::transport> transport;
  rw::core::channel<watch_event> events;
  rw::admission::webhook hook;
  running_server server;
};

std::unique_ptr<rw::core::transport> over_tls() {
  using namespace rw::tls::test;
  const auto& pki = the_pki();
  return good(rw::tls::make_server_transport(holding(pki.server, pki.ca.certificate_pem())));
}

}  // namespace

BOOST_AUTO_TEST_CASE(change_is_allowed_and_becomes_an_event_of_the_manager) {
  fixture f;
  auto client = f.connect();
  const auto got =
      ask(client, post("/validate/lifecycle-manager?timeout=15s", review_text().text()));
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.says("content-type: application/json\r\n"));
  BOOST_TEST(got.says("strict-transport-security: max-age=31536000; includeSubDomains\r\n"));
  BOOST_TEST(got.says("content-security-policy: default-src 'self'\r\n"));
  BOOST_TEST(got.body.find("0df28fbd-5f5f-11e8-bc74-36e6bb280816") != std::string::npos);
  const watch_event expected{"lifecycle-manager",
                             {"operator.kyma-project.io", "v1beta2", "Kyma"},
                             {"kyma-system", "default"}};
  BOOST_TEST((f.events.try_receive() == expected));
  BOOST_TEST(f.metric("watcher_admission_request_total") == 1);
  BOOST_TEST(f.metric("watcher_admission_request_error_total") == 0);
}

BOOST_AUTO_TEST_CASE(webhook_sends_no_event_when_the_file_does_not_name_the_manager) {
  rw::managers_in_use managers;
  fixture f(rw::core::make_plain_transport(), 100, {}, &managers);
  auto client = f.connect();
  const auto invented = post("/validate/invented", review_text().text());
  BOOST_TEST(ask(client, invented).status == 200u);
  BOOST_TEST(f.events.try_receive().has_value());  // no file yet: every manager is known
  managers.replace(rw::known_managers({{.manager = "klm"}}));
  const auto got = ask(client, invented);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.body.find(R"("allowed":true)") != std::string::npos);
  BOOST_TEST(got.body.find("0df28fbd-5f5f-11e8-bc74-36e6bb280816") != std::string::npos);
  BOOST_TEST(!f.events.try_receive());
  BOOST_TEST(f.metric("rw_admission_unknown_manager_total") == 1);
  BOOST_TEST(f.metric("rw_admission_reviews_total{verdict=\"unknown_manager\"}") == 1);
  f.check_good_review();
  managers.replace(rw::known_managers());
  BOOST_TEST(ask(client, post("/validate/klm", review_text().text())).status == 200u);
  BOOST_TEST(!f.events.try_receive());
}

BOOST_AUTO_TEST_CASE(probe_is_answered_with_a_warning_and_gives_no_event) {
  std::string probed;
  rw::managers_in_use managers;
  managers.replace({});
  fixture f(rw::core::make_plain_transport(), 100, {}, &managers, [&](std::string_view nonce) {
    probed += std::string(nonce) + ";";
    return std::string("well");
  });
  auto client = f.connect();
  const auto probe = [&](const std::string& name, const std::string& object) {
    return ask(client, post("/validate/runtime-watcher",
                            R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",)"
                            R"("request":{"uid":"u1","operation":"CREATE","name":")" +
                                name + R"(","object":)" + object + "}}"));
  };
  const auto got = probe("watcher-probe-0123456789abcdef", R"({"metadata":{}})");
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.body.find(R"("warnings":["well"])") != std::string::npos, got.body);
  BOOST_TEST(got.body.find(R"("allowed":true)") != std::string::npos);
  // Deep or large ones are answered, too.
  const auto deep = probe("n2", R"({"a":)" + std::string(100, '[') + std::string(100, ']') + "}");
  BOOST_TEST(deep.status == 200u);
  const auto large = probe("n3", R"({"a":")" + std::string(100'000, 'x') + "\"}");
  BOOST_TEST(large.status == 200u);
  for (const auto* name :
       {"0123456789abcdef", "watcher-probe-0123", R"(watcher-probe-\u00010123456789abcde)"}) {
    BOOST_TEST(probe(name, "{}").status == 200u);
  }
  BOOST_TEST(probed == "0123456789abcdef;;;;;;");
  BOOST_TEST(!f.events.try_receive());
  BOOST_TEST(f.metric("rw_admission_unknown_manager_total") == 0);
}

BOOST_AUTO_TEST_CASE(webhook_sends_an_event_of_a_subresource_that_the_file_names) {
  rw::managers_in_use managers;
  managers.replace(rw::known_managers(
      {{.manager = "klm", .field = "scale"}, {.manager = "other", .field = "spec"}}));
  fixture f(rw::core::make_plain_transport(), 100, {}, &managers);
  review_text review;
  review.subresource = "\"scale\"";
  auto client = f.connect();
  BOOST_TEST(ask(client, post("/validate/klm", review.text())).status == 200u);
  const auto event = f.events.try_receive();
  BOOST_REQUIRE(event.has_value());
  BOOST_TEST(event->manager == "klm");
  BOOST_TEST(event->watched.name == "default");
  BOOST_TEST(ask(client, post("/validate/other", review.text())).status == 200u);
  BOOST_TEST(!f.events.try_receive());
  BOOST_TEST(f.metric("rw_admission_reviews_total{verdict=\"invalid_subresource\"}") == 1);
}

BOOST_AUTO_TEST_CASE(full_channel_delays_the_response_and_then_warns) {
  fixture f(rw::core::make_plain_transport(), 1);
  auto client = f.connect();
  const auto request = post("/validate/klm", review_text().text());
  BOOST_TEST(ask(client, request).status == 200u);
  const auto got = ask(client, request);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.body.find(R"("allowed":true)") != std::string::npos);
  BOOST_TEST(got.body.find(R"("warnings":[)") != std::string::npos);
  BOOST_TEST(f.metric("rw_admission_overflow_total") == 1);
  f.check_good_review();
}

BOOST_AUTO_TEST_CASE(channel_that_is_full_for_a_moment_only_delays_the_response) {
  fixture f(rw::core::make_plain_transport(), 1);
  auto client = f.connect();
  const auto request = post("/validate/klm", review_text().text());
  BOOST_TEST(ask(client, request).status == 200u);
  client.send(request);
  BOOST_TEST(eventually([&] { return f.events.try_receive().has_value(); }));
  const auto got = read_answer(client);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(eventually([&] {
    return f.events.try_receive().has_value() || f.metric("rw_admission_overflow_total") == 1;
  }));
}

BOOST_AUTO_TEST_CASE(empty_body_is_rejected) {
  fixture f;
  f.check_refused_body("");
}

BOOST_AUTO_TEST_CASE(body_that_is_not_json_is_rejected) {
  fixture f;
  f.check_refused_body("<review/>");
  f.check_refused_body(std::string("\0\xff\xfe", 3));
}

BOOST_AUTO_TEST_CASE(truncated_json_is_refused_wherever_it_was_cut) {
  fixture f;
  const auto whole = review_text().text();
  for (const auto size : {std::size_t{1}, whole.size() / 3, whole.size() / 2, whole.size() - 1}) {
    f.check_refused_body(whole.substr(0, size));
  }
}

BOOST_AUTO_TEST_CASE(deeply_nested_json_is_refused) {
  fixture f;
  const std::string depth(1'000'000, '[');
  f.check_refused_body(depth);
  review_text nested;
  nested.object = R"({"spec":)" + std::string(600, '[') + std::string(600, ']') + "}";
  f.check_refused_body(nested.text());
}

BOOST_AUTO_TEST_CASE(of_duplicate_keys_the_last_wins) {
  fixture f;
  auto body = review_text().request();
  body.insert(body.size() - 1, R"(,"dryRun":true)");
  f.check_allowed(review_text().around(body), "dry_run");
}

BOOST_AUTO_TEST_CASE(null_request_is_rejected) {
  fixture f;
  f.check_refused_body(review_text().around("null"));
  f.check_refused_body(review_text().around(std::nullopt));
}

BOOST_AUTO_TEST_CASE(review_without_a_uid_is_rejected) {
  fixture f;
  for (const auto& uid :
       {review_text::json(), review_text::json("null"), review_text::json("\"\"")}) {
    review_text review;
    review.uid = uid;
    f.check_refused_body(review.text());
  }
}

BOOST_AUTO_TEST_CASE(unknown_operation_is_allowed_and_counted) {
  fixture f;
  review_text review;
  review.operation = R"("PATCH")";
  f.check_allowed(review.text(), "unknown_operation");
}

BOOST_AUTO_TEST_CASE(body_of_9_mib_is_rejected) {
  fixture f;
  f.check_refused_body(std::string(9u << 20, ' '), 413);
  f.server.check_rejected("body_size");
}

BOOST_AUTO_TEST_CASE(review_of_7_mib_is_taken) {
  fixture f;
  review_text review;
  review.old_object = review_text::watched(R"({"data":")" + std::string(7u << 20, 'x') + "\"}", {});
  auto client = f.connect();
  BOOST_TEST(ask(client, post("/validate/klm", review.text())).status == 200u);
  BOOST_TEST(f.events.try_receive().has_value());
}

BOOST_AUTO_TEST_CASE(chunked_review_without_an_end_times_out) {
  rw::http::server_limits limits;
  limits.body = std::chrono::milliseconds(100);
  fixture f(rw::core::make_plain_transport(), 100, limits);
  f.check_refused(
      "POST /validate/klm HTTP/1.1\r\nhost: t\r\ntransfer-encoding: "
      "chunked\r\n\r\n5\r\n{\"a\":\r\n",
      408);
  f.server.check_rejected("body_timeout");
}

BOOST_AUTO_TEST_CASE(webhook_responds_404_to_other_paths) {
  fixture f;
  for (const auto* path :
       {"/", "/validate", "/mutate/klm", "/healthz", "/Validate/klm", "//validate/klm"}) {
    BOOST_TEST_CONTEXT(path) {
      f.check_refused(post(path, review_text().text()), 404);
    }
  }
}

BOOST_AUTO_TEST_CASE(empty_manager_is_not_found) {
  fixture f;
  f.check_refused(post("/validate/", review_text().text()), 404);
  f.check_refused(post("/validate/?x=y", review_text().text()), 404);
}

BOOST_AUTO_TEST_CASE(manager_that_is_no_plain_name_is_rejected) {
  fixture f;
  for (const auto* path : {"/validate/..", "/validate/.", "/validate/../v2/other",
                           "/validate/%2e%2e", "/validate/a%2Fb", "/validate/a/b",
                           "/validate/a%00b", "/validate/klm/", "/validate/a;b", "/validate/%"}) {
    BOOST_TEST_CONTEXT(path) {
      f.check_refused(post(path, review_text().text()), 400);
    }
  }
  f.check_refused(post("/validate/" + std::string(254, 'a'), review_text().text()), 400);
}

BOOST_AUTO_TEST_CASE(request_with_another_method_is_rejected) {
  fixture f;
  for (const auto* method : {"GET", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"}) {
    BOOST_TEST_CONTEXT(method) {
      f.check_refused(std::string(method) + " /validate/klm HTTP/1.1\r\nhost: t\r\n\r\n", 405);
    }
  }
  auto client = f.connect();
  BOOST_TEST(ask(client, "GET /validate/klm HTTP/1.1\r\nhost: t\r\n\r\n").says("allow: POST\r\n"));
}

// --- over TLS ------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(reviews_are_taken_over_tls_with_either_protocol) {
  fixture f(over_tls());
  wire http1(f.server.address, wire_tls{.alpn = "\x08http/1.1"});
  BOOST_TEST(ask(http1, post("/validate/klm", review_text().text())).status == 200u);
  h2_wire http2(wire(f.server.address, wire_tls{.alpn = "\x02h2\x08http/1.1"}));
  BOOST_TEST(http2.ask(1, "/validate/klm", review_text().text()).status == 200u);
  BOOST_TEST(f.events.try_receive().has_value());
  BOOST_TEST(f.events.try_receive().has_value());
  BOOST_TEST(f.server.all_rejected() == "");
}

struct tls_fixture : fixture {
  tls_fixture() : fixture(over_tls()) {}
  void check_good_review_over_tls() {
    wire next(server.address, wire_tls{});
    BOOST_TEST(ask(next, post("/validate/klm", review_text().text())).status == 200u);
    BOOST_TEST(events.try_receive().has_value());
  }
};

BOOST_AUTO_TEST_CASE(plain_http_on_the_tls_port_is_left) {
  tls_fixture f;
  auto client = f.connect();
  client.send(post("/validate/klm", review_text().text()));
  const auto got = client.take(100'000);
  BOOST_TEST(got.find("HTTP") == std::string::npos);
  f.server.check_rejected("handshake");
  f.check_good_review_over_tls();
}

BOOST_AUTO_TEST_CASE(tls_1_2_is_refused) {
  tls_fixture f;
  wire client(f.server.address, wire_tls{.version = TLS1_2_VERSION});
  BOOST_TEST(!client.connected());
  f.server.check_rejected("handshake");
  f.check_good_review_over_tls();
}

BOOST_AUTO_TEST_CASE(handshake_that_does_not_go_on_times_out) {
  rw::http::server_limits limits;
  limits.handshake = std::chrono::milliseconds(100);
  fixture f(over_tls(), 100, limits);
  auto silent = f.connect();
  BOOST_TEST(silent.take(1).empty());
  f.server.check_rejected("handshake");
  BOOST_TEST(f.server.is_left_alone());
}

BOOST_AUTO_TEST_CASE(client_that_vanishes_over_tls_leaves_nothing_behind) {
  tls_fixture f;
  wire client(f.server.address, wire_tls{});
  const auto request = post("/validate/klm", review_text().text());
  client.send(std::string_view(request).substr(0, 500));
  client.vanish();
  f.server.check_rejected("vanished");
  BOOST_TEST(f.server.is_left_alone());
  f.check_good_review_over_tls();
}

BOOST_AUTO_TEST_SUITE_END()
