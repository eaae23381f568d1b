#pragma once

#include "rw/core/http/message.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/stream.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace rw::http {

/// Answers a server's requests. Called from every connection: on the executor of each.
class handler {
 public:
  virtual ~handler() = default;

  /// The largest body that a request with this head may have, in bytes. Asked before the body is
  /// read; a larger one is answered with 413 and not read.
  virtual std::size_t body_limit(const request& head) const = 0;

  /// Answers `from` into `into`, which is empty. Most answers need no wait: then the call does it
  /// all and returns an empty awaitable, which costs no coroutine. Otherwise it returns the rest of
  /// its work, which the server runs as a task of the connection; both messages live until it ends.
  virtual boost::asio::awaitable<void> handle(request& from, response& into) = 0;

  /// The server itself refused a request with this status (400, 408, 413, 431, 503 or 505), before
  /// it was whole. For counting.
  ///
  /// An exception from the others, or from an answer's source, is counted as `exception`, logged,
  /// and answered with 500.
  virtual void refused(unsigned status) noexcept { static_cast<void>(status); }
};

/// What a server grants its clients. Each limit that is hit is counted by name, and logged with the
/// peer and the path (memory_policy.hpp says who has to go).
struct server_limits {
  std::size_t connections = 1024;        ///< past it the one that was idle longest is closed
  std::size_t handshakes = 512;          ///< of these under way; past it the oldest is closed
  std::size_t header_bytes = 16 * 1024;  ///< of one request; over HTTP/2 fields count 32 more each
  /// Held for unfinished requests and answers that are not taken; past it the requests with the
  /// least progress are answered with 503.
  std::size_t buffered_bytes = 40u << 20;
  /// The system's receive buffer of a connection, of which it takes twice as much (socket(7)): what
  /// clients send while nothing is read is charged to the process's cgroup.
  std::size_t receive_buffer = 32 * 1024;
  std::uint32_t streams = 250;        ///< at once on one HTTP/2 connection
  std::size_t body_rate = 16 * 1024;  ///< bytes a second of a body after the grace; 0: any

  std::chrono::milliseconds handshake = std::chrono::seconds(10);
  std::chrono::milliseconds header = std::chrono::seconds(10);  ///< first byte to end of header
  std::chrono::milliseconds body_grace = std::chrono::seconds(5);
  std::chrono::milliseconds body = std::chrono::seconds(30);   ///< end of header to end of body
  std::chrono::milliseconds idle = std::chrono::seconds(180);  ///< between requests
  std::chrono::milliseconds write = std::chrono::seconds(30);  ///< for the client to take an answer
  std::chrono::milliseconds linger = std::chrono::seconds(5);  ///< for what a refused client sends
};

struct server_options {
  std::string name;                        ///< in logs and as the metrics' label `server`
  boost::asio::ip::tcp::endpoint address;  ///< port 0 picks a free one
  server_limits limits;
};

struct accepted;
class server_shared;

/// What a server needs from its surroundings; all of it must outlive the server.
struct server_environment {
  core::transport& transport;
  core::optional_watchdog watchdog = {};  ///< none: `run` runs one, by the system's clock
  core::logger& log;
  core::metrics& metrics;
};

/// An HTTP server: HTTP/1.1 (RFC 9112) or HTTP/2 (RFC 9113) on each connection, chosen by ALPN and,
/// on a connection without TLS, HTTP/1.1.
///
/// Metrics: `rw_http_connections_total`, `rw_http_open_connections`,
/// `rw_http_requests_total{protocol}` and `rw_http_rejected_total{reason}`, all with the label
/// `server`. Reasons: `connections`, `handshakes`, `handshake`, `header_timeout`, `body_timeout`,
/// `write_timeout`, `malformed`, `header_size`, `body_size`, `memory`, `protocol`, `flood`,
/// `streams`, `vanished`, `exception`.
///
/// One executor drives it; where that runs on several threads it must be a strand, or else every
/// connection be given one of its own by `connection_executor`.
class server {
 public:
  using executor_source = std::function<boost::asio::any_io_executor()>;

  /// Binds and listens. Throws `std::runtime_error` that names the address if that can't be done.
  server(boost::asio::any_io_executor executor, server_options options, handler& responses,
         server_environment environment, executor_source connection_executor = {});
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Where it listens, with the port that was picked.
  boost::asio::ip::tcp::endpoint address() const;

  /// Serves until drained or cancelled; every connection is closed when it returns.
  boost::asio::awaitable<void> run();

  /// Begins an orderly end: no new connections; on each open one the requests that have begun are
  /// answered (HTTP/2: GOAWAY first), then it is closed. Answers from a `body_source` are told, and
  /// end within the write limit. Thread-safe. What takes too long is ended by cancelling `run`.
  void drain();

  /// From now on each answer is the last of its connection (`response::last`): clients whose
  /// requests another server will get soon connect anew meanwhile. New connections are accepted.
  /// Thread-safe.
  void release_connections();

  /// Breaks off every open connection, as a restart would, and goes on serving new ones.
  /// Thread-safe.
  void drop_connections();

  std::size_t open_connections() const;

 private:
  void listen();
  void report(std::exception_ptr failure);
  boost::asio::awaitable<void> accept_until_draining();
  void accept_the_rest();
  void admit(boost::asio::ip::tcp::socket socket, const boost::asio::any_io_executor& executor);
  boost::asio::awaitable<void> serve(accepted parts);
  boost::asio::awaitable<bool> shake_hands(const accepted* parts);

  const boost::asio::any_io_executor executor_;
  const executor_source connection_executor_;
  const std::shared_ptr<server_shared> shared_;
  boost::asio::ip::tcp::acceptor acceptor_;
  core::log_limit accept_log_;
  core::task_group connections_;
};

}  // namespace rw::http
