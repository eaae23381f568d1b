#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/client_error.hpp"
#include "rw/core/http/message.hpp"
#include "rw/core/http/send_permit.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/stream.hpp"
#include "rw/core/watchdog.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rw::http {

struct client_limits {
  /// Connections at once that can take unary exchanges. What streaming exchanges fill up does not
  /// count, nor do connections that take nothing more and wait for their last answers.
  std::size_t connections = 4;
  std::size_t all_connections = 2048;    ///< those included
  std::size_t streams = 64;              ///< at once on one HTTP/2 connection
  std::size_t header_bytes = 16 * 1024;  ///< of one answer
  std::size_t body_bytes = 256 * 1024;   ///< of one answer

  /// Bytes of answers' fields that an HTTP/2 upstream may refer to in place of saying them again
  /// (SETTINGS_HEADER_TABLE_SIZE; RFC 9113, section 6.5.2). A table that is full takes three times
  /// as many here, for each connection; zero: none, for a client of thousands of quiet upstreams.
  std::uint32_t header_table = 4096;

  std::chrono::milliseconds connect = std::chrono::seconds(5);  ///< resolve, connect and handshake
  std::chrono::milliseconds exchange = std::chrono::seconds(15);  ///< request sent to answer read
  std::chrono::milliseconds idle = std::chrono::seconds(60);  ///< an unused connection is closed

  /// An HTTP/2 connection with exchanges under way on which nothing came for so long gets a PING,
  /// and is closed unless something comes within `ping_answer`: its exchanges time out. Zero:
  /// never. A connection on which an exchange timed out while nothing else came gets one at once,
  /// and takes no other exchange until it has answered.
  std::chrono::milliseconds ping = std::chrono::seconds(30);
  std::chrono::milliseconds ping_response = std::chrono::seconds(15);
};

/// A proxy that is asked to CONNECT to the upstream (RFC 9110, section 9.3.6).
struct connect_proxy {
  std::string host;
  std::uint16_t port = 0;
  std::string authorization = {};  ///< the Proxy-Authorization field's value; may be empty
};

struct client_options {
  std::string name;  ///< in logs, as the metrics' label `client`, and the queue of its name lookups
  std::string host;  ///< name or address; with TLS also what the certificate is checked for
  std::uint16_t port = 443;
  client_limits limits = {};
  std::optional<connect_proxy> proxy = {};  ///< its time counts against the limit `connect`
  /// Connect to no address of this machine or its link (`core::is_local`), of the host or else of
  /// its proxy: for hosts that others name. What the proxy connects to is the proxy's.
  bool refuse_local = false;
};

/// What a client needs from its surroundings; all of it must outlive the client.
struct client_environment {
  core::transport& transport;
  core::optional_watchdog watchdog = {};  ///< none: the client runs one, by the system's clock
  core::logger& log;
  core::metrics& metrics;
};

/// Whether an exchange ends by itself soon, or lasts as long as it likes, as a watch does.
enum class exchange_kind : std::uint8_t { unary, streaming };

/// What one exchange asks for beyond the client's limits. Zero: as the client has it.
struct exchange_options {
  /// Gets a 2xx answer's body instead of `response::body`, unbounded in size; must outlive the
  /// exchange. What other answers say is short, and is gathered as usual. The answer's head must
  /// then come within the client's exchange limit.
  body_sink* sink = nullptr;
  std::chrono::milliseconds limit{};    ///< request sent to answer read
  std::chrono::milliseconds silence{};  ///< longest time without a byte of the body; 0: no limit
  std::size_t body_bytes = 0;           ///< of an answer that no sink takes

  /// The request is sent only while it is open; null: always. If it shuts before the request's last
  /// byte was handed to the socket, the exchange ends as not_permitted and the upstream never gets
  /// that byte; where others are queued before it the connection is dropped.
  std::shared_ptr<const send_permit> permit = {};
};

class client_connection;

/// An exchange that goes on without a coroutine: one whose answer's body is still coming to its
/// sink, or that `client_slot::begin` began. If it goes before that has ended, the exchange is
/// given up. It may outlive the client's `close`, which ends it. On the client's executor.
class opened_exchange {
 public:
  opened_exchange() = default;
  virtual ~opened_exchange() = default;
  opened_exchange(const opened_exchange&) = delete;
  opened_exchange& operator=(const opened_exchange&) = delete;
};

/// Leave for one exchange on a connection; given back when it goes. Must not outlive the client's
/// `close`.
class client_slot {
 public:
  client_slot() = default;
  client_slot(std::shared_ptr<client_connection> connection, exchange_kind kind);
  ~client_slot();
  client_slot(client_slot&&) noexcept = default;
  client_slot& operator=(client_slot&& other) noexcept;

  /// Sends `request` and reads the answer into `into`. Once for each slot; both must live until it
  /// ends. `host`, `content-length`, `transfer-encoding`, `connection`, `keep-alive`,
  /// `proxy-connection` and `upgrade` are the client's own: a request that has one is not sent
  /// (`field_of_connection`). Cancelled, or destroyed in the middle, it leaves the connection to
  /// the others: the stream is reset (HTTP/2), or the connection closed with its slot (HTTP/1.1).
  boost::asio::awaitable<boost::system::error_code> exchange(const request& request, response& into,
                                                             exchange_options options = {});

  /// The same for a request without a body that is answered for long, such as a watch: ends when
  /// the head of its answer has come. If that is a 2xx, `rest` is set, takes the slot along, and
  /// `options.sink` gets the body until its `end`; unset, the answer has ended. No coroutine waits
  /// meanwhile. Only where `multiplexed`.
  boost::asio::awaitable<boost::system::error_code> open(const request& request, response& into,
                                                         exchange_options options,
                                                         std::unique_ptr<opened_exchange>& rest);

  /// Called once with the error of an exchange, or none, on the client's executor. It may destroy
  /// that exchange's object and begin others, but not give up others. Must not throw.
  using end_handler = std::function<void(boost::system::error_code)>;

  /// As `exchange`, without a coroutine: what is returned takes the slot along, and `on_end` is
  /// called when the answer is read, or why it was not. Both messages must live until then. Null,
  /// and the slot stays, if the connection takes no more, or the request has a field of the
  /// connection; nothing was sent then. Only where `multiplexed`.
  std::unique_ptr<opened_exchange> begin(const request& request, response& into,
                                         exchange_options options, end_handler on_end);

  /// True if many exchanges share the connection (HTTP/2).
  bool multiplexed() const noexcept;

  explicit operator bool() const noexcept { return connection_ != nullptr; }

 private:
  std::shared_ptr<client_connection> connection_;
  exchange_kind kind_ = exchange_kind::unary;
};

/// A client for one upstream: one pool of connections. Where TLS's ALPN chooses HTTP/2 (RFC 9113)
/// many exchanges share a connection, otherwise (RFC 9112) each has one for itself and leaves it
/// open for the next. A connection is opened whenever none can take an exchange, one at a time and
/// within `client_limits`. Nothing is sent twice. Peers that vanish are noticed by TCP's own means
/// (keep-alive, user timeout) after a minute, beside HTTP/2's PING.
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
  /// Cancelled it ends as Asio's operation_aborted.
  ///
  /// With `limit` the wait ends by then, as timed_out; zero leaves it to those limits.
  boost::asio::awaitable<boost::system::error_code> acquire(
      client_slot& into, std::chrono::milliseconds limit = {},
      exchange_kind kind = exchange_kind::unary);

  /// The same where nobody waits and a connection can take it now; false otherwise.
  bool try_acquire(client_slot& into, exchange_kind kind = exchange_kind::unary);

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
