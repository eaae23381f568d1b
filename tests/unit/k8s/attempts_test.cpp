#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/fence.hpp"
#include "rw/k8s/client/retry.hpp"
#include "rw/k8s/client/write_preview.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/scripted_server.hpp"
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(attempts)

// What becomes of requests that do not simply succeed.

namespace {

using namespace rw::k8s;
using namespace rw::k8s::test;
namespace asio = boost::asio;
namespace http = rw::http;
using std::chrono::milliseconds;

constexpr std::string_view config_map = R"({"kind":"ConfigMap","metadata":{"name":"a"}})";

script::answer with(unsigned status, std::string body, std::string retry_after = {}) {
  return [=](const seen_request&, http::response& into) {
    if (!retry_after.empty()) into.headers.add("retry-after", retry_after);
    reply(into, status, body);
  };
}

const script::answer good = with(200, std::string(config_map));

boost::json::value object() {
  return boost::json::parse(R"({"kind":"ConfigMap","metadata":{"name":"a","namespace":"team"}})");
}

asio::awaitable<result<boost::json::value>> read(client& api) {
  return api.get(config_maps, {"team", "a"});
}
asio::awaitable<result<boost::json::value>> write(client& api) {
  return api.update(config_maps, object());
}

}  // namespace

struct mapping {
  unsigned status;
  std::string reason;
  errc expected;
  std::string message;
};

std::ostream& operator<<(std::ostream& out, const mapping& m) {
  return out << m.status << " " << m.reason;
}

const mapping mappings[] = {
    {400, "BadRequest", errc::bad_request, "m (400 Bad Request)"},
    {401, "Unauthorized", errc::unauthorized, "m (401 Unauthorized)"},
    {403, "Forbidden", errc::forbidden, "m (403 Forbidden)"},
    {404, "NotFound", errc::not_found, "m (404 Not Found)"},
    {405, "MethodNotAllowed", errc::method_not_allowed, "m (405 Method Not Allowed)"},
    {406, "NotAcceptable", errc::unsupported, "m (406 Not Acceptable)"},
    {409, "AlreadyExists", errc::already_exists, "m (409 Conflict)"},
    {409, "Conflict", errc::conflict, "m (409 Conflict)"},
    {410, "Expired", errc::gone, "m (410 Gone)"},
    {410, "Gone", errc::gone, "m (410 Gone)"},
    {413, "RequestEntityTooLarge", errc::bad_request, "m (413 "},
    {415, "UnsupportedMediaType", errc::unsupported, "m (415 "},
    {422, "Invalid", errc::invalid, "m (422 "},
    {429, "TooManyRequests", errc::too_many_requests, "m (429 Too Many Requests)"},
    {500, "InternalError", errc::server_error, "m (500 Internal Server Error)"},
    {500, "ServerTimeout", errc::unavailable, "m (500 Internal Server Error)"},
    {503, "ServiceUnavailable", errc::unavailable, "m (503 Service Unavailable)"},
    {504, "Timeout", errc::unavailable, "m (504 Gateway Timeout)"},
    {418, "Strange", errc::bad_request, "m (418"},
    {599, "Strange", errc::server_error, "m (599"},
};

BOOST_DATA_TEST_CASE(status_becomes_a_failure_with_its_code_reason_and_message, mappings) {
  api_fixture f;
  f.script.answers(sample.status, status_text(sample.status, sample.reason, "m"));
  const auto got = f.call(write(f.api()));
  BOOST_REQUIRE(got.has_error());
  const auto& failed = got.error();
  BOOST_TEST(failed.is(sample.expected), failed.message);
  BOOST_TEST(failed.status == sample.status);
  BOOST_TEST(failed.reason == sample.reason);
  BOOST_TEST(failed.message.starts_with("cannot update configmaps team/a: " + sample.message),
             failed.message);
  BOOST_TEST(f.script.count() == 1u);
}

BOOST_AUTO_TEST_CASE(text_of_a_proxy_is_the_message) {
  api_fixture f;
  f.script.answers(403, "\r\n  Blocked by\tpolicy\nline 2");
  const auto got = f.call(write(f.api()));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().message ==
             "cannot update configmaps team/a: Blocked by policy (403 Forbidden)");
  f.script.answers(502, "");
  const auto empty = f.call(write(f.api()));
  BOOST_REQUIRE(empty.has_error());
  BOOST_TEST(empty.error().message ==
             "cannot update configmaps team/a: the API server is unavailable (502 Bad Gateway)");
  f.script.answers(302, "");
  BOOST_TEST(f.call(write(f.api())).error().is(errc::bad_response));
}

BOOST_AUTO_TEST_CASE(responses_of_another_kind_are_bad_answers) {
  api_fixture f;
  auto& api = f.api();
  const std::pair<std::string, std::string> bad[] = {
      {"", "the answer is not JSON, from byte 1 on (incomplete JSON): "},
      {"<html>no</html>", "the answer is not JSON, from byte 1 on (syntax error): <html>no</html>"},
      {"{\"kind\":\"ConfigMap\"", "the answer is not JSON, from byte 20 on (incomplete JSON): "},
      {"[1]", "the answer is JSON, but no object"},
      {R"({"kind":"Secret"})", "the answer is of the kind \"Secret\", not ConfigMap"},
      {R"({"a":1})", "the answer is of the kind \"\", not ConfigMap"},
      {std::string(1000, '['), "the answer nests too deep: "},
  };
  for (const auto& [body, why] : bad) {
    f.script.answers(200, body);
    const auto got = f.call(read(api));
    BOOST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().is(errc::bad_response));
    BOOST_TEST(got.error().message.starts_with("cannot get configmaps team/a: " + why),
               got.error().message);
  }
  for (const auto* body : {R"({"kind":"ConfigMap"})", R"({"kind":"XList","items":{}})", "7"}) {
    f.script.answers(200, body);
    const auto got = f.call(api.list(config_maps, {.ns = "team"}));
    BOOST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().is(errc::bad_response));
  }
  f.script.answers(200, "no list");
  BOOST_TEST(f.call(api.list_text(config_maps, {})).error().is(errc::bad_response));
  // Of a name that stands twice the last one counts, as with encoding/json.
  f.script.answers(200, R"({"kind":"Secret","kind":"ConfigMap"})");
  BOOST_TEST(f.call(read(api)).has_value());
}

BOOST_AUTO_TEST_CASE(response_beyond_the_bound_is_too_large) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    auto options = api_fixture::quick();
    options.response_bytes = 1000;
    f.script.answers(200, "{\"kind\":\"ConfigMap\",\"x\":\"" + std::string(2000, 'x') + "\"}");
    const auto got = f.call(read(f.use(f.config(), options)));
    BOOST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().is(errc::too_large));
    BOOST_TEST(f.script.count() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(response_that_does_not_come_is_awaited_so_long_and_reads_are_tried_again) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    auto options = api_fixture::quick();
    options.request = milliseconds(50);
    options.retries = 1;
    auto& api = f.use(f.config(), options);
    f.script.answers({});
    const auto written = f.call(write(api));
    BOOST_REQUIRE(written.has_error());
    BOOST_TEST(written.error().is(errc::timed_out));
    BOOST_TEST(f.script.count() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(rejections_with_retry_after_are_retried_for_any_request) {
  for (const unsigned status : {429u, 503u}) {
    api_fixture f;
    f.script.answers_in_turn({with(status, status_text(status, "TooManyRequests", "busy"), "0"),
                              with(status, "busy", "Sun, 06 Nov 1994 08:49:37 GMT"), good});
    const auto got = f.call(write(f.api()));
    BOOST_TEST(got.has_value(), (got ? "" : got.error().message));
    BOOST_TEST(f.script.count() == 3u);
    BOOST_TEST(f.metric("rw_kube_retries_total{client=\"test\"}") == 2);
    BOOST_TEST(f.metric("rw_kube_requests_total{client=\"test\",code=\"" + std::to_string(status) +
                        "\",verb=\"update\"}") == 2);
    BOOST_TEST(f.metric("rw_kube_requests_total{client=\"test\",code=\"200\",verb=\"update\"}") ==
               1);
  }
}

BOOST_AUTO_TEST_CASE(retry_after_is_waited_for) {
  api_fixture f;
  f.script.answers_in_turn({with(429, "busy", "1"), good});
  const auto began = std::chrono::steady_clock::now();
  BOOST_TEST(f.call(write(f.api())).has_value());
  BOOST_TEST((std::chrono::steady_clock::now() - began >= std::chrono::seconds(1)));
}

BOOST_AUTO_TEST_CASE(date_of_a_response_is_the_servers_time) {
  api_fixture f;
  f.script.answers_in_turn({good});
  std::optional<std::chrono::system_clock::time_point> date;
  const auto got = f.call(f.api().get(config_maps, {"team", "a"}, false, {.date = &date}));
  BOOST_TEST(got.has_value());
  BOOST_REQUIRE(date);
  const auto ago = std::chrono::system_clock::now() - *date;
  BOOST_TEST((ago >= std::chrono::seconds(0) && ago < std::chrono::minutes(1)));
}

BOOST_AUTO_TEST_CASE(wait_beyond_the_retry_limit_is_left_to_the_caller) {
  api_fixture f;
  f.script.answers_in_turn({with(429, "busy", "86400"), good});
  const auto got = f.call(read(f.api()));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST((got.error().retry_after == std::chrono::minutes(5)));
  BOOST_TEST(f.script.count() == 1u);
  f.script.answers(
      429, status_text(429, "TooManyRequests", "m", R"(,"details":{"retryAfterSeconds":7})"));
  BOOST_TEST((f.call(write(f.api())).error().retry_after == std::chrono::seconds(7)));
}

BOOST_AUTO_TEST_CASE(passing_failures_are_tried_again_for_reads_only) {
  for (const unsigned status : {429u, 500u, 502u, 503u, 504u}) {
    api_fixture f;
    auto& api = f.api();
    f.script.answers_in_turn({with(status, "x"), with(status, "x"), good});
    BOOST_TEST(f.call(read(api)).has_value());
    BOOST_TEST(f.script.count() == 3u);
    f.script.answers_in_turn({with(status, "x"), good});
    BOOST_TEST(f.call(write(api)).has_error());
    BOOST_TEST(f.script.count() == 4u);
  }
}

BOOST_AUTO_TEST_CASE(attempts_are_bounded_and_the_last_failure_says_so) {
  api_fixture f;
  f.script.answers(503, "gone fishing");
  const auto got = f.call(read(f.api()));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().message ==
             "cannot get configmaps team/a: gone fishing (503 Service Unavailable), at attempt 5");
  BOOST_TEST(f.script.count() == 5u);
}

BOOST_AUTO_TEST_CASE(permanent_failures_are_not_retried) {
  for (const unsigned status : {400u, 401u, 403u, 404u, 409u, 410u, 422u}) {
    api_fixture f;
    f.script.answers(status, "x");
    BOOST_TEST(f.call(read(f.api())).has_error());
    BOOST_TEST(f.script.count() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(server_that_does_not_listen_is_unreachable_and_named) {
  api_fixture f;
  auto how = f.config();
  {
    // A port that nobody listens on any more.
    asio::io_context context;
    asio::ip::tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
    how.server = "https://127.0.0.1:" + std::to_string(acceptor.local_endpoint().port());
  }
  const auto got = f.call(write(f.use(how)));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::unreachable));
  BOOST_TEST(got.error().status == 0u);
  // Nothing was sent, so it was safe to try again.
  BOOST_TEST(got.error().message == "cannot update configmaps team/a: " + how.server +
                                        ": the server does not accept connections: Connection "
                                        "refused, at attempt 5");
  BOOST_TEST(f.metric("rw_kube_requests_total{client=\"test\",code=\"unreachable\","
                      "verb=\"update\"}") == 5);
}

BOOST_AUTO_TEST_CASE(server_with_a_certificate_of_another_is_rejected) {
  api_fixture f;
  auto how = f.config();
  how.ca = rw::tls::test::the_pki().stranger.certificate_pem();
  auto options = api_fixture::quick();
  options.retries = 0;
  const auto got = f.call(read(f.use(how, options)));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::unreachable));
  BOOST_TEST(got.error().message.find("failed: certificate refused: ") != std::string::npos,
             got.error().message);
  BOOST_TEST(f.script.count() == 0u);

  how.insecure_skip_tls_verify = true;
  how.ca.clear();
  BOOST_TEST(f.call(read(f.use(how, options))).has_value());

  how = f.config();
  how.tls_server_name = "other.example.com";
  BOOST_TEST(f.call(read(f.use(how, options))).has_error());
  how.tls_server_name = "kcp.example.com";
  BOOST_TEST(f.call(read(f.use(how, options))).has_value());
}

BOOST_AUTO_TEST_CASE(shut_fence_lets_no_writing_request_out) {
  api_fixture f;
  const auto leader = std::make_shared<fence>(f.here.clock);
  auto& shared = f.use(f.config(), api_fixture::quick());
  auto api = shared.fenced(leader);
  const auto got = f.call(write(api));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::fenced));
  BOOST_TEST(f.script.count() == 0u);
  BOOST_TEST(f.call(read(api)).has_value());
  BOOST_TEST(f.call(api.raw("POST", "/x", "", "")).error().is(errc::fenced));
  leader->open_until(f.here.clock.now() + std::chrono::hours(1));
  BOOST_TEST(f.call(write(api)).has_value());
  BOOST_TEST(f.script.count() == 2u);
  leader->shut();
  BOOST_TEST(f.call(write(shared)).has_value(), "the fence is the copy's alone");
  BOOST_CHECK_THROW(api.fenced(nullptr), std::logic_error);
}

BOOST_AUTO_TEST_CASE(dry_client_has_nothing_persisted) {
  api_fixture f;
  const auto is_dry = std::make_shared<bool>(true);
  auto& shared = f.use(f.config(), api_fixture::quick());
  auto api = shared.dry(is_dry);
  BOOST_TEST(f.call(write(api)).has_value());
  BOOST_TEST(f.script.last().target.find("dryRun=All") != std::string::npos);
  const auto raw = f.call(api.raw("POST", "/x", "", ""));
  BOOST_REQUIRE(raw.has_error());
  BOOST_TEST(raw.error().is(errc::bad_request));
  BOOST_TEST(f.script.count() == 1u);
  BOOST_TEST(f.call(write(shared)).has_value());
  BOOST_TEST(f.script.last().target.find("dryRun") == std::string::npos);
  *is_dry = false;
  BOOST_TEST(f.call(write(api)).has_value());
  BOOST_TEST(f.script.last().target.find("dryRun") == std::string::npos);
  BOOST_TEST(f.call(api.raw("POST", "/x", "", "")).has_value());
  BOOST_CHECK_THROW(api.dry(is_dry), std::logic_error);
}

BOOST_AUTO_TEST_CASE(previewing_client_collects_what_would_be_written) {
  api_fixture f;
  const auto into = std::make_shared<write_preview>();
  auto api = f.use(f.config(), api_fixture::quick()).previewing(into);
  const auto map_of = [](const char* name, const char* value) {
    return boost::json::value{{"kind", "ConfigMap"},
                              {"apiVersion", "v1"},
                              {"metadata", {{"name", name}, {"namespace", "team"}, {"uid", value}}},
                              {"data", {{"k", value}}}};
  };
  // What there is, then what a dry run would leave.
  f.script.answers([&](const seen_request& request, http::response& into) {
    const bool reads = request.method == "GET";
    const bool is_dry = request.target.find("dryRun=All") != std::string::npos ||
                        request.body.find(R"("dryRun":["All"])") != std::string::npos;
    BOOST_TEST((reads || is_dry), request.target);
    into.headers.add("content-type", "application/json");
    into.body = boost::json::serialize(map_of("a", reads ? "old" : "new"));
  });
  const write_options tried{.field_manager = "test", .dry_run = true};
  BOOST_TEST(f.call(api.apply(config_maps, map_of("a", "tried"), tried)).has_value());
  BOOST_TEST(into->writes().empty());
  BOOST_TEST(f.call(api.apply(config_maps, map_of("a", "sent"))).has_value());
  BOOST_TEST(f.call(api.remove(config_maps, {"team", "b"})).has_value());
  BOOST_TEST_REQUIRE(into->writes().size() == 2u);
  const auto& applied = into->writes().at(0);
  BOOST_TEST(applied.live.at("data").at("k") == "old");
  BOOST_TEST(applied.next.at("data").at("k") == "new");
  BOOST_TEST(!applied.next.at("metadata").as_object().contains("uid"));
  BOOST_TEST(into->writes().at(1).live.is_object());
  BOOST_TEST(into->writes().at(1).next.is_null());
  BOOST_TEST(f.call(api.raw("POST", "/x", "", "")).error().is(errc::bad_request));
}

BOOST_AUTO_TEST_CASE(write_preview_has_the_last_state_that_differs_and_a_bound) {
  const boost::json::value live{{"data", 1}};
  write_preview all(200);
  const auto add = [&](std::string name, boost::json::value next) {
    all.add({.type = config_maps, .key = {"team", std::move(name)}, .live = live, .next = next});
  };
  add("a", {{"data", 2}});
  add("a", live);  // the dry run of a later write, such as one of managedFields
  BOOST_TEST((all.writes().at(0).next == boost::json::value{{"data", 2}}));
  add("a", {{"data", 3}});
  BOOST_TEST((all.writes().at(0).next == boost::json::value{{"data", 3}}));
  add("b", {{"data", std::string(300, 'x')}});
  BOOST_TEST(all.writes().at(1).left_out);
  BOOST_TEST(all.writes().at(1).next.is_null());
  add("c", {{"data", 2}});
  BOOST_TEST(!all.writes().at(2).left_out);
}

BOOST_AUTO_TEST_CASE(write_preview_knows_the_places_that_earlier_writes_would_make) {
  write_preview all;
  BOOST_TEST(!all.makes_room_for(config_maps, {"team", "a"}));
  all.add({.type = {{"", "v1", "Namespace"}, "namespaces", false},
           .key = {{}, "team"},
           .next = boost::json::object()});
  BOOST_TEST(all.makes_room_for(config_maps, {"team", "a"}));
  BOOST_TEST(!all.makes_room_for(config_maps, {"other", "a"}));
  const resource_type widgets{{"example.com", "v1", "Widget"}, "widgets"};
  BOOST_TEST(!all.makes_room_for(widgets, {"other", "a"}));
  all.add({.type = {{"apiextensions.k8s.io", "v1", "CustomResourceDefinition"},
                    "customresourcedefinitions",
                    false},
           .key = {{}, "widgets.example.com"},
           .next = {{"spec", {{"group", "example.com"}, {"names", {{"kind", "Widget"}}}}}}});
  BOOST_TEST(all.makes_room_for(widgets, {"other", "a"}));
}

BOOST_AUTO_TEST_CASE(fence_is_asked_again_before_each_attempt) {
  api_fixture f;
  const auto leader = std::make_shared<fence>(f.here.clock);
  leader->open_until(f.here.clock.now() + std::chrono::hours(1));
  f.script.answers([&](const seen_request&, http::response& into) {
    leader->shut();
    into.headers.add("retry-after", "0");
    reply(into, 429, "later");
  });
  auto api = f.use(f.config(), api_fixture::quick()).fenced(leader);
  const auto got = f.call(write(api));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::fenced));
  BOOST_TEST(f.script.count() == 1u);
}

BOOST_AUTO_TEST_CASE(clients_own_limit_spaces_requests) {
  api_fixture f;
  auto options = api_fixture::quick();
  options.requests_per_second = 50;
  options.burst = 2;
  auto& api = f.use(f.config(), options);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 7; ++i) BOOST_TEST(f.call(read(api)).has_value());
  BOOST_TEST((std::chrono::steady_clock::now() - began >= milliseconds(90)));
}

BOOST_AUTO_TEST_CASE(call_that_the_clients_own_limit_would_keep_for_too_long_fails_at_once) {
  api_fixture f;
  auto options = api_fixture::quick();
  options.requests_per_second = 0.001;
  options.burst = 1;
  auto& api = f.use(f.config(), options);
  f.script.answers(good);
  BOOST_TEST(f.call(read(api)).has_value());
  const auto got = f.call(read(api));
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::timed_out));
  BOOST_TEST(got.error().message.find("rate limit") != std::string::npos, got.error().message);
  BOOST_TEST(f.script.count() == 1u);
}

BOOST_AUTO_TEST_CASE(call_that_is_cancelled_in_the_clients_own_limit_gives_its_turn_back) {
  api_fixture f;
  auto options = api_fixture::quick();
  options.connect = options.request = std::chrono::minutes(1);
  options.requests_per_second = 0.05;
  options.burst = 1;
  auto& api = f.use(f.config(), options);
  f.script.answers(good);
  BOOST_TEST(f.call(read(api)).has_value());
  const auto waited = [&] {
    return f.metric("rw_kube_rate_limited_seconds_total{client=\"test\"}");
  };
  // Each finds the same turn, at most 20 s away, since the one before has given it back.
  for (int i = 1; i <= 4; ++i) {
    const auto before = i == 1 ? 0 : waited();
    asio::cancellation_signal stop;
    auto done = asio::co_spawn(f.here.context, read(api),
                               asio::bind_cancellation_slot(stop.slot(), asio::use_future));
    BOOST_TEST(http::test::eventually([&] { return waited() > before; }));
    BOOST_TEST(waited() - before <= 20.1);
    f.here.on_thread([&] { stop.emit(asio::cancellation_type::terminal); });
    BOOST_CHECK_THROW(done.get(), boost::system::system_error);
  }
  BOOST_TEST(f.script.count() == 1u);
}

BOOST_AUTO_TEST_CASE(cancelled_call_ends_with_asios_exception_and_leaves_the_client_usable) {
  for (const auto which : {protocol::h2, protocol::http1}) {
    api_fixture f(which);
    auto& api = f.api();
    f.script.answers({});
    asio::cancellation_signal stop;
    auto done = asio::co_spawn(f.here.context, read(api),
                               asio::bind_cancellation_slot(stop.slot(), asio::use_future));
    BOOST_TEST(http::test::eventually([&] { return f.script.count() == 1; }));
    f.here.on_thread([&] { stop.emit(asio::cancellation_type::terminal); });
    BOOST_CHECK_THROW(done.get(), boost::system::system_error);
    f.script.answers(200, std::string(config_map));
    BOOST_TEST(f.call(read(api)).has_value());
  }
}

BOOST_AUTO_TEST_CASE(call_that_waits_to_try_again_ends_with_the_client) {
  api_fixture f;
  auto options = api_fixture::quick();
  options.deadline = options.retry_limit = std::chrono::hours(1);
  auto& api = f.use(f.config(), options);
  f.script.answers(with(429, "busy", "3000"));
  auto done = asio::co_spawn(f.here.context, read(api), asio::use_future);
  BOOST_TEST(http::test::eventually(
      [&] { return f.metric("rw_kube_retries_total{client=\"test\"}") == 1; }));
  f.close();
  const auto got = done.get();
  BOOST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().is(errc::shut_down));
}

BOOST_AUTO_TEST_CASE(retry_depends_on_whether_the_request_was_processed) {
  const failure busy{.code = errc::too_many_requests, .status = 429};
  const failure passing{.code = errc::unavailable, .status = 503};
  const failure unreachable{.code = errc::unreachable};
  const failure wrong{.code = errc::invalid, .status = 422};
  const attempt_facts read{.repeatable = true};
  const attempt_facts written{.repeatable = false};
  BOOST_TEST(worth_another_try(busy, {.repeatable = false, .told_when = true}));
  BOOST_TEST(!worth_another_try(busy, written));
  BOOST_TEST(worth_another_try(passing, {.repeatable = false, .told_when = true}));
  BOOST_TEST(worth_another_try(passing, read));
  BOOST_TEST(!worth_another_try(passing, written));
  BOOST_TEST(worth_another_try(unreachable, {.repeatable = false, .nothing_sent = true}));
  BOOST_TEST(worth_another_try(unreachable, {.repeatable = false, .not_taken = true}));
  BOOST_TEST(!worth_another_try(unreachable, written));
  BOOST_TEST(!worth_another_try(wrong, {.repeatable = true, .told_when = true}));
}

BOOST_AUTO_TEST_SUITE_END()
