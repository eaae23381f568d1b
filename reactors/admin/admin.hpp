#pragma once

#include "rw/core/http/server.hpp"
#include "rw/core/metrics.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rw::admin {

class live_feed;

/// Field of a request with the token, in place of `Authorization`: the API server's proxy of pods
/// takes that one for itself.
inline constexpr std::string_view token_field = "x-runtime-watcher-token";

/// Who leads in place of this process.
struct other_leader {
  std::string pod = {};      ///< empty: no replica is known to
  std::string message = {};  ///< a sentence with the command that opens its page
};

/// What a process shows beyond its metrics. Each member may be empty, and is thread-safe if the
/// pages have to be.
/// A response that takes requests to other servers.
struct json_page {
  unsigned status = 200;
  std::string body = {};  ///< JSON; text if the status is not 200
};

struct page_options {
  /// Returns why the process is not ready; empty if it is.
  std::function<std::string()> not_ready = {};
  /// Returns JSON for the query of a URL ("state=failed&limit=10"). Sets `error`, for status 400,
  /// if the query is invalid.
  std::function<std::string(std::string_view query, std::string& error)> runtimes = {};
  /// Likewise, of the last 24 hours.
  std::function<std::string(std::string_view query, std::string& error)> history = {};
  /// Returns what the next passes over a runtime would write, for the query of a URL.
  std::function<boost::asio::awaitable<json_page>(std::string query)> diff = {};
  /// Returns the current token; empty: there is none.
  std::function<std::string()> token = {};
  /// Returns the token of this process's term as leader, with which `status`, `diff` and
  /// `doctor` ask for its runtimes; empty: it does not lead.
  std::function<std::string()> term_token = {};
  /// Returns who leads; nothing: this process does.
  std::function<std::optional<other_leader>()> elsewhere = {};
  core::labels labels = {};   ///< of all metrics
  live_feed* live = nullptr;  ///< must outlive the pages
};

/// The administrative pages of a process, read-only. GET and HEAD.
///
///     /metrics            in Prometheus' text format, or OpenMetrics where it is asked for
///     /healthz, /livez    200 while the process responds
///     /readyz             200, or 503 with the reasons, one a line
///     /                   a page for browsers (page.html), which shows what /live sends
///     /live               server-sent events (live_feed.hpp); 503 to too many viewers
///     /runtimes           the runtimes, as JSON
///     /history            the last 24 hours, as JSON
///     /diff               what the next passes over a runtime would write, as JSON; GET only
///
/// The last five name the runtimes of a landscape, so they are served only to clients on the
/// loopback interface, and to clients with the token: `Authorization: Bearer` (RFC 6750), or
/// `Basic` with the token as password and any user name (RFC 7617), for which browsers ask, or
/// `token_field`. 401 otherwise. A client on the loopback interface must have connected to a
/// loopback name: a web site whose name resolves to 127.0.0.1 cannot read them, and one that embeds
/// them is no viewer (403).
///
/// They are the leader's: a replica that does not lead responds 421 (Misdirected Request, RFC 9110,
/// section 15.5.20) with the leader's pod and the command that opens its page, as text, or for
/// `/runtimes`, `/history` and `/diff` as JSON (`leads`, `leader`, `message`), and ends the
/// connection, as the next one may reach the leader.
///
/// The page runs only its own script, and connects only to where it came from, by its
/// Content-Security-Policy.
class pages final : public http::handler {
 public:
  pages(const core::metrics& metrics, page_options with)
      : metrics_(metrics), options_(std::move(with)) {}

  std::size_t body_limit(const http::request&) const override { return 0; }
  boost::asio::awaitable<void> handle(http::request& from, http::response& into) override;

 private:
  bool is_private(std::string_view path) const;
  bool has_token(const http::request& from) const;
  void show_own(const http::request& from, http::response& into) const;
  boost::asio::awaitable<void> show_diff(std::string query, http::response* into) const;
  bool may_see(const http::request& from, http::response& into) const;
  void show_live(const http::request& from, http::response& into) const;

  const core::metrics& metrics_;
  const page_options options_;
};

}  // namespace rw::admin
