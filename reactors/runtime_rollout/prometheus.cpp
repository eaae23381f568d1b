#include "rw/reactors/runtime_rollout/prometheus.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/read_json.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/tls/files.hpp"
#include "rw/tls/transport.hpp"

#include <boost/json/array.hpp>

#include <cmath>
#include <memory>
#include <utility>

namespace rw::runtime_rollout {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using core::text_error;

constexpr std::size_t shown = 200;  // bytes of a response in an error

std::string shortened(std::string_view text) {
  return core::printable(core::middle_cut(text, shown));
}

tls::result<std::unique_ptr<core::transport>> transport_to(const k8s::server_url& server,
                                                           const std::string& ca_file) {
  if (!server.tls) return core::make_plain_transport();
  auto trusted = tls::material::none();
  if (!ca_file.empty()) {
    auto given = tls::material::load({.ca = ca_file});
    if (given.has_error()) return std::move(given).error();
    trusted = std::move(*given);
  }
  return tls::make_client_transport(std::make_shared<tls::credentials>(std::move(trusted)),
                                    {.server_name = server.host,
                                     .least = tls::version::tls_1_2,
                                     .trust_system = ca_file.empty(),
                                     .resume_sessions = false});
}

/// Of a pair of time and value.
query_result read_sample(const json::value* pair) {
  const auto* const both = pair == nullptr ? nullptr : pair->if_array();
  if (both == nullptr || both->size() != 2 || !both->at(1).is_string()) {
    return text_error{"has a sample without a value"};
  }
  const auto& text = both->at(1).get_string();
  const auto value = core::parse_number<double>(text);
  if (value && std::isfinite(*value)) return *value;
  return text_error{"has the value " + shortened(text) + ", which is no finite number"};
}

}  // namespace

k8s::url_result<k8s::server_url> parse_prometheus_url(std::string_view text, bool has_token) {
  constexpr std::string_view plain = "http://";
  auto out = k8s::parse_server_url(text);
  if (out || has_token || !text.starts_with(plain)) return out;
  const auto rest = text.substr(plain.size());
  out = k8s::parse_server_url("https://" + std::string(rest));
  if (!out) return out;
  out->tls = false;
  if (rest.substr(0, rest.find('/')).find(":443") == rest.npos && out->port == 443) out->port = 80;
  return out;
}

query_result read_query_response(std::string_view body) {
  const auto response = k8s::read_json(body);
  if (!response) return text_error{"has a response that is not Prometheus': " + shortened(body)};
  const auto& read = *response;
  const auto status = k8s::find_string(read, {"status"});
  if (status == "error") {
    return text_error{"is rejected: " + shortened(k8s::find_string(read, {"error"}))};
  }
  if (status != "success")
    return text_error{"has a response that is not Prometheus': " + shortened(body)};
  const auto type = k8s::find_string(read, {"data", "resultType"});
  const auto* const result = k8s::find_array(read, {"data", "result"});
  if (result == nullptr || (type != "vector" && type != "scalar")) {
    return text_error{"has a " + shortened(type) + " as result, neither a vector nor a scalar"};
  }
  if (type == "scalar") return read_sample(k8s::find(read, {"data", "result"}));
  if (result->empty()) return text_error{"has no sample"};
  if (result->size() > 1) {
    return text_error{"has " + std::to_string(result->size()) + " series, where one is expected"};
  }
  return read_sample(k8s::find(result->front(), {"value"}));
}

prometheus_client::prometheus_client(asio::any_io_executor executor, prometheus_options with,
                                     core::clock& clock, core::watchdog& watchdog,
                                     core::logger& log, core::metrics& metrics)
    : executor_(std::move(executor)),
      options_(std::move(with)),
      clock_(clock),
      watchdog_(watchdog),
      log_(log),
      metrics_(metrics) {}

asio::awaitable<query_result> prometheus_client::query(std::string text) {
  const auto end = clock_.now() + options_.timeout;
  const auto server = parse_prometheus_url(options_.url, !options_.token_file.empty());
  if (!server)
    co_return text_error{"has no server: " + options_.url + " " + server.error().message};
  http::request request;
  request.method = "GET";
  request.headers.add("accept", "application/json");
  if (!options_.token_file.empty()) {
    const auto token = tls::read_file(options_.token_file);
    if (token.has_error()) co_return text_error{"has no token: " + token.error().message()};
    request.headers.add("authorization", "Bearer " + std::string(core::trimmed(*token)));
  }
  request.target = server->prefix + "/api/v1/query?query=";
  k8s::append_percent_encoded(request.target, text);
  const auto over = transport_to(*server, options_.ca_file);
  if (over.has_error()) co_return text_error{"has no connection: " + over.error().message()};
  http::client client(executor_,
                      {.name = "prometheus",
                       .host = server->host,
                       .port = server->port,
                       .limits = {.connections = 1,
                                  .body_bytes = options_.response_bytes,
                                  .connect = options_.timeout,
                                  .exchange = options_.timeout}},
                      {**over, watchdog_, log_, metrics_});
  http::response response;
  boost::system::error_code error;
  {
    http::client_slot slot;
    error = co_await client.acquire(slot, options_.timeout);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock_.now());
    if (!error && left.count() <= 0) error = http::client_error::timed_out;
    if (!error) error = co_await slot.exchange(request, response, {.limit = left});
  }
  auto cause = error ? error.message() : std::string();
  if (error && !client.connect_failure().empty()) cause += ": " + client.connect_failure();
  co_await client.close();
  if (error) co_return text_error{"has no response: " + cause};
  const auto status = response.status;
  if (status >= 300 && status < 400) {
    co_return text_error{"has a redirect as response, which is not followed"};
  }
  // Prometheus says with 400, 422 and 503, too, what is wrong.
  auto out = read_query_response(response.body);
  const bool told = !out && (status == 400 || status == 422 || status == 503);
  if (status / 100 == 2 || told) co_return out;
  co_return text_error{"has the response " + std::to_string(status) + ": " +
                       shortened(response.body)};
}

}  // namespace rw::runtime_rollout
