#pragma once

#include "core/http/server.hpp"
#include "core/metrics.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace rw::admin {

/// The administrative pages of a process: `/metrics` (in the Prometheus text format, or OpenMetrics
/// for clients that ask for it), `/healthz` and
/// `/livez` (200 while the process responds), `/readyz` (200, or 503 with the reasons, one a line),
/// and `/runtimes`, if there is such a view. GET and HEAD.
///
/// `/runtimes` names the runtimes of a landscape, so it is served only to clients on the loopback
/// interface, and to clients with the token (`Authorization: Bearer`, RFC 6750); 401 otherwise.
///
/// Thread-safe if the functions are.
class pages final : public http::handler {
 public:
  /// Returns why the process is not ready; empty if it is.
  using readiness = std::function<std::string()>;
  /// Returns JSON for the query of a URL ("state=failed&limit=10"). Sets `error`, for status 400,
  /// if the query is invalid.
  using view = std::function<std::string(std::string_view query, std::string& error)>;
  /// Returns the current token; empty: there is none.
  using token_source = std::function<std::string()>;

  pages(const core::metrics& metrics, readiness not_ready, view runtimes = {},
        token_source token = {})
      : metrics_(metrics),
        not_ready_(std::move(not_ready)),
        runtimes_(std::move(runtimes)),
        token_(std::move(token)) {}

  std::size_t body_limit(const http::request&) const override { return 0; }
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;

 private:
  bool may_see(const http::request& from) const;
  void show_runtimes(const http::request& from, std::string_view query, http::response& into) const;

  const core::metrics& metrics_;
  const readiness not_ready_;
  const view runtimes_;
  const token_source token_;
};

}  // namespace rw::admin
