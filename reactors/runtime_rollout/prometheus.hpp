#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/client.hpp"
#include "rw/core/text_error.hpp"
#include "rw/k8s/objects/url.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace rw::runtime_rollout {

struct prometheus_options {
  std::string url = {};         ///< "https://host[:port][/prefix]"; empty: there is none
  std::string ca_file = {};     ///< of its certificate; empty: the system's authorities
  std::string token_file = {};  ///< a bearer token; empty: none
  std::chrono::milliseconds timeout = std::chrono::seconds(10);  ///< of one query, all in all
  std::size_t response_bytes = 1u << 20;
};

/// Parses the server's URL. Plain http is rejected with a token, but for loopback addresses.
k8s::url_result<k8s::server_url> parse_prometheus_url(std::string_view text, bool has_token);

/// The one value of a query, or why there is none, as the end of a sentence ("has no sample").
using query_result = boost::system::result<double, core::text_error>;

/// Reads the response to an instant query (prometheus.io/docs/prometheus/latest/querying/api):
/// a scalar, or a vector with one sample; a value that is not finite is an error.
query_result read_query_response(std::string_view body);

/// Queries a Prometheus. Queries are rare: each has a connection of its own and reads the files
/// anew, so that changed ones are in use. Redirects are not followed. On one executor.
class prometheus_client {
 public:
  prometheus_client(boost::asio::any_io_executor executor, prometheus_options with,
                    core::clock& clock, core::watchdog& watchdog, core::logger& log,
                    core::metrics& metrics);

  /// Evaluates `text` at the server's present time.
  boost::asio::awaitable<query_result> query(std::string text);

 private:
  const boost::asio::any_io_executor executor_;
  const prometheus_options options_;
  core::clock& clock_;
  core::watchdog& watchdog_;
  core::logger& log_;
  core::metrics& metrics_;
};

}  // namespace rw::runtime_rollout
