#include "reactors/admin/admin.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(admin)

namespace {

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
  rw::admin::pages pages{metrics, [this] { return reasons; }};
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

BOOST_FIXTURE_TEST_CASE(a_process_that_answers_is_alive, fixture) {
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

BOOST_FIXTURE_TEST_CASE(other_paths_and_methods_are_refused, fixture) {
  BOOST_TEST(get("/").status == 404u);
  BOOST_TEST(get("/metrics/").status == 404u);
  const auto answer = get("/metrics", "POST");
  BOOST_TEST(answer.status == 405u);
  BOOST_TEST(answer.headers.get("allow") == "GET, HEAD");
}

BOOST_AUTO_TEST_CASE(runtimes_are_shown_to_loopback_and_to_who_has_the_token) {
  rw::core::metrics metrics;
  std::string token;
  rw::admin::pages pages(
      metrics, [] { return std::string(); },
      [](std::string_view query, std::string& error) {
        if (query == "bad") error = "unknown parameter bad";
        return "{" + std::string(query) + "}";
      },
      [&] { return token; });
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
  // Without a token nothing opens it, an empty one neither.
  for (const auto* shown : {"", "Bearer ", "Bearer", "Bearer x"}) {
    BOOST_TEST(get("10.0.0.1", shown).status == 401u);
  }
  token = "secret";
  for (const auto* shown :
       {"", "Bearer ", "Bearer secre", "Bearer secret2", "secret", "Basic secret"}) {
    const auto answer = get("10.0.0.1", shown);
    BOOST_TEST(answer.status == 401u);
    BOOST_TEST(answer.headers.get("www-authenticate") == "Bearer");
    BOOST_TEST(answer.body.find("state") == std::string::npos);
  }
  BOOST_TEST(get("10.0.0.1", "Bearer secret").status == 200u);
}

BOOST_AUTO_TEST_SUITE_END()
