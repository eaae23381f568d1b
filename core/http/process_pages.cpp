#include "rw/core/http/process_pages.hpp"

#include "rw/core/process_metrics.hpp"

namespace rw::http {

bool show_process(const core::metrics& metrics, const std::function<std::string()>& not_ready,
                  const request& from, response& into, const core::labels& common) {
  const std::string_view target = from.target;
  const auto path = target.substr(0, target.find('?'));
  if (from.method != "GET" && from.method != "HEAD") {
    into.headers.add("allow", "GET, HEAD");
    into.text(405, "only GET and HEAD");
  } else if (path == "/metrics") {
    const auto format = core::exposition_for(from.headers.get("accept"));
    into.headers.add("content-type", core::media_type(format));
    into.body = core::expose_with_process(metrics, format, common);
  } else if (path == "/healthz" || path == "/livez") {
    into.text(200, "ok");
  } else if (path == "/readyz") {
    const auto reasons = not_ready ? not_ready() : std::string();
    into.text(reasons.empty() ? 200 : 503, reasons.empty() ? "ok" : reasons);
  } else {
    return false;
  }
  return true;
}

}  // namespace rw::http
