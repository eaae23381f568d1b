#pragma once

#include "core/clock.hpp"
#include "core/http/client_error.hpp"
#include "core/http/message.hpp"
#include "core/http/send_permit.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/stream.hpp"
#include "core/watchdog.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rw::http {

struct client_limits {
  std::size_t connections = 4;  ///< at once where the upstream speaks HTTP/1.1; one with HTTP/2
  std::size_t streams = 64;     ///< at once on an HTTP/2 connection
  std::size_t header_bytes = 16 * 1024;  ///< of one answer
  std::size_t body_bytes = 256 * 1024;   ///< of one answer

  std::chrono::milliseconds connect = std::chrono::seconds(5);  ///< resolve, connect and handshake
  std::chrono::milliseconds exchange = std::chrono::seconds(15);  ///< request sent to answer read
  std::chrono::milliseconds idle = std::chrono::seconds(60);  ///< an unused connection is closed

  /// An HTTP/2 connection with exchanges under way that is silent this long is asked for a sign of
  /// life (PING), and given up if none comes within `ping_answer`: its exchanges time out. Zero:
  /// never. A connection on which an exchange timed out in silence is asked at once, and takes no
  /// other exchange until it has answered.
  std::chrono::milliseconds ping = std::chrono::seconds(30);
  std::chrono::milliseconds ping_answer = std::chrono::seconds(15);
};

/// A proxy that is asked to CONNECT to the upstream (RFC 9110, section 9.3.6).
struct connect_proxy {
  std::string host;
  std::uint16_t port = 0;
  std::string authorization = {};  ///< the Proxy-Authorization field's value; may be empty
};

struct client_options {
  std::string name;  ///< in logs, as the metrics' label `client`, and the lane of its look-ups
  std::string host;  ///< name or address; with TLS also what the certificate is checked for
  std::uint16_t port = 443;
  client_limits limits = {};
  std::optional<connect_proxy> proxy = {};         ///< its time counts against the limit `connect`
  std::shared_ptr<const send_permit> permit = {};  ///< of guarded exchanges; none: all may go
};

/// What a client needs from its surroundings; all of it must outlive the client.
struct client_environment {
  core::transport& transport;
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// What one exchange asks for beyond the client's limits. Zero: as the client has it.
struct exchange_options {
  /// Gets a 2xx answer's body instead of `response::body`, unbounded in size; must outlive the
  /// exchange. What other answers say is short, and is gathered as usual.
  body_sink* sink = nullptr;
  std::chrono::milliseconds limit{};  ///< request sent to answer read

  /// The longest time without a byte of the answer's body, from its head on. The head itself is
  /// then awaited for the client's exchange limit, or for this time if that is longer.
  std::chrono::milliseconds silence{};

  std::size_t body_bytes = 0;  ///< of an answer that no sink takes

  /// To be sent only while the client's permit is open. If it shuts before the request's last byte
  /// was handed to the socket, the exchange ends as not_permitted and the upstream never gets that
  /// byte; where others are queued before it the connection is dropped.
  bool guarded = false;
};

class client_connection;

/// Leave for one exchange on a connection; given back when it goes. Must not outlive the client's
/// `close`.
class client_slot {
 public:
  client_slot() = default;
  explicit client_slot(std::shared_ptr<client_connection> connection);
  ~client_slot();
  client_slot(client_slot&&) noexcept = default;
  client_slot& operator=(client_slot&& other) noexcept;

  /// Sends `what` and reads the answer into `into`. Once for each slot; both must live until it
  /// ends. Cancelled, or destroyed in the middle, it leaves the connection to the others: the
  /// stream is reset (HTTP/2), or the connection closed with its slot (HTTP/1.1).
  boost::asio::awaitable<boost::system::error_code> exchange(const request& what, response& into,
                                                             exchange_options options = {});

  /// True if many exchanges share the connection (HTTP/2).
  bool multiplexed() const noexcept;

  explicit operator bool() const noexcept { return connection_ != nullptr; }

 private:
  std::shared_ptr<client_connection> connection_;
};

/// An HTTP client for one upstream. Where TLS's ALPN chooses HTTP/2 (RFC 9113) all exchanges share
/// one connection, otherwise a small pool of kept-alive HTTP/1.1 connections (RFC 9112) is used.
/// Connections are opened when they are needed, one at a time; nothing is sent twice.
///
/// Metrics, with the label `client`: `rw_http_client_connections_total`,
/// `rw_http_client_connect_errors_total`, `rw_http_client_open_connections`.
///
/// Everything happens on one executor (thread or strand).
class client {
 public:
  client(boost::asio::any_io_executor executor, client_options options,
         client_environment environment);
  ~client();
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  /// Waits, in the order of the calls, until a connection can take one more exchange, opening one
  /// where needed. An error says that opening one failed; the wait is bounded by the connect limit
  /// and, when all connections are busy, by the exchange limit of the ones that keep them so.
  ///
  /// With `limit` the wait ends by then, as timed_out; zero leaves it to those limits.
  boost::asio::awaitable<boost::system::error_code> acquire(client_slot& into,
                                                            std::chrono::milliseconds limit = {});

  /// Why the latest connection that failed to open did, in words ("Connection refused",
  /// "certificate refused: certificate has expired"); empty if none did.
  const std::string& connect_failure() const noexcept;

  /// Uses no open connection for further exchanges, so that the next one shakes hands anew (with a
  /// new certificate, say). Exchanges under way end in peace.
  void retire();

  /// Cancels what is under way, closes all connections, and waits for that.
  boost::asio::awaitable<void> close();

 private:
  class implementation;
  std::shared_ptr<implementation> impl_;
};

}  // namespace rw::http
