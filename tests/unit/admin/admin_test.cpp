#include "rw/reactors/admin/admin.hpp"

#include "rw/core/clock.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/reactors/admin/live_feed.hpp"
#include "rw/tls/digest.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include <optional>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(admin)

namespace {

struct no_rows final : rw::admin::live_source {
  boost::json::object state() override { return {}; }
  void for_each_row(const visitor&) override {}
  boost::json::object row(std::string_view) override { return {}; }
};

struct fixture {
  rw::http::response get(const char* target, const char* method = "GET") {
    rw::http::request request;
    request.method = method;
    request.target = target;
    rw::http::response response;
    const auto rest = pages.handle(request, response);
    BOOST_TEST(!rest.valid());
    return response;
  }

  rw::core::metrics metrics;
  std::string reasons;
  rw::admin::pages pages{metrics, {.not_ready = [this] { return reasons; }}};
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(metrics_are_shown_in_the_text_format, fixture) {
  rw::core::make_counter(metrics, "made_total", "Things made", {{"of", "wood"}}).Increment(3);
  const auto answer = get("/metrics");
  BOOST_TEST(answer.status == 200u);
  BOOST_TEST(answer.headers.get("content-type") == "text/plain; version=0.0.4; charset=utf-8");
  BOOST_TEST(answer.body.find("# TYPE made_total counter") != std::string::npos);
  BOOST_TEST(answer.body.find("made_total{of=\"wood\"} 3") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(process_that_responds_is_alive, fixture) {
  reasons = "the certificate is not valid now\n";
  BOOST_TEST(get("/livez").status == 200u);
  BOOST_TEST(get("/healthz").status == 200u);
}

BOOST_FIXTURE_TEST_CASE(readiness_follows_its_reasons, fixture) {
  BOOST_TEST(get("/readyz").status == 200u);
  reasons = "the queue is full\n";
  const auto answer = get("/readyz?verbose");
  BOOST_TEST(answer.status == 503u);
  BOOST_TEST(answer.body.find("the queue is full") != std::string::npos);
  reasons.clear();
  BOOST_TEST(get("/readyz").status == 200u);
}

BOOST_AUTO_TEST_CASE(unknown_path_is_answered_with_all_that_there_are) {
  rw::core::metrics metrics;
  const auto source = [](std::string_view, std::string&) { return std::string(); };
  rw::admin::pages some(metrics, {.runtimes = source, .history = source});
  rw::admin::pages none(metrics, {});
  const auto told = [](rw::admin::pages& by) {
    rw::http::request request;
    request.method = "GET";
    request.target = "/x";
    rw::http::response response;
    const auto rest = by.handle(request, response);
    BOOST_TEST(!rest.valid());
    return response.body;
  };
  BOOST_TEST(told(some) ==
             "not found: try /runtimes, /history, /metrics, /healthz, /livez or /readyz\n");
  BOOST_TEST(told(none) == "not found: try /metrics, /healthz, /livez or /readyz\n");
}

BOOST_FIXTURE_TEST_CASE(pages_refuse_other_paths_and_methods, fixture) {
  BOOST_TEST(get("/").status == 404u);
  BOOST_TEST(get("/metrics/").status == 404u);
  const auto answer = get("/metrics", "POST");
  BOOST_TEST(answer.status == 405u);
  BOOST_TEST(answer.headers.get("allow") == "GET, HEAD");
}

BOOST_AUTO_TEST_CASE(runtimes_are_shown_to_loopback_and_to_who_has_the_token) {
  rw::core::metrics metrics;
  std::string token;
  rw::admin::pages pages(metrics,
                         {.runtimes =
                              [](std::string_view query, std::string& error) {
                                if (query == "bad") error = "unknown parameter bad";
                                return "{" + std::string(query) + "}";
                              },
                          .history = [](std::string_view query,
                                        std::string&) { return "[" + std::string(query) + "]"; },
                          .token = [&] { return token; }});
  const auto get = [&](const char* from, const char* authorization,
                       const char* target = "/runtimes?state=failed") {
    rw::http::request request;
    request.method = "GET";
    request.target = target;
    request.peer.address = {boost::asio::ip::make_address(from), 1};
    if (*authorization != 0) request.headers.add("authorization", authorization);
    rw::http::response response;
    BOOST_TEST(!pages.handle(request, response).valid());
    return response;
  };
  for (const auto* own : {"127.0.0.1", "127.1.2.3", "::1"}) {
    const auto answer = get(own, "");
    BOOST_TEST(answer.status == 200u);
    BOOST_TEST(answer.body == "{state=failed}");
    BOOST_TEST(answer.headers.get("content-type") == "application/json");
  }
  BOOST_TEST(get("127.0.0.1", "", "/runtimes").body == "{}");
  BOOST_TEST(get("127.0.0.1", "", "/runtimes?bad").status == 400u);
  BOOST_TEST(get("127.0.0.1", "", "/history?at=1").body == "[at=1]");
  BOOST_TEST(get("10.0.0.1", "", "/history").status == 401u);
  // Without a token nothing opens it, an empty one neither.
  for (const auto* shown : {"", "Bearer ", "Bearer", "Bearer x"}) {
    BOOST_TEST(get("10.0.0.1", shown).status == 401u);
  }
  token = "secret";
  for (const auto* shown :
       {"", "Bearer ", "Bearer secre", "Bearer secret2", "secret", "Basic secret"}) {
    const auto answer = get("10.0.0.1", shown);
    BOOST_TEST(answer.status == 401u);
    BOOST_TEST(answer.headers.get("www-authenticate") == "Bearer, Basic realm=\"runtime-watcher\"");
    BOOST_TEST(answer.body.find("state") == std::string::npos);
  }
  BOOST_TEST(get("10.0.0.1", "Bearer secret").status == 200u);
}

BOOST_AUTO_TEST_CASE(replica_that_does_not_lead_names_the_leader_to_those_who_may_see_it) {
  rw::core::metrics metrics;
  boost::asio::io_context context;
  rw::core::real_clock clock;
  no_rows source;
  rw::admin::live_feed feed{context.get_executor(), clock, metrics, source, {.viewers = 1}};
  const auto shown = [](std::string_view, std::string&) { return "{}"; };
  std::optional<rw::admin::other_leader> leader{{"manager-1", "pod manager-1 leads"}};
  rw::admin::pages pages(
      metrics,
      {.runtimes = shown, .history = shown, .elsewhere = [&] { return leader; }, .live = &feed});
  const auto get = [&](const char* target, const char* from, const char* method = "GET") {
    rw::http::request request;
    request.method = method;
    request.target = target;
    request.peer.address = {boost::asio::ip::make_address(from), 1};
    rw::http::response response;
    BOOST_TEST(!pages.handle(request, response).valid());
    return response;
  };
  for (const auto* path : {"/", "/live", "/runtimes?limit=1", "/history"}) {
    const auto answer = get(path, "127.0.0.1");
    BOOST_TEST(answer.status == 421u, path);
    BOOST_TEST(answer.last, path);
    BOOST_TEST(!answer.source);
    BOOST_TEST(answer.body.find("pod manager-1 leads") != std::string::npos, path);
    BOOST_TEST(get(path, "127.0.0.1", "HEAD").status == 421u, path);
    BOOST_TEST(get(path, "10.0.0.1").status == 401u, path);
  }
  const auto runtimes = get("/runtimes", "127.0.0.1");
  BOOST_TEST(runtimes.headers.get("content-type") == "application/json");
  BOOST_TEST(runtimes.body ==
             R"({"leads":false,"message":"pod manager-1 leads","leader":"manager-1"})");
  BOOST_TEST(get("/readyz", "10.0.0.1").status == 200u);
  leader.reset();
  BOOST_TEST(get("/runtimes", "127.0.0.1").body == "{}");
}

BOOST_AUTO_TEST_CASE(diff_is_computed_by_the_leader_for_those_who_may_see_it) {
  rw::core::metrics metrics;
  std::vector<std::string> queries;
  rw::admin::json_page page{.body = "{}"};
  std::optional<rw::admin::other_leader> leader;
  const auto compute = [&](std::string query) -> boost::asio::awaitable<rw::admin::json_page> {
    queries.push_back(std::move(query));
    co_return page;
  };
  rw::admin::pages pages(metrics, {.diff = compute, .elsewhere = [&] { return leader; }});
  const auto get = [&](const char* from, const char* method = "GET") {
    rw::http::request request;
    request.method = method;
    request.target = "/diff?runtime=a";
    request.peer.address = {boost::asio::ip::make_address(from), 1};
    rw::http::response response;
    boost::asio::io_context context;
    auto rest = pages.handle(request, response);
    if (rest.valid()) rw::test::run(context, std::move(rest));
    return response;
  };
  BOOST_TEST(get("10.0.0.1").status == 401u);
  BOOST_TEST(get("127.0.0.1", "HEAD").status == 405u);
  leader = {{"manager-1", "pod manager-1 leads"}};
  BOOST_TEST(get("127.0.0.1").status == 421u);
  BOOST_TEST(queries.empty());
  leader.reset();
  const auto shown = get("127.0.0.1");
  BOOST_TEST(shown.body == "{}");
  BOOST_TEST(shown.headers.get("content-type") == "application/json");
  BOOST_TEST(shown.headers.get("cache-control") == "no-store");
  BOOST_TEST((queries == std::vector<std::string>{"runtime=a"}));
  page = {503, "busy"};
  BOOST_TEST(get("127.0.0.1").headers.get("retry-after") == "5");
}

BOOST_AUTO_TEST_CASE(token_may_come_in_a_field_that_proxies_leave_alone) {
  rw::core::metrics metrics;
  std::string token;
  std::string of_term;
  rw::admin::pages pages(metrics, {.runtimes = [](std::string_view, std::string&) { return "{}"; },
                                   .token = [&] { return token; },
                                   .term_token = [&] { return of_term; }});
  const auto status = [&](std::string_view shown, std::string_view beside = {}) {
    rw::http::request request;
    request.method = "GET";
    request.target = "/runtimes";
    request.headers.add(rw::admin::token_field, shown);
    if (!beside.empty()) request.headers.add("authorization", beside);
    request.peer.address = {boost::asio::ip::make_address("10.0.0.1"), 1};
    rw::http::response response;
    (void)pages.handle(request, response);
    return response.status;
  };
  BOOST_TEST(status("") == 401u);
  BOOST_TEST(status("secret") == 401u);
  token = "secret";
  of_term = "term";
  BOOST_TEST(status("") == 401u);
  BOOST_TEST(status("secre") == 401u);
  BOOST_TEST(status("secret") == 200u);
  BOOST_TEST(status("term") == 200u);
  BOOST_TEST(status("other", "Bearer secret") == 401u);
}

namespace {

/// Pages with a live page, and clients of them.
struct live_fixture {
  rw::http::response get(const char* target, const char* from = "127.0.0.1",
                         const std::string& authorization = {}, const char* host = "localhost:1",
                         const char* method = "GET") {
    rw::http::request request;
    request.method = method;
    request.target = target;
    request.peer.address = {boost::asio::ip::make_address(from), 1};
    if (*host != 0) request.headers.add("host", host);
    if (!authorization.empty()) request.headers.add("authorization", authorization);
    rw::http::response response;
    BOOST_TEST(!pages.handle(request, response).valid());
    return response;
  }

  boost::asio::io_context context;
  rw::core::real_clock clock;
  rw::core::metrics metrics;
  no_rows source;
  rw::admin::live_feed feed{context.get_executor(), clock, metrics, source, {.viewers = 1}};
  std::string token;
  rw::admin::pages pages{metrics, {.token = [this] { return token; }, .live = &feed}};
};

/// Returns the text between two markers.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

std::string digest_of(const std::string& text) {
  const auto digest = rw::tls::sha256(text);
  return rw::k8s::base64_encode({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(page_runs_only_its_own_script_and_style, live_fixture) {
  const auto page = get("/");
  BOOST_TEST(page.status == 200u);
  BOOST_TEST(page.headers.get("content-type") == "text/html; charset=utf-8");
  BOOST_TEST(page.headers.get("cache-control") == "no-store");
  const std::string policy(page.headers.get("content-security-policy"));
  BOOST_TEST(policy.starts_with("default-src 'none'; "));
  BOOST_TEST(policy.find("unsafe") == std::string::npos);
  const auto script = digest_of(between(page.body, "<script>", "</script>"));
  BOOST_TEST(policy.find("script-src 'sha256-" + script + "';") != std::string::npos);
  const auto style = digest_of(between(page.body, "<style>", "</style>"));
  BOOST_TEST(policy.find("style-src 'sha256-" + style + "';") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(live_events_have_a_bounded_number_of_viewers, live_fixture) {
  const auto first = get("/live");
  BOOST_TEST(first.status == 200u);
  BOOST_TEST(first.headers.get("content-type") == "text/event-stream");
  BOOST_TEST((first.source != nullptr));
  const auto second = get("/live");
  BOOST_TEST(second.status == 503u);
  BOOST_TEST(second.headers.get("retry-after") == "5");
  BOOST_TEST(get("/live", "127.0.0.1", "", "localhost", "HEAD").status == 200u);
}

BOOST_FIXTURE_TEST_CASE(page_is_shown_to_browsers_that_know_the_token, live_fixture) {
  const auto basic = [](const std::string& pair) {
    return "Basic " + rw::k8s::base64_encode(pair);
  };
  for (const auto* path : {"/", "/live"}) {
    BOOST_TEST(get(path, "10.0.0.1", basic(":")).status == 401u);
    BOOST_TEST(get(path, "10.0.0.1", basic("")).status == 401u);
  }
  token = "secret:with colon";
  for (const auto& wrong : {basic("anyone:secret"), basic("secret:with colon"), basic(token + ":"),
                            std::string("Basic !"), std::string("Basic"), std::string("Bearer ")}) {
    const auto answer = get("/", "10.0.0.1", wrong);
    BOOST_TEST(answer.status == 401u, wrong);
    BOOST_TEST(answer.headers.get("www-authenticate").find("Basic realm=") !=
               std::string_view::npos);
  }
  BOOST_TEST(get("/", "10.0.0.1", basic(":" + token)).status == 200u);
  BOOST_TEST(get("/", "10.0.0.1", basic("anyone:" + token), "manager.example").status == 200u);
  BOOST_TEST(get("/live", "10.0.0.1", "bearer " + token).status == 200u);
}

BOOST_FIXTURE_TEST_CASE(web_site_whose_name_resolves_to_loopback_is_rejected, live_fixture) {
  BOOST_TEST(get("/", "::ffff:127.0.0.1").status == 200u);
  BOOST_TEST(get("/", "::ffff:10.0.0.1").status == 401u);
  for (const auto* host : {"localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:80",
                           "[::1]", "[::ffff:127.0.0.1]:80", ""}) {
    BOOST_TEST(get("/", "127.0.0.1", "", host).status == 200u, host);
  }
  for (const auto* host :
       {"attacker.example", "attacker.example:8080", "localhost.attacker.example",
        "127.0.0.1.attacker.example", "10.0.0.1", "[::2]:80", "[", ":", "[]"}) {
    for (const auto* path : {"/", "/live"}) {
      BOOST_TEST(get(path, "127.0.0.1", "", host).status == 403u, host);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(live_feed_refuses_requests_of_other_web_sites, live_fixture) {
  const auto get_from = [this](const char* site, const char* target = "/live") {
    rw::http::request request;
    request.method = "GET";
    request.target = target;
    request.peer.address = {boost::asio::ip::make_address("127.0.0.1"), 1};
    request.headers.add("host", "127.0.0.1:8080");
    request.headers.add("sec-fetch-site", site);
    rw::http::response response;
    BOOST_TEST(!pages.handle(request, response).valid());
    return response.status;
  };
  for (const auto* site : {"cross-site", "same-site", "other"}) {
    BOOST_TEST(get_from(site) == 403u, site);
  }
  BOOST_TEST(get_from("cross-site", "/") == 200u);  // a link to the page
  for (const auto* site : {"same-origin", "none"}) BOOST_TEST(get_from(site) == 200u, site);
}

BOOST_AUTO_TEST_SUITE_END()
