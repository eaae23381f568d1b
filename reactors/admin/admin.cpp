#include "rw/reactors/admin/admin.hpp"

#include "rw/core/http/process_pages.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/reactors/admin/live_feed.hpp"
#include "rw/tls/digest.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <openssl/crypto.h>

#include <optional>

namespace rw::admin {

extern const std::string_view page_html;

namespace {

/// Returns a source expression of a Content-Security-Policy that allows the content of the page's
/// only element of that name (CSP Level 3, section 2.3.1).
std::string allow_inline(std::string_view element) {
  const auto begin = "<" + std::string(element) + ">";
  const auto from = page_html.find(begin) + begin.size();
  const auto text =
      page_html.substr(from, page_html.find("</" + std::string(element), from) - from);
  const auto digest = tls::sha256(text);
  return "'sha256-" +
         k8s::base64_encode({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

const std::string& content_security_policy() {
  static const std::string policy =
      "default-src 'none'; script-src " + allow_inline("script") + "; style-src " +
      allow_inline("style") +
      "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'";
  return policy;
}

/// True also for ::ffff:127.0.0.1, the peer 127.0.0.1 of a dual-stack socket (RFC 4291,
/// section 2.5.5.2).
bool is_loopback(const boost::asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.is_loopback();
  return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6())
      .is_loopback();
}

/// Returns true if a browser says that another site makes the request (Fetch Metadata). A link to
/// the page is no such request: the page itself names no runtime.
bool is_from_another_site(const http::request& from) {
  const auto site = from.headers.get("sec-fetch-site");
  if (from.target == "/") return false;
  return !site.empty() && site != "same-origin" && site != "none";
}

/// "localhost:8080", "127.0.0.1" and "[::1]:8080" are; so is a request without the field, which no
/// browser sends.
bool is_loopback_name(std::string_view host) {
  if (host.empty()) return true;
  const bool is_bracketed = host.front() == '[';
  const auto end = host.find(is_bracketed ? ']' : ':');
  const auto name = host.substr(is_bracketed ? 1 : 0, end - (is_bracketed ? 1 : 0));
  if (core::iequals(name, "localhost")) return true;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(name, error);
  return !error && is_loopback(address);
}

/// Compares in constant time, so that the response time reveals nothing of the token.
bool is_equal(std::string_view shown, std::string_view token) {
  return shown.size() == token.size() &&
         CRYPTO_memcmp(shown.data(), token.data(), token.size()) == 0;
}

std::string_view query_of(std::string_view target) {
  return target.substr(std::min(target.find('?'), target.size() - 1) + 1);
}

void show_page(http::response& into) {
  into.headers.add("content-type", "text/html; charset=utf-8");
  into.headers.add("content-security-policy", content_security_policy());
  into.headers.add("referrer-policy", "no-referrer");
  into.headers.add("cross-origin-opener-policy", "same-origin");
  into.body = page_html;
}

void show_json(const std::function<std::string(std::string_view, std::string&)>& source,
               std::string_view query, http::response& into) {
  std::string error;
  auto body = source(query, error);
  if (!error.empty()) return into.text(400, error);
  into.headers.add("content-type", "application/json");
  into.body = std::move(body);
}

void misdirect(const other_leader& leader, std::string_view path, http::response& into) {
  constexpr unsigned misdirected_request = 421;
  into.last = true;  // another connection may reach the leader
  if (path == "/" || path == "/live") return into.text(misdirected_request, leader.message);
  boost::json::object body{{"leads", false}, {"message", leader.message}};
  if (!leader.pod.empty()) body["leader"] = leader.pod;
  into.status = misdirected_request;
  into.headers.add("content-type", "application/json");
  into.body = boost::json::serialize(body);
}

}  // namespace

boost::asio::awaitable<void> pages::handle(http::request& from, http::response& into) {
  const std::string_view target = from.target;
  const auto path = target.substr(0, target.find('?'));
  if (http::show_process(metrics_, options_.not_ready, from, into, options_.labels)) return {};
  if (!is_private(path)) {
    std::string known;
    for (const std::string_view each : {"/", "/live", "/runtimes", "/history", "/diff"}) {
      if (is_private(each)) known.append(each).append(", ");
    }
    into.text(404, "not found: try " + known + "/metrics, /healthz, /livez or /readyz");
  } else if (may_see(from, into)) {
    into.headers.add("cache-control", "no-store");
    into.headers.add("x-content-type-options", "nosniff");
    const auto leader = options_.elsewhere ? options_.elsewhere() : std::nullopt;
    if (leader) {
      misdirect(*leader, path, into);
    } else if (path == "/diff" && from.method == "GET") {
      return show_diff(std::string(query_of(target)), &into);
    } else {
      show_own(from, into);
    }
  }
  return {};
}

boost::asio::awaitable<void> pages::show_diff(std::string query, http::response* into) const {
  auto page = co_await options_.diff(std::move(query));
  if (page.status != 200) {
    if (page.status == 503) into->headers.add("retry-after", "5");
    into->text(page.status, std::move(page.body));
    co_return;
  }
  into->headers.add("content-type", "application/json");
  into->body = std::move(page.body);
}

void pages::show_own(const http::request& from, http::response& into) const {
  const std::string_view target = from.target;
  const auto path = target.substr(0, target.find('?'));
  if (path == "/") {
    show_page(into);
  } else if (path == "/live") {
    show_live(from, into);
  } else if (path == "/diff") {
    into.headers.add("allow", "GET");
    into.text(405, "only GET");
  } else {
    show_json(path == "/history" ? options_.history : options_.runtimes, query_of(target), into);
  }
}

bool pages::is_private(std::string_view path) const {
  if (path == "/runtimes") return options_.runtimes != nullptr;
  if (path == "/history") return options_.history != nullptr;
  if (path == "/diff") return options_.diff != nullptr;
  return options_.live != nullptr && (path == "/" || path == "/live");
}

bool pages::has_token(const http::request& from) const {
  const auto token = options_.token ? options_.token() : std::string();
  const auto of_term = options_.term_token ? options_.term_token() : std::string();
  const auto is_known = [&](std::string_view shown) {
    return (!token.empty() && is_equal(shown, token)) ||
           (!of_term.empty() && is_equal(shown, of_term));
  };
  if (from.headers.has(token_field)) return is_known(from.headers.get(token_field));
  const auto shown = from.headers.get("authorization");
  const auto scheme = shown.substr(0, shown.find(' '));
  const auto value = shown.substr(std::min(scheme.size() + 1, shown.size()));
  if (core::iequals(scheme, "bearer")) return is_known(value);
  if (token.empty()) return false;
  if (!core::iequals(scheme, "basic")) return false;
  const auto pair = k8s::base64_decode(value);
  if (!pair) return false;
  const auto colon = pair->find(':');
  return colon != std::string::npos && is_equal(std::string_view(*pair).substr(colon + 1), token);
}

bool pages::may_see(const http::request& from, http::response& into) const {
  if (is_from_another_site(from)) {
    into.text(403, "another web site may not request this");
    return false;
  }
  if (has_token(from)) return true;
  if (!is_loopback(from.peer.address.address())) {
    into.headers.add("www-authenticate", R"(Bearer, Basic realm="runtime-watcher")");
    into.text(401,
              "the runtimes are shown to clients on the loopback interface, and to those with "
              "the token of --admin-token-file");
    return false;
  }
  if (is_loopback_name(from.headers.get("host"))) return true;
  into.text(403, "connect to localhost, or to the address of the loopback interface");
  return false;
}

void pages::show_live(const http::request& from, http::response& into) const {
  if (from.method != "HEAD") {
    into.source = options_.live->open();
    if (!into.source) {
      into.headers.add("retry-after", "5");
      return into.text(503, "too many viewers");
    }
  }
  into.headers.add("content-type", "text/event-stream");
}

}  // namespace rw::admin
