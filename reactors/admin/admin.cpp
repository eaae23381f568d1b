#include "reactors/admin/admin.hpp"

#include <openssl/crypto.h>

namespace rw::admin {

boost::asio::awaitable<void> pages::handle(http::request& from, http::response& into) {
  const std::string_view target = from.target;
  const auto path = target.substr(0, target.find('?'));
  if (from.method != "GET" && from.method != "HEAD") {
    into.headers.add("allow", "GET, HEAD");
    into.text(405, "only GET and HEAD");
  } else if (path == "/metrics") {
    const auto format = core::exposition_for(from.headers.get("accept"));
    into.headers.add("content-type", core::media_type(format));
    into.body = core::expose_with_process(metrics_, format);
  } else if (path == "/healthz" || path == "/livez") {
    into.text(200, "ok");
  } else if (path == "/readyz") {
    const auto reasons = not_ready_();
    into.text(reasons.empty() ? 200 : 503, reasons.empty() ? "ok" : reasons);
  } else if (path == "/runtimes" && runtimes_) {
    show_runtimes(from, target.substr(std::min(path.size() + 1, target.size())), into);
  } else {
    into.text(404, "not found: try /metrics, /healthz, /livez or /readyz");
  }
  return {};
}

bool pages::may_see(const http::request& from) const {
  if (from.peer.address.address().is_loopback()) return true;
  const auto token = token_ ? token_() : std::string();
  const auto shown = from.headers.get("authorization");
  const auto wanted = "Bearer " + token;
  // Compared in constant time, so that the response time reveals nothing of the token.
  return !token.empty() && shown.size() == wanted.size() &&
         CRYPTO_memcmp(shown.data(), wanted.data(), wanted.size()) == 0;
}

void pages::show_runtimes(const http::request& from, std::string_view query,
                          http::response& into) const {
  if (!may_see(from)) {
    into.headers.add("www-authenticate", "Bearer");
    into.text(401,
              "the runtimes are shown to clients on the loopback interface, and to those with "
              "the token of --admin-token-file");
    return;
  }
  std::string error;
  auto body = runtimes_(query, error);
  if (!error.empty()) return into.text(400, error);
  into.headers.add("content-type", "application/json");
  into.headers.add("cache-control", "no-store");
  into.body = std::move(body);
}

}  // namespace rw::admin
