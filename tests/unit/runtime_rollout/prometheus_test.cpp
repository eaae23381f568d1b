// What a Prometheus, or what stands in its place, may respond.

#include "rw/reactors/runtime_rollout/prometheus.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/http/upstream.hpp"
#include "tests/unit/run.hpp"
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <utility>

namespace rw::runtime_rollout_test {
BOOST_AUTO_TEST_SUITE(prometheus)

namespace asio = boost::asio;
using namespace std::chrono_literals;
using http::test::answering;
using http::test::upstream;
using runtime_rollout::read_query_response;

namespace {

std::string vector_of(const std::string& samples) {
  return R"({"status":"success","data":{"resultType":"vector","result":[)" + samples + "]}}";
}

std::string sample(const std::string& value) {
  return R"({"metric":{"a":"b"},"value":[1435781451.781,")" + value + R"("]})";
}

std::string in_http(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

std::string error_of(const std::string& body) {
  const auto read = read_query_response(body);
  return read ? "value " + std::to_string(*read) : read.error().message;
}

class asking : public test::environment {
 public:
  ~asking() override { shut_down(); }

  /// The value, or the error, of a query to a server that does so.
  asio::awaitable<std::string> query(upstream::script does,
                                     runtime_rollout::prometheus_options with = {}) {
    const upstream server(std::move(does));
    with.url = "http://127.0.0.1:" + std::to_string(server.port()) + "/prefix";
    runtime_rollout::prometheus_client prometheus(context.get_executor(), std::move(with), clock,
                                                  watchdog, log, numbers);
    const auto got = co_await prometheus.query("sum(up == 0)");
    co_return got ? std::to_string(*got) : got.error().message;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(query_response_has_one_finite_value) {
  BOOST_TEST(*read_query_response(vector_of(sample("0.25"))) == 0.25);
  BOOST_TEST(*read_query_response(vector_of(sample("-1e-3"))) == -0.001);
  const auto* const scalar =
      R"({"status":"success","data":{"resultType":"scalar","result":[1,"7"]}})";
  BOOST_TEST(*read_query_response(scalar) == 7);
  BOOST_TEST(error_of(vector_of("")) == "has no sample");
  BOOST_TEST(error_of(vector_of(sample("1") + "," + sample("1"))) ==
             "has 2 series, where one is expected");
  for (const auto* wrong : {"NaN", "+Inf", "-Inf", "", "1x"}) {
    BOOST_TEST(error_of(vector_of(sample(wrong))) ==
               "has the value " + std::string(wrong) + ", which is no finite number");
  }
  BOOST_TEST(error_of(vector_of("{}")) == "has a sample without a value");
  BOOST_TEST(error_of(vector_of(R"({"value":[1,2]})")) == "has a sample without a value");
  BOOST_TEST(error_of(R"({"status":"success","data":{"resultType":"matrix","result":[]}})") ==
             "has a matrix as result, neither a vector nor a scalar");
  BOOST_TEST(error_of(R"({"status":"error","errorType":"bad_data","error":"parse error"})") ==
             "is rejected: parse error");
  for (const auto* wrong : {"", "ok", "{", "[]", "{}", R"({"status":"success"})", "null"}) {
    BOOST_TEST(!read_query_response(wrong).has_value(), wrong);
  }
  BOOST_TEST(error_of("<html>") == "has a response that is not Prometheus': <html>");
}

BOOST_AUTO_TEST_CASE(server_is_reached_without_tls_only_where_no_token_goes_there) {
  using runtime_rollout::parse_prometheus_url;
  const auto plain = parse_prometheus_url("http://prometheus.monitoring:9090/p", false);
  BOOST_TEST_REQUIRE(plain.has_value());
  BOOST_TEST(!plain->tls);
  BOOST_TEST(plain->port == 9090);
  BOOST_TEST(plain->prefix == "/p");
  BOOST_TEST(parse_prometheus_url("http://prometheus", false)->port == 80);
  BOOST_TEST(!parse_prometheus_url("http://prometheus", true).has_value());
  BOOST_TEST(parse_prometheus_url("http://127.0.0.1:1", true).has_value());
  BOOST_TEST(parse_prometheus_url("https://prometheus", true)->tls);
  BOOST_TEST(!parse_prometheus_url("prometheus:9090", false).has_value());
}

RW_COROUTINE_TEST(hostile_responses_are_errors, asking) {
  const auto good = vector_of(sample("3"));
  auto got = co_await env->query(answering(in_http(good)));
  BOOST_TEST(got == "3.000000");
  got = co_await env->query(
      answering("HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n"));
  BOOST_TEST(got == "has a redirect as response, which is not followed");
  const std::string much(2u << 20, ' ');
  got = co_await env->query(answering(in_http(good + much)));
  BOOST_TEST(got.starts_with("has no response: "), got);
  got = co_await env->query(answering(in_http("who are you", "401 Unauthorized")));
  BOOST_TEST(got == "has the response 401: who are you");
  got = co_await env->query(
      answering(in_http(R"({"status":"error","error":"unknown function"})", "400 Bad Request")));
  BOOST_TEST(got == "is rejected: unknown function");
  // One with a value is none all the same.
  got = co_await env->query(answering(in_http(good, "500 Internal Server Error")));
  BOOST_TEST(got.starts_with("has the response 500"), got);
  got = co_await env->query(answering("no http at all\r\n\r\n"));
  BOOST_TEST(got.starts_with("has no response: "), got);
}

RW_COROUTINE_TEST(slow_response_ends_in_time, asking) {
  const auto began = env->clock.now();
  const auto slow = [](asio::ip::tcp::socket& socket, int) {
    upstream::read_some(socket);
    upstream::write(socket, "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{");
    upstream::read_rest(socket);
  };
  const auto got = co_await env->query(slow, {.timeout = 200ms});
  BOOST_TEST(got.starts_with("has no response: "), got);
  BOOST_TEST((env->clock.now() - began < 5s));
}

RW_COROUTINE_TEST(token_is_read_again_when_it_changes, asking) {
  const auto file =
      std::filesystem::temp_directory_path() / ("prometheus-token-" + std::to_string(::getpid()));
  for (const std::string token : {"first", "second"}) {
    std::ofstream(file) << token << "\n";
    std::string asked;
    const auto listening = [&asked](asio::ip::tcp::socket& socket, int) {
      asked = upstream::read_some(socket);
      upstream::write(socket, in_http(vector_of(sample("0"))));
      upstream::read_rest(socket);
    };
    const auto got = co_await env->query(listening, {.token_file = file.string()});
    BOOST_TEST(got == "0.000000");
    BOOST_TEST(
        asked.starts_with("GET /prefix/api/v1/query?query=sum%28up%20%3D%3D%200%29 HTTP/1.1"),
        asked);
    BOOST_TEST(asked.find("host:") == asked.rfind("host:"), asked);  // Go rejects two of them
    BOOST_TEST(asked.find("Bearer " + token + "\r\n") != asked.npos, asked);
  }
  std::filesystem::remove(file);
  const auto got = co_await env->query(answering(in_http(vector_of(sample("0")))),
                                       {.token_file = file.string()});
  BOOST_TEST(got.starts_with("has no token: "), got);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace rw::runtime_rollout_test
