#pragma once

#include "core/http/server.hpp"
#include "core/metrics.hpp"

#include <functional>
#include <string>

namespace rw::admin {

/// What an operator looks at: `/metrics` (Prometheus text format 0.0.4), `/healthz` and `/livez`
/// (200 as long as the process answers), `/readyz` (200, or 503 with the reasons, one a line). GET
/// and HEAD. Thread-safe if `not_ready` is.
class pages final : public http::handler {
 public:
  /// Says why the process is not ready; empty if it is.
  using readiness = std::function<std::string()>;

  pages(const core::metrics& metrics, readiness not_ready)
      : metrics_(metrics), not_ready_(std::move(not_ready)) {}

  std::size_t body_limit(const http::request&) const override { return 0; }
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;

 private:
  const core::metrics& metrics_;
  const readiness not_ready_;
};

}  // namespace rw::admin
