#include "reactors/admin/admin.hpp"

namespace rw::admin {

boost::asio::awaitable<void> pages::handle(http::request& from, http::response& into) {
  const std::string_view target = from.target;
  const auto path = target.substr(0, target.find('?'));
  if (from.method != "GET" && from.method != "HEAD") {
    into.headers.add("allow", "GET, HEAD");
    into.text(405, "only GET and HEAD");
  } else if (path == "/metrics") {
    into.headers.add("content-type", "text/plain; version=0.0.4; charset=utf-8");
    into.body = core::expose(metrics_);
  } else if (path == "/healthz" || path == "/livez") {
    into.text(200, "ok");
  } else if (path == "/readyz") {
    const auto reasons = not_ready_();
    into.text(reasons.empty() ? 200 : 503, reasons.empty() ? "ok" : reasons);
  } else {
    into.text(404, "not found: try /metrics, /healthz, /livez or /readyz");
  }
  return {};
}

}  // namespace rw::admin
