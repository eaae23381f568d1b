#include "rw/reactors/dev/gateway/dev_gateway.hpp"

#include "rw/tls/xfcc.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/dev_gateway/front.hpp"
#include "tests/unit/http/wire.hpp"
#include <chrono>

BOOST_AUTO_TEST_SUITE(dev_gateway)

using namespace rw;
using namespace rw::dev_gateway;
using namespace rw::dev_gateway::test;
using tls::test::holding;
using tls::test::the_pki;
using tls::test::trusting;

namespace {

std::shared_ptr<tls::credentials> runtime() {
  return holding(the_pki().client, the_pki().ca.certificate_pem());
}

/// A gateway that serves, with one route.
struct open_front : front {
  explicit open_front(gateway_options with = {}) : front(std::move(with)) {
    serve_with(the_pki().server, the_pki().ca.certificate_pem());
    route("klm", "/v2/klm/event");
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(request_reaches_the_service_with_the_name_of_its_sender) {
  open_front f;
  auto& client = f.connect(runtime());
  const auto got =
      f.post(client, "/v2/klm/event", "{\"a\":1}",
             {{"content-type", "application/json"}, {"x-forwarded-client-cert", "Hash=forged"}});
  BOOST_TEST_REQUIRE(!got.error);
  BOOST_TEST(got.answer.status == 200u);
  BOOST_TEST(got.answer.body == "{\"a\":1}");
  BOOST_TEST(got.answer.headers.get("watch-event-batch") == "256");
  BOOST_TEST(!got.answer.headers.has("connection"));

  std::string forwarded;
  int headers = 0;
  f.here.on_thread([&] {
    const auto& last = f.one->last;
    BOOST_TEST(last.body == "{\"a\":1}");
    BOOST_TEST(last.headers.get("content-type") == "application/json");
    BOOST_TEST(last.headers.get("x-forwarded-proto") == "https");
    BOOST_TEST(last.headers.get("x-forwarded-for") == "127.0.0.1");
    forwarded = last.headers.get("x-forwarded-client-cert");
    for (std::size_t i = 0; i < last.headers.size(); ++i) {
      if (http::iequals(last.headers[i].name, "x-forwarded-client-cert")) ++headers;
    }
  });
  BOOST_TEST(headers == 1);
  const auto sender = tls::parse_xfcc(forwarded);
  BOOST_TEST_REQUIRE(sender.has_value());
  BOOST_TEST(sender->client_certificate()->common_name() == "runtime-1");
  BOOST_TEST(f.answered(200) == 1);
}

BOOST_AUTO_TEST_CASE(batch_path_goes_the_same_way_and_responses_come_back_whole) {
  open_front f;
  auto& client = f.connect(runtime());
  BOOST_TEST(f.post(client, "/v2/klm/events", "[]").answer.status == 200u);
  const auto busy = f.post(client, "/v2/klm/event/busy");
  BOOST_TEST(busy.answer.status == 503u);
  BOOST_TEST(busy.answer.headers.get("retry-after") == "7");
  BOOST_TEST(busy.answer.body == "full\n");
  const std::string large(1u << 20, 'x');
  BOOST_TEST((f.post(client, "/v2/klm/event", large).answer.body == large));
}

BOOST_AUTO_TEST_CASE(new_secret_is_for_new_handshakes_and_old_connections_go_on) {
  open_front f;
  auto& before = f.connect(runtime());
  BOOST_TEST(f.post(before, "/v2/klm/event").answer.status == 200u);

  const auto other =
      good(tls::issuer::create({.common_name = "new CA", .dns_names = {"localhost"}}));
  const auto both = other.certificate_pem() + the_pki().ca.certificate_pem();
  f.serve_with(other.own(), both);
  BOOST_TEST(f.here.metric("rw_dev_gateway_certificate_changes_total") == 2);

  BOOST_TEST(f.post(before, "/v2/klm/event").answer.status == 200u);
  auto& trusting_both = f.connect(holding(the_pki().client, both));
  BOOST_TEST(f.post(trusting_both, "/v2/klm/event").answer.status == 200u);
  const auto own = good(other.issue({.common_name = "runtime-2", .client_auth = true}));
  auto& of_the_new = f.connect(holding(own, other.certificate_pem()));
  BOOST_TEST(f.post(of_the_new, "/v2/klm/event").answer.status == 200u);
  BOOST_TEST(f.failed("server_refused") == 0);

  auto& behind = f.connect(runtime());
  BOOST_TEST((f.post(behind, "/v2/klm/event").error == http::client_error::handshake));
  BOOST_TEST(eventually([&] { return f.failed("server_refused") == 1; }));
  BOOST_TEST(f.post(before, "/v2/klm/event").answer.status == 200u);
  BOOST_TEST(f.here.metric("rw_dev_gateway_handshakes_total") == 3);
}

BOOST_AUTO_TEST_CASE(failed_handshakes_are_counted_with_their_reason) {
  open_front f;
  const auto& ca = the_pki().ca.certificate_pem();
  auto& anonymous = f.connect(trusting(ca));
  f.post(anonymous, "/v2/klm/event");
  BOOST_TEST(eventually([&] { return f.failed("no_certificate") == 1; }));
  auto& foreign = f.connect(holding(the_pki().foreign, ca));
  f.post(foreign, "/v2/klm/event");
  BOOST_TEST(eventually([&] { return f.failed("client_ca") == 1; }));
  {
    http::test::wire plain(f.under_test->address());
    plain.send("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    BOOST_TEST(eventually([&] { return f.failed("protocol") == 1; }));
    http::test::wire leaves(f.under_test->address());
    leaves.finish();
    BOOST_TEST(eventually([&] { return f.failed("closed") == 1; }));
  }
  http::test::wire older(f.under_test->address(), {.version = TLS1_2_VERSION});
  BOOST_TEST(!older.connected());
  BOOST_TEST(eventually([&] { return f.failed("protocol") == 2; }));
  BOOST_TEST(f.here.metric("rw_dev_gateway_handshakes_total") == 0);
  f.here.on_thread([&] { BOOST_TEST(f.one->seen == 0); });
}

BOOST_AUTO_TEST_CASE(path_that_nothing_routes_is_not_found) {
  open_front f;
  auto& client = f.connect(runtime());
  BOOST_TEST(f.post(client, "/v2/other/event").answer.status == 404u);
  f.route("other", "/v2/other/event");
  BOOST_TEST(f.post(client, "/v2/other/event").answer.status == 200u);
  f.remove(virtual_services_type(), {"kcp-system", "other"});
  BOOST_TEST(eventually([&] { return f.post(client, "/v2/other/event").answer.status == 404u; }));
  BOOST_TEST(f.post(client, "/v2/klm/event").answer.status == 200u);
}

BOOST_AUTO_TEST_CASE(service_without_a_backend_is_unavailable) {
  open_front f;
  auto& client = f.connect(runtime());
  f.here.on_thread([&] {
    f.resolve = [](const service_port& to) -> std::optional<boost::asio::ip::tcp::endpoint> {
      BOOST_TEST((to == service_port{"events", "kcp-system", 8082}));
      return {};
    };
  });
  BOOST_TEST(f.post(client, "/v2/klm/event").answer.status == 503u);
}

BOOST_AUTO_TEST_CASE(of_several_backends_one_that_accepts_is_taken) {
  open_front f;
  auto& client = f.connect(runtime());
  int asked = 0;
  boost::asio::ip::tcp::endpoint nobody;
  // A port that was free a moment ago, and stays taken without anybody listening.
  boost::asio::io_context own;
  boost::asio::ip::tcp::socket holder(own);
  f.here.on_thread([&] {
    holder.open(boost::asio::ip::tcp::v4());
    holder.bind({boost::asio::ip::address_v4::loopback(), 0});
    nobody = holder.local_endpoint();
    f.resolve = [&](const service_port&) { return ++asked % 2 == 1 ? nobody : f.two->address(); };
  });
  const auto got = f.post(client, "/v2/klm/event");
  BOOST_TEST(got.answer.status == 200u);
  BOOST_TEST(got.answer.headers.get("x-backend") == "two");
  f.here.on_thread([&] { f.resolve = [&](const service_port&) { return nobody; }; });
  BOOST_TEST(f.post(client, "/v2/klm/event").answer.status == 503u);
  f.here.on_thread([&] { f.resolve = [&](const service_port&) { return f.one->address(); }; });
  BOOST_TEST(f.post(client, "/v2/klm/event").answer.headers.get("x-backend") == "one");
}

BOOST_AUTO_TEST_CASE(request_goes_to_another_backend_when_one_answers_503) {
  open_front f;
  auto& client = f.connect(runtime());
  int asked = 0;
  f.here.on_thread([&] {
    f.one->busy = true;
    f.resolve = [&](const service_port&) {
      return ++asked % 2 == 1 ? f.one->address() : f.two->address();
    };
  });
  const auto got = f.post(client, "/v2/klm/event");
  BOOST_TEST(got.answer.status == 200u);
  BOOST_TEST(got.answer.headers.get("x-backend") == "two");
  f.here.on_thread([&] {
    f.one->seen = 0;
    f.resolve = [&](const service_port&) { return f.one->address(); };
  });
  const auto busy = f.post(client, "/v2/klm/event");
  BOOST_TEST(busy.answer.status == 503u);
  BOOST_TEST(busy.answer.headers.get("retry-after") == "7");
  f.here.on_thread([&] { BOOST_TEST(f.one->seen == 1); });
}

BOOST_AUTO_TEST_CASE(backend_that_breaks_off_or_hangs_is_reported_from_one_that_is_away) {
  open_front f({.exchange = std::chrono::milliseconds(200)});
  auto& client = f.connect(runtime());
  BOOST_TEST(f.post(client, "/v2/klm/event").answer.status == 200u);
  f.here.on_thread([&] { f.one->seen = 0; });
  BOOST_TEST(f.post(client, "/v2/klm/event/breaks").answer.status >= 502u);
  BOOST_TEST(f.post(client, "/v2/klm/event/hangs").answer.status == 504u);
  BOOST_TEST(f.post(client, "/v2/klm/event").answer.status == 200u);
}

BOOST_AUTO_TEST_CASE(body_beyond_the_limit_is_rejected) {
  open_front f({.request_bytes = 1000});
  auto& client = f.connect(runtime());
  BOOST_TEST(f.post(client, "/v2/klm/event", std::string(1001, 'x')).answer.status == 413u);
  BOOST_TEST(f.answered(413) == 1);
  BOOST_TEST(f.post(client, "/v2/klm/event", std::string(1000, 'x')).answer.status == 200u);
}

BOOST_AUTO_TEST_CASE(unusable_secret_changes_nothing) {
  open_front f;
  const auto served = f.certificate();
  auto broken = the_pki().server;
  broken.key = the_pki().client.key;
  f.put_secret(broken, the_pki().ca.certificate_pem());
  const auto failures = [&] { return f.here.metric("rw_dev_gateway_certificate_failures_total"); };
  BOOST_TEST(eventually([&] { return failures() == 1; }));
  f.put_secret(the_pki().server, "");
  BOOST_TEST(eventually([&] { return failures() == 2; }));
  f.remove(secrets_type(), {"istio-system", "klm-istio-gateway"});
  BOOST_TEST(eventually([&] { return failures() == 3; }));
  BOOST_TEST(f.certificate() == served);
  auto& client = f.connect(runtime());
  BOOST_TEST(f.post(client, "/v2/klm/event").answer.status == 200u);
}

BOOST_AUTO_TEST_CASE(connections_wait_until_there_is_a_certificate) {
  front f;
  f.route("klm", "/v2/klm/event");
  auto& client = f.connect(runtime());
  http::request what;
  what.target = "/v2/klm/event";
  auto waiting = boost::asio::co_spawn(
      f.here.context, http::test::exchange_once(&client, std::move(what)), boost::asio::use_future);
  BOOST_TEST(f.certificate() == "");
  f.serve_with(the_pki().server, the_pki().ca.certificate_pem());
  BOOST_TEST_REQUIRE((waiting.wait_for(http::test::patience) == std::future_status::ready));
  BOOST_TEST(waiting.get().answer.status == 200u);
}

BOOST_AUTO_TEST_CASE(drain_ends_the_gateway_with_and_without_a_certificate) {
  {
    front f;
    f.under_test->drain();
    BOOST_TEST(eventually([&] {
      bool ended = false;
      f.here.on_thread([&] { ended = f.ended; });
      return ended;
    }));
  }
  open_front f;
  auto& client = f.connect(runtime());
  BOOST_TEST(f.post(client, "/v2/klm/event").answer.status == 200u);
  f.under_test->drain();
  BOOST_TEST(eventually([&] {
    bool ended = false;
    f.here.on_thread([&] { ended = f.ended; });
    return ended;
  }));
}

BOOST_AUTO_TEST_SUITE_END()
