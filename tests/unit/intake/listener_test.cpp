#include "rw/reactors/intake/listener.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/http/host.hpp"
#include "tests/unit/http/wire.hpp"
#include "tests/unit/tls/namesake.hpp"
#include "tests/unit/tls/pki.hpp"
#include <csignal>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

BOOST_AUTO_TEST_SUITE(listener)

namespace {

using namespace rw::listener;
using namespace rw::http::test;
using namespace rw::tls::test;

constexpr std::string_view event_json =
    R"({"watched":{"Namespace":"kyma-system","Name":"default"},)"
    R"("watchedGvk":{"group":"operator.kyma-project.io","version":"v1beta2","kind":"Kyma"}})";

std::string event_of(const std::string& name) {
  return R"({"watched":{"Namespace":"n","Name":")" + name +
         R"("},"watchedGvk":{"version":"v1","kind":"Pod"}})";
}

/// Distinct events, `first` and on.
std::string batch_of(int count, int first = 0) {
  std::string all = "[";
  for (int i = 0; i < count; ++i) all += (i > 0 ? "," : "") + event_of(std::to_string(first + i));
  return all + "]";
}

std::string url_encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += code;
  }
  return out;
}

std::string xfcc(const std::string& certificate) {
  return "x-forwarded-client-cert: Cert=\"" + url_encoded(certificate) + "\"\r\n";
}

listener_options plain_options() {
  listener_options options;
  options.address = {boost::asio::ip::address_v4::loopback(), 0};
  options.component = "klm";
  return options;
}

/// A listener, its channel, and a sender that it knows.
struct fixture {
  explicit fixture(listener_options options = plain_options())
      : made(register_component(here.executor(), std::move(options),
                                {here.clock, here.watchdog, log, here.metrics})) {
    here.spawn(made.runnable->run());
  }
  ~fixture() { here.stop(); }

  wire connect() { return wire(made.runnable->address()); }

  answer send(std::string_view target, std::string_view body, std::string_view fields) {
    auto client = connect();
    return ask(client, post(target, body, fields));
  }

  double metric(const std::string& name) {
    return here.metric(name + "{server_name=\"listener\"}");
  }

  void check_good_event() {
    while (made.events->try_receive()) {
    }
    const auto got = send("/v2/klm/event", event_json, good_sender);
    BOOST_TEST(got.status == 200u);
    const auto event = made.events->try_receive();
    BOOST_TEST_REQUIRE(event.has_value());
    BOOST_TEST(event->runtime_id == "runtime-1");
    BOOST_TEST(event->event.watched.name == "default");
  }

  /// The request is refused with `status`, counted as an error, and has no event; the next is
  /// taken.
  void check_refused(unsigned status, std::string_view fields, std::string_view body = event_json,
                     std::string_view target = "/v2/klm/event") {
    const auto errors = metric("watcher_listener_request_errors_total");
    const auto got = send(target, body, fields);
    BOOST_TEST(got.status == status);
    BOOST_TEST(!got.body.empty());
    BOOST_TEST(metric("watcher_listener_request_errors_total") == errors + 1);
    BOOST_TEST(!made.events->try_receive());
    BOOST_TEST(metric("watcher_listener_inflight_requests") == 0);
  }

  bool logged(const std::string& part) {
    const std::lock_guard lock(guard);
    return lines.find(part) != std::string::npos;
  }

  host here;
  std::mutex guard;
  std::string lines;
  rw::core::logger log{rw::core::log_level::info, [this](std::string_view line) {
                         const std::lock_guard lock(guard);
                         lines += line;
                       }};
  std::string good_sender = xfcc(the_pki().client.certificate);
  registration made;
};

}  // namespace

BOOST_AUTO_TEST_CASE(event_arrives_with_its_sender_and_its_component) {
  fixture f;
  const auto got = f.send("/v2/klm/event", event_json, f.good_sender);
  BOOST_TEST(got.status == 200u);
  BOOST_TEST(got.says("watch-event-batch: "));
  const auto event = f.made.events->try_receive();
  BOOST_TEST_REQUIRE(event.has_value());
  BOOST_TEST(event->runtime_id == "runtime-1");
  BOOST_TEST((event->event == rw::watch_event{"klm",
                                              {"operator.kyma-project.io", "v1beta2", "Kyma"},
                                              {"kyma-system", "default"}}));
  BOOST_TEST(f.metric("watcher_listener_requests_total") == 1);
  BOOST_TEST(f.metric("watcher_listener_request_errors_total") == 0);
}

BOOST_AUTO_TEST_CASE(sender_without_the_header_is_not_identified) {
  fixture f;
  f.check_refused(401, "");
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(header_that_is_too_long_is_not_believed) {
  fixture f;
  f.check_refused(401, "x-forwarded-client-cert: Cert=" + std::string(33'000, 'a') + "\r\n");
  f.check_refused(431, "x-forwarded-client-cert: Cert=" + std::string(70'000, 'a') + "\r\n");
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(malformed_header_identifies_no_sender) {
  fixture f;
  const auto encoded = url_encoded(the_pki().client.certificate);
  for (const auto& value :
       {std::string("nonsense"), std::string("Hash=abc;Subject=\"CN=runtime-1\""),
        std::string("Cert="), std::string("Cert=%zz"), std::string("Cert=%"),
        std::string("Cert=\"unterminated"), std::string("Cert=-----BEGIN%20CERTIFICATE-----"),
        "Cert=\"" + encoded.substr(0, 300) + "\"", std::string(",;,;=")}) {
    BOOST_TEST_CONTEXT(value.substr(0, 60)) {
      f.check_refused(401, "x-forwarded-client-cert: " + value + "\r\n");
    }
  }
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(certificate_without_a_name_is_a_bad_request) {
  fixture f;
  const auto nameless =
      good(the_pki().ca.issue({.dns_names = {"runtime.example.com"}, .client_auth = true}));
  f.check_refused(400, xfcc(nameless.certificate));
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(header_with_two_certificates_is_refused_and_counted) {
  fixture f;
  const auto other = good(the_pki().ca.issue({.common_name = "someone-else", .client_auth = true}));
  const auto own = url_encoded(the_pki().client.certificate);
  // As Envoy writes a URI of the client's certificate, which its owner chose.
  f.check_refused(401, "x-forwarded-client-cert: Hash=1;Cert=\"" + url_encoded(other.certificate) +
                           "\";Subject=\"CN=someone-else\";URI=x,Hash=2;Cert=" + own + "\r\n");
  f.check_refused(401, "x-forwarded-client-cert: Cert=" + own + "\r\n" +
                           "x-forwarded-client-cert: Cert=" + own + "\r\n");
  const auto counted = [&](const std::string& reason) {
    return f.here.metric("rw_listener_unidentified_requests_total{reason=\"" + reason + "\"}");
  };
  BOOST_TEST(counted("several_certificates") == 2);
  f.check_refused(401, "x-forwarded-client-cert: Hash=1\r\n");
  f.check_refused(401, "x-forwarded-client-cert: Cert=\"\r\n");
  f.check_refused(401, "");
  BOOST_TEST(counted("no_certificate") == 1);
  BOOST_TEST(counted("malformed_header") == 1);
  BOOST_TEST(counted("no_header") == 1);
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(header_from_a_peer_that_is_no_trusted_proxy_is_not_believed) {
  auto options = plain_options();
  options.trusted_proxies = "10.0.0.0/8,fd00::/8";
  fixture f(options);
  f.check_refused(401, f.good_sender);
}

BOOST_AUTO_TEST_CASE(certificate_with_the_subject_of_its_ca_identifies_its_sender) {
  const auto& ca = the_pki().ca;
  for (const auto& trusted :
       {trusting(ca.certificate_pem()), std::shared_ptr<rw::tls::credentials>()}) {
    auto options = plain_options();
    options.client_ca = trusted;
    fixture f(options);
    BOOST_TEST(f.send("/v2/klm/event", event_json, xfcc(namesake(ca).certificate)).status == 200u);
    const auto event = f.made.events->try_receive();
    BOOST_TEST_REQUIRE(event.has_value());
    BOOST_TEST(event->runtime_id == "test CA");
  }
}

BOOST_AUTO_TEST_CASE(self_signed_certificate_is_not_believed_when_a_ca_is_given) {
  auto options = plain_options();
  options.client_ca = trusting(the_pki().ca.certificate_pem());
  fixture f(options);
  f.check_refused(401, xfcc(namesake(the_pki().ca, {.signs_itself = true}).certificate));
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(duration_is_that_of_the_latest_request_and_a_histogram) {
  fixture f;
  f.send("/v2/klm/event", event_json, f.good_sender);
  f.send("/v2/klm/event", event_json, "");
  BOOST_TEST(f.metric("watcher_listener_request_duration") >= 0);
  BOOST_TEST(f.here.metric("rw_listener_request_seconds_count") == 2);
  BOOST_TEST(f.here.metric("rw_listener_request_seconds_sum") >=
             f.metric("watcher_listener_request_duration"));
}

BOOST_AUTO_TEST_CASE(certificate_of_a_foreign_ca_is_not_believed) {
  auto options = plain_options();
  options.client_ca = trusting(the_pki().ca.certificate_pem());
  fixture f(options);
  f.check_refused(401, xfcc(the_pki().foreign.certificate));
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(certificate_that_has_expired_is_not_believed) {
  fixture f;
  const auto expired = good(
      the_pki().ca.issue({.common_name = "runtime-1",
                          .client_auth = true,
                          .not_before = std::chrono::system_clock::now() - std::chrono::hours(48),
                          .validity = std::chrono::hours(24)}));
  f.check_refused(401, xfcc(expired.certificate));
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(listener_responds_404_to_another_path_or_component) {
  fixture f;
  for (const auto* path : {"/", "/v2", "/v2/", "/v2/klm", "/v2/klm/", "/v3/klm/event",
                           "/v2/other/event", "/v2/klm/eventful", "/v2/klmx/event", "/v2//event",
                           "/v2/klm/../klm/event", "/v2/%6blm/event", "v2/klm/event"}) {
    BOOST_TEST_CONTEXT(path) {
      f.check_refused(404, f.good_sender, event_json, path);
    }
  }
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(request_with_another_method_is_rejected) {
  fixture f;
  auto client = f.connect();
  const auto got = ask(client, "GET /v2/klm/event HTTP/1.1\r\nhost: t\r\n\r\n");
  BOOST_TEST(got.status == 405u);
  BOOST_TEST(got.says("allow: POST\r\n"));
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(bad_body_is_rejected) {
  fixture f;
  for (const std::string_view body :
       {"", "null", "[]", "{", "{}", "not json", R"({"watched":{"Namespace":"a","Name":"b"}})"}) {
    BOOST_TEST_CONTEXT(body) {
      f.check_refused(400, f.good_sender, body);
    }
  }
  f.check_refused(400, f.good_sender, std::string(1000, '['));
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(event_of_more_than_16_kib_is_rejected) {
  fixture f;
  f.check_refused(413, f.good_sender, std::string(16 * 1024 + 1, ' '));
  BOOST_TEST(f.metric("watcher_listener_exceeding_size_limit_requests_total") == 1);
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(batch_is_accepted_but_for_its_invalid_events) {
  fixture f;
  const auto batch =
      "[" + std::string(event_json) + R"(,{"watched":17},)" + event_of("another") + "]";
  const auto got = f.send("/v2/klm/events", batch, f.good_sender);
  BOOST_TEST(got.status == 207u);
  BOOST_TEST(got.body == R"([{"index":1,"status":400}])");
  BOOST_TEST(f.made.events->try_receive().has_value());
  BOOST_TEST(f.made.events->try_receive().has_value());
  BOOST_TEST(!f.made.events->try_receive().has_value());
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(batch_that_is_no_array_or_too_long_is_rejected) {
  fixture f;
  f.check_refused(400, f.good_sender, event_json, "/v2/klm/events");
  std::string all = "[";
  for (int i = 0; i < 513; ++i) all += std::string(i > 0 ? "," : "") + std::string(event_json);
  f.check_refused(413, f.good_sender, all + "]", "/v2/klm/events");
  f.check_refused(413, f.good_sender, std::string((1u << 20) + 1, ' '), "/v2/klm/events");
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(event_that_verification_refuses_is_not_delivered) {
  auto options = plain_options();
  options.verify = [](const rw::http::request&, const rw::watch_event& event,
                      const event_sender& who) {
    return who.runtime_id == "runtime-1" && event.watched.name != "secret";
  };
  fixture f(options);
  const std::string refused =
      R"({"watched":{"Namespace":"n","Name":"secret"},"watchedGvk":{"version":"v1","kind":"Pod"}})";
  f.check_refused(403, f.good_sender, refused);
  BOOST_TEST(f.here.metric("watcher_listener_failed_verification_requests_total{"
                           "request_uri_label=\"/v2/klm/event\",server_name=\"listener\"}") == 1);
  const auto batch = "[" + refused + "," + std::string(event_json) + "]";
  BOOST_TEST(f.send("/v2/klm/events", batch, f.good_sender).body ==
             R"([{"index":0,"status":403}])");
  f.check_good_event();
}

// --- the fair queue ------------------------------------------------------------------------------

namespace {

/// What the listener holds outside of its queue when nobody reads: the channel, and the next event.
constexpr int in_front = rw::listener::listener::channel_capacity + 1;

listener_options bounded(std::size_t runtime_events, std::size_t events = 18000) {
  auto options = plain_options();
  options.runtime_events = runtime_events;
  options.events = events;
  return options;
}

struct with_other : fixture {
  using fixture::fixture;
  answer send_batch(int count, int first = 0) {
    return send("/v2/klm/events", batch_of(count, first), good_sender);
  }
  answer send_other(const std::string& name) {
    return send("/v2/klm/event", event_of(name), other_sender);
  }
  /// Sends events 0 and on, which all leave the queue.
  void fill_channel() {
    for (int i = 0; i < in_front; ++i) BOOST_TEST(send_batch(1, i).status == 200u);
  }
  double rejected(const std::string& reason) {
    return here.metric("rw_listener_rejected_events_total{reason=\"" + reason + "\"}");
  }
  /// Reads `count` events; returns the runtimes' ids.
  std::vector<std::string> read(int count) {
    std::vector<std::string> out;
    for (int i = 0; i < count; ++i) {
      std::optional<received_event> one;
      if (!eventually([&] { return (one = made.events->try_receive()).has_value(); })) break;
      BOOST_TEST(one->event.manager == "klm");
      out.push_back(one->runtime_id);
    }
    return out;
  }

  std::string other_sender =
      xfcc(good(the_pki().ca.issue({.common_name = "runtime-2", .client_auth = true})).certificate);
};

}  // namespace

BOOST_AUTO_TEST_CASE(full_share_is_refused_to_its_runtime_alone) {
  with_other f(bounded(2));
  f.fill_channel();
  BOOST_TEST(f.send_batch(2, in_front).status == 200u);
  const auto got = f.send("/v2/klm/event", event_json, f.good_sender);
  BOOST_TEST(got.status == 503u);
  BOOST_TEST(got.says("retry-after: 1\r\n"));
  BOOST_TEST(f.rejected("share") == 1);
  BOOST_TEST(f.logged(R"("status":503)"));
  BOOST_TEST(f.logged(R"("runtime_id":"runtime-1")"));
  BOOST_TEST(f.send_other("x").status == 200u);
  f.read(in_front + 3);
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(batch_beyond_its_share_is_accepted_in_part) {
  with_other f(bounded(2));
  const auto got = f.send_batch(4);
  BOOST_TEST(got.status == 207u);
  BOOST_TEST(got.says("retry-after: 1\r\n"));
  BOOST_TEST(got.body == R"([{"index":2,"status":503},{"index":3,"status":503}])");
  BOOST_TEST(f.rejected("share") == 2);
  BOOST_TEST(f.read(2).size() == 2u);
  BOOST_TEST(f.send_batch(2, 2).status == 200u);
}

BOOST_AUTO_TEST_CASE(full_queue_is_refused_to_the_runtime_that_fills_it_alone) {
  with_other f(bounded(100, 12));
  f.fill_channel();
  BOOST_TEST(f.send_batch(4, in_front).status == 200u);
  BOOST_TEST(f.send_batch(1, 99).body == R"([{"index":0,"status":503}])");
  BOOST_TEST(f.rejected("full") == 1);
  BOOST_TEST(f.send_other("x").status == 200u);
}

BOOST_AUTO_TEST_CASE(runtime_is_not_overtaken_by_another_that_floods) {
  with_other f;
  BOOST_TEST(f.send_batch(512).status == 200u);
  BOOST_TEST(f.send_other("x").status == 200u);
  const auto order = f.read(in_front + 2);
  BOOST_TEST(std::ranges::count(order, "runtime-2") == 1);
}

BOOST_AUTO_TEST_CASE(equal_pending_event_is_accepted_as_the_same) {
  with_other f(bounded(1));
  f.fill_channel();
  BOOST_TEST(f.send_batch(1, in_front).status == 200u);
  BOOST_TEST(f.send_batch(1, in_front).status == 200u);
  BOOST_TEST(f.here.metric("rw_listener_coalesced_events_total") == 1);
  BOOST_TEST(f.read(in_front + 1).size() == std::size_t{in_front + 1});
  f.here.on_thread([] {});
  BOOST_TEST(!f.made.events->try_receive());
}

BOOST_AUTO_TEST_CASE(pending_events_are_measured) {
  with_other f;
  f.send_batch(in_front + 5);
  BOOST_TEST(f.here.metric("rw_listener_pending_events") == 6);
  BOOST_TEST(f.here.metric("rw_listener_channel_events") == in_front - 1);
  BOOST_TEST(f.here.metric("rw_listener_pending_seconds_count") == in_front);
  f.read(in_front + 5);
  BOOST_TEST(eventually([&] { return f.here.metric("rw_listener_pending_events") == 0; }));
  BOOST_TEST(f.here.metric("rw_listener_pending_seconds_count") == in_front + 5);
}

BOOST_AUTO_TEST_CASE(drained_listener_hands_over_what_is_pending_and_then_closes_its_channel) {
  with_other f;
  BOOST_TEST(f.send_batch(512).status == 200u);
  f.made.runnable->drain();
  BOOST_TEST(f.read(512).size() == 512u);
  BOOST_TEST(eventually([&] { return f.made.events->is_closed(); }));
  BOOST_TEST(f.here.metric("rw_listener_abandoned_events_total") == 0);
}

BOOST_AUTO_TEST_CASE(events_that_are_pending_at_cancellation_are_counted_and_logged) {
  with_other f;
  BOOST_TEST(f.send_batch(100).status == 200u);
  f.made.runnable->drain();
  f.here.stop();
  BOOST_TEST(f.made.runnable->pending() == 100u - in_front + 1);
  BOOST_TEST(f.here.metric("rw_listener_abandoned_events_total") == 100 - in_front + 1);
  BOOST_TEST(f.logged(R"("accepted events lost at the end")"));
  BOOST_TEST(f.read(in_front - 1).size() == std::size_t{in_front - 1});
  BOOST_TEST(f.made.events->is_closed());
}

BOOST_AUTO_TEST_CASE(event_is_refused_when_the_host_has_closed_the_channel) {
  with_other f;
  f.send_batch(100);
  f.made.events->close();
  BOOST_TEST(f.send_other("x").status == 503u);
  BOOST_TEST(f.rejected("closed") == 1);
  f.made.runnable->drain();
  BOOST_TEST(
      eventually([&] { return f.here.metric("rw_listener_abandoned_events_total") == 83 + 1; }));
}

BOOST_AUTO_TEST_CASE(request_that_does_not_end_while_draining_has_its_connection_closed) {
  auto options = plain_options();
  options.drain_requests = std::chrono::milliseconds(1);
  with_other f(options);
  auto slow = f.connect();
  const auto request = post("/v2/klm/event", event_json, f.good_sender);
  slow.send(request.substr(0, request.size() - 1));
  BOOST_TEST(f.send_other("x").status == 200u);
  f.made.runnable->drain();
  BOOST_TEST(f.read(1).size() == 1u);
  BOOST_TEST(read_answer(slow).status == 0u);
  BOOST_TEST(eventually([&] { return f.made.events->is_closed(); }));
}

BOOST_AUTO_TEST_CASE(sender_is_told_to_come_again_while_another_replica_takes_the_events) {
  auto options = plain_options();
  std::atomic<bool> leads = false;
  options.takes_events = [&] { return leads.load(); };
  fixture f(options);
  f.check_refused(503, f.good_sender);
  auto client = f.connect();
  client.send(post("/v2/klm/event", event_json, f.good_sender));
  const auto got = read_answer(client);
  BOOST_TEST(got.says("retry-after: 1\r\n"));
  BOOST_TEST(got.says("connection: close"));
  BOOST_TEST(client.at_end(), "the next connection may lead to that replica");
  leads = true;
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(drained_listener_closes_its_channel) {
  fixture f;
  f.check_good_event();
  f.made.runnable->drain();
  BOOST_TEST(eventually([&] { return f.made.events->is_closed(); }));
}

// --- refusals
// -------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(rejection_is_logged_with_its_peer_and_path) {
  const auto check = [](unsigned status, const std::string& target, const std::string& body,
                        bool identified) {
    fixture f;
    BOOST_TEST(f.send(target, body, identified ? f.good_sender : "").status == status);
    BOOST_TEST_CONTEXT(status << " " << target << ": " << f.lines) {
      BOOST_TEST(f.logged(R"("peer":"127.0.0.1")"));
      BOOST_TEST(f.logged(R"("path":")" + target + '"'));
      BOOST_TEST(f.logged(R"("status":)" + std::to_string(status)));
      if (identified && status != 404) BOOST_TEST(f.logged(R"("runtime_id":"runtime-1")"));
    }
  };
  check(404, "/v2/other/event", std::string(event_json), true);
  check(401, "/v2/klm/event", std::string(event_json), false);
  check(400, "/v2/klm/event", "nonsense", true);
  check(400, "/v2/klm/events", "nonsense", true);
  check(207, "/v2/klm/events", "[17," + std::string(event_json) + "]", true);
  std::string all = "[";
  for (int i = 0; i < 513; ++i) all += std::string(i > 0 ? "," : "") + std::string(event_json);
  check(413, "/v2/klm/events", all + "]", true);
}

BOOST_AUTO_TEST_CASE(batch_with_failed_elements_counts_as_an_error) {
  fixture f;
  const auto batch = "[" + std::string(event_json) + R"(,{"watched":17}])";
  BOOST_TEST(f.send("/v2/klm/events", batch, f.good_sender).status == 207u);
  BOOST_TEST(f.metric("watcher_listener_request_errors_total") == 1);
  const auto good = "[" + std::string(event_json) + "]";
  BOOST_TEST(f.send("/v2/klm/events", good, f.good_sender).status == 200u);
  BOOST_TEST(f.metric("watcher_listener_request_errors_total") == 1);
}

BOOST_AUTO_TEST_CASE(verification_that_throws_is_an_error_of_the_server_and_delivers_nothing) {
  auto options = plain_options();
  options.verify = [](const rw::http::request&, const rw::watch_event& event, const event_sender&) {
    if (event.watched.name == "bad") throw std::runtime_error("index not ready");
    return true;
  };
  fixture f(options);
  const std::string bad =
      R"({"watched":{"Namespace":"n","Name":"bad"},"watchedGvk":{"version":"v1","kind":"Pod"}})";
  f.check_refused(500, f.good_sender, bad);
  BOOST_TEST(f.logged("index not ready"));
  BOOST_TEST(f.logged(R"("peer":"127.0.0.1")"));
  const auto batch = "[" + bad + "," + std::string(event_json) + "]";
  BOOST_TEST(f.send("/v2/klm/events", batch, f.good_sender).body ==
             R"([{"index":0,"status":500}])");
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(event_with_a_name_over_253_bytes_is_refused) {
  fixture f;
  const auto event = [](std::size_t size) { return event_of(std::string(size, 'n')); };
  BOOST_TEST(f.send("/v2/klm/event", event(253), f.good_sender).status == 200u);
  BOOST_TEST(f.made.events->try_receive().has_value());
  f.check_refused(400, f.good_sender, event(254));
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(component_that_is_no_path_segment_is_refused) {
  for (const auto* component : {"", "a/b", ".."}) {
    auto options = plain_options();
    options.component = component;
    host here;
    BOOST_CHECK_THROW(register_component(here.executor(), options,
                                         {here.clock, here.watchdog, here.log, here.metrics}),
                      std::runtime_error);
  }
}

// --- terminating mutual TLS ----------------------------------------------------------------------

struct tls_fixture : fixture {
  tls_fixture() : fixture(options()) {}
  static listener_options options() {
    auto made = plain_options();
    made.tls = holding(the_pki().server, the_pki().ca.certificate_pem());
    return made;
  }
  double refused_handshakes() {
    return here.metric("rw_http_rejected_total{reason=\"handshake\",server=\"listener\"}");
  }
};

BOOST_AUTO_TEST_CASE(certificate_of_the_connection_identifies_the_sender_whatever_the_header_says) {
  tls_fixture f;
  const auto other = good(the_pki().ca.issue({.common_name = "someone-else", .client_auth = true}));
  wire client(f.made.runnable->address(), wire_tls{.own = &the_pki().client});
  BOOST_TEST(ask(client, post("/v2/klm/event", event_json, xfcc(other.certificate))).status ==
             200u);
  BOOST_TEST(ask(client, post("/v2/klm/event", event_json)).status == 200u);
  BOOST_TEST(f.made.events->try_receive()->runtime_id == "runtime-1");
  BOOST_TEST(f.made.events->try_receive()->runtime_id == "runtime-1");
}

BOOST_AUTO_TEST_CASE(connection_without_a_certificate_or_with_a_foreign_one_is_rejected) {
  tls_fixture f;
  wire nobody(f.made.runnable->address(), wire_tls{});
  nobody.send(post("/v2/klm/event", event_json, f.good_sender));
  BOOST_TEST(read_answer(nobody).status == 0u);
  wire foreign(f.made.runnable->address(), wire_tls{.own = &the_pki().foreign});
  foreign.send(post("/v2/klm/event", event_json));
  BOOST_TEST(read_answer(foreign).status == 0u);
  BOOST_TEST(eventually([&] { return f.refused_handshakes() == 2; }));
  BOOST_TEST(!f.made.events->try_receive());
  wire client(f.made.runnable->address(), wire_tls{.own = &the_pki().client});
  BOOST_TEST(ask(client, post("/v2/klm/event", event_json)).status == 200u);
}

/// Certificates that are replaced while connections are open.
struct rotating : fixture {
  explicit rotating(const std::string& ca) : rotating(holding(the_pki().server, ca)) {}
  explicit rotating(std::shared_ptr<rw::tls::credentials> own)
      : fixture(options_with(own)), own(std::move(own)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that were dropped
  }
  static listener_options options_with(std::shared_ptr<rw::tls::credentials> own) {
    auto made = plain_options();
    made.tls = std::move(own);
    return made;
  }
  wire connect_as(const rw::tls::key_pair& who) {
    return wire(made.runnable->address(), wire_tls{.own = &who});
  }
  unsigned send_on(wire& client) { return ask(client, post("/v2/klm/event", event_json)).status; }
  void trust(const std::string& ca) {
    own->replace(good(rw::tls::material::from_text(
        {.certificate = the_pki().server.certificate, .key = the_pki().server.key, .ca = ca})));
  }
  double connections() { return here.metric("rw_http_connections_total{server=\"listener\"}"); }
  void forget_events() {
    while (made.events->try_receive()) {
    }
  }

  std::shared_ptr<rw::tls::credentials> own;
};

BOOST_AUTO_TEST_CASE(open_connection_is_not_believed_after_its_ca_was_removed) {
  rotating f(the_pki().ca.certificate_pem());
  auto client = f.connect_as(the_pki().client);
  BOOST_TEST(f.send_on(client) == 200u);
  f.forget_events();
  f.trust(the_pki().stranger.certificate_pem());
  BOOST_TEST(f.send_on(client) != 200u);
  BOOST_TEST(!f.made.events->try_receive());
  auto foreign = f.connect_as(the_pki().foreign);
  BOOST_TEST(f.send_on(foreign) == 200u);
  auto late = f.connect_as(the_pki().client);
  BOOST_TEST(f.send_on(late) == 0u);
}

BOOST_AUTO_TEST_CASE(open_connections_stay_when_a_ca_is_added) {
  rotating f(the_pki().ca.certificate_pem());
  auto client = f.connect_as(the_pki().client);
  BOOST_TEST(f.send_on(client) == 200u);
  f.trust(the_pki().stranger.certificate_pem() + the_pki().ca.certificate_pem());
  BOOST_TEST(f.send_on(client) == 200u);
  BOOST_TEST(f.connections() == 1);
}

BOOST_AUTO_TEST_CASE(open_connection_is_not_believed_after_its_certificate_expired) {
  rotating f(the_pki().ca.certificate_pem());
  const auto brief = good(
      the_pki().ca.issue({.common_name = "runtime-1",
                          .client_auth = true,
                          .not_before = std::chrono::system_clock::now() - std::chrono::seconds(60),
                          .validity = std::chrono::seconds(62)}));
  auto client = f.connect_as(brief);
  BOOST_TEST(f.send_on(client) == 200u);
  BOOST_TEST(eventually([&] { return f.send_on(client) == 401; }));
}

BOOST_AUTO_TEST_CASE(client_with_an_intermediate_connects_again_after_the_material_changed) {
  rotating f(the_pki().ca.certificate_pem());
  const auto middle = good(the_pki().ca.intermediate({.common_name = "intermediate"}));
  auto own = good(middle.issue({.common_name = "runtime-1", .client_auth = true}));
  own.certificate += middle.certificate_pem();
  auto client = f.connect_as(own);
  BOOST_TEST(f.send_on(client) == 200u);
  f.trust(the_pki().ca.certificate_pem() + the_pki().stranger.certificate_pem());
  BOOST_TEST(f.send_on(client) == 0u);
  auto again = f.connect_as(own);
  BOOST_TEST(f.send_on(again) == 200u);
  BOOST_TEST(f.send_on(again) == 200u);
  f.trust(the_pki().stranger.certificate_pem());
  BOOST_TEST(f.send_on(again) == 0u);
  auto late = f.connect_as(own);
  BOOST_TEST(f.send_on(late) == 0u);
}

/// Two connections whose certificates can't be checked again without their intermediate.
struct with_intermediate : rotating {
  with_intermediate() : rotating(the_pki().ca.certificate_pem()) {
    BOOST_TEST(send_on(first) == 200u);
    BOOST_TEST(send_on(second) == 200u);
    forget_events();
  }
  rw::tls::issuer middle = good(the_pki().ca.intermediate({.common_name = "intermediate"}));
  rw::tls::key_pair own_pair =
      good(middle.issue({.common_name = "runtime-1", .client_auth = true}));
  const rw::tls::key_pair chained{own_pair.certificate + middle.certificate_pem(), own_pair.key};
  wire first = connect_as(chained);
  wire second = connect_as(chained);
};

BOOST_AUTO_TEST_CASE(listener_drops_all_connections_when_one_cannot_be_checked_again) {
  with_intermediate f;
  f.trust(the_pki().stranger.certificate_pem());
  BOOST_TEST(f.send_on(f.first) == 0u);
  BOOST_TEST(f.send_on(f.second) == 0u);
  BOOST_TEST(!f.made.events->try_receive());
}

BOOST_AUTO_TEST_CASE(connections_are_not_believed_between_the_decision_to_drop_them_and_the_drop) {
  with_intermediate f;
  std::promise<void> sent;
  std::thread busy([&] { f.here.on_thread([&] { sent.get_future().wait(); }); });
  f.trust(the_pki().stranger.certificate_pem());
  f.first.send(post("/v2/klm/event", event_json));
  f.second.send(post("/v2/klm/event", event_json));
  sent.set_value();
  busy.join();
  BOOST_TEST(read_answer(f.first).status == 0u);
  BOOST_TEST(read_answer(f.second).status == 0u);
  BOOST_TEST(!f.made.events->try_receive());
}

namespace {

using heartbeat_channel = rw::core::channel<rw::received_heartbeat>;

constexpr std::string_view heartbeat_path = "/v2/runtime-watcher/event";
constexpr std::string_view heartbeat_json = R"({"bootId":"b1","intervalSeconds":20,"sequence":3})";

std::string heartbeat_fields(const fixture& f) {
  return f.good_sender + "content-type: " + std::string(rw::heartbeat_media_type) + "\r\n";
}

listener_options heartbeat_options(std::size_t capacity = 4) {
  auto options = plain_options();
  options.heartbeats = std::make_shared<heartbeat_channel>(capacity);
  return options;
}

}  // namespace

BOOST_AUTO_TEST_CASE(heartbeat_arrives_with_its_sender) {
  auto options = heartbeat_options();
  const auto heartbeats = options.heartbeats;
  fixture f(std::move(options));
  const auto got = f.send(heartbeat_path, heartbeat_json, heartbeat_fields(f));
  BOOST_TEST(got.status == 200u);
  const auto arrived = heartbeats->try_receive();
  BOOST_TEST_REQUIRE(arrived.has_value());
  BOOST_TEST(arrived->runtime_id == "runtime-1");
  BOOST_TEST(arrived->content.boot_id == "b1");
  BOOST_TEST(!f.made.events->try_receive());
}

BOOST_AUTO_TEST_CASE(heartbeat_is_accepted_at_its_own_path_alone_and_not_offered_at_others) {
  auto options = heartbeat_options();
  const auto heartbeats = options.heartbeats;
  fixture f(std::move(options));
  f.check_refused(415, f.good_sender, event_json, heartbeat_path);
  f.check_refused(404, heartbeat_fields(f), heartbeat_json, "/v2/runtime-watcher/events");
  f.check_refused(400, heartbeat_fields(f), heartbeat_json);  // no event, at the events' path
  BOOST_TEST(!heartbeats->try_receive());
  const auto event = f.send("/v2/klm/event", event_json, f.good_sender);
  BOOST_TEST(!event.says("watch-heartbeat"));
}

BOOST_AUTO_TEST_CASE(component_of_heartbeats_can_be_the_component_of_events) {
  auto options = heartbeat_options();
  options.heartbeat_component = "klm";
  const auto heartbeats = options.heartbeats;
  fixture f(std::move(options));
  f.check_refused(415, f.good_sender);
  BOOST_TEST(f.send("/v2/klm/event", heartbeat_json, heartbeat_fields(f)).status == 200u);
  BOOST_TEST(heartbeats->try_receive().has_value());
}

BOOST_AUTO_TEST_CASE(component_of_heartbeats_must_be_an_element_of_a_path) {
  auto options = heartbeat_options();
  options.heartbeat_component = "";
  BOOST_CHECK_THROW(fixture{std::move(options)}, std::runtime_error);
}

BOOST_AUTO_TEST_CASE(heartbeat_is_refused_where_nothing_takes_it) {
  fixture f;
  f.check_refused(400, heartbeat_fields(f), heartbeat_json);
  f.check_refused(404, heartbeat_fields(f), heartbeat_json, "/v2/runtime-watcher/event");
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(heartbeat_without_room_is_refused_for_now) {
  auto options = heartbeat_options(1);
  const auto heartbeats = options.heartbeats;
  fixture f(std::move(options));
  while (heartbeats->try_send({}) == rw::core::send_status::sent) {
  }
  const auto got = f.send(heartbeat_path, heartbeat_json, heartbeat_fields(f));
  BOOST_TEST(got.status == 503u);
  BOOST_TEST(got.says("retry-after: "));
  f.check_good_event();
}

BOOST_AUTO_TEST_CASE(heartbeat_is_verified_as_an_event_is) {
  auto options = heartbeat_options();
  options.verify = [](const auto&, const rw::watch_event& event, const event_sender&) {
    return !event.watched.name.empty();
  };
  const auto heartbeats = options.heartbeats;
  fixture f(std::move(options));
  f.check_refused(403, heartbeat_fields(f), heartbeat_json, heartbeat_path);
  f.check_refused(401, "content-type: " + std::string(rw::heartbeat_media_type) + "\r\n",
                  heartbeat_json, heartbeat_path);
  f.check_refused(400, heartbeat_fields(f), R"({"bootId":""})", heartbeat_path);
  BOOST_TEST(!heartbeats->try_receive());
}

BOOST_AUTO_TEST_CASE(age_of_a_request_is_observed) {
  fixture f;
  const auto observed = [&] { return f.here.metric("rw_event_delivery_seconds_count"); };
  f.send("/v2/klm/event", event_json, f.good_sender + "watch-event-age: 250\r\n");
  BOOST_TEST(observed() == 1);
  BOOST_TEST(f.here.metric("rw_event_delivery_seconds_sum") == 0.25);
  f.send("/v2/klm/event", event_json, f.good_sender + "watch-event-age: soon\r\n");
  f.send("/v2/klm/event", event_json, f.good_sender);
  BOOST_TEST(observed() == 1);
}

BOOST_AUTO_TEST_CASE(listener_does_not_log_heartbeat_that_it_does_not_take) {
  fixture f;
  const auto type = "content-type: " + std::string(rw::heartbeat_media_type) + "\r\n";
  BOOST_TEST(f.send("/v2/runtime-watcher/event", "{}", f.good_sender + type).status == 404u);
  BOOST_TEST(!f.logged("request refused"));
  BOOST_TEST(f.send("/v2/runtime-watcher/event", "{}", f.good_sender).status == 404u);
  BOOST_TEST(f.logged("request refused"));
}

BOOST_AUTO_TEST_SUITE_END()
