#pragma once

#include "rw/core/http/handshake_queue.hpp"
#include "rw/core/http/memory_policy.hpp"
#include "rw/core/http/server.hpp"

#include <boost/asio/awaitable.hpp>

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <string_view>

namespace rw::http {

/// Why a server gave up a connection or a request; in the order of `rw_http_rejected_total`'s
/// reasons.
enum class refusal : std::uint8_t {
  connections,
  handshakes,
  handshake,
  header_timeout,
  body_timeout,
  write_timeout,
  malformed,
  header_size,
  body_size,
  memory,
  protocol,
  flood,
  streams,
  vanished,
  exception,
};

/// What all connections of one server share. Thread-safe.
class server_shared {
 public:
  server_shared(boost::asio::any_io_executor executor, server_options o, handler& h,
                server_environment e);

  core::time_point now() const { return environment.watchdog->now(); }

  /// Counts, and logs with the peer and, where there is one, the request.
  void note(refusal reason, const boost::asio::ip::tcp::endpoint& peer,
            const request* from = nullptr, unsigned status = 0, std::string_view error = {});

  /// Has the handler answer. Whatever it throws, at once or later, ends here: with 500, counted and
  /// logged.
  boost::asio::awaitable<void> respond(request& from, response& into);

  /// The handler's limit; 0 if it throws.
  std::size_t body_limit(const request& head);

  /// The handler's or its source's exception, in place of what was to come of it.
  void failed(const std::exception_ptr& thrown, const request& from, response* into);

  const server_options options;
  core::real_clock own_clock;       ///< of `own_watchdog`
  core::own_watchdog own_watchdog;  ///< what `environment` has if the host brought none
  const server_environment environment;
  core::counter& connections;
  core::counter& requests_http1;
  core::counter& requests_http2;
  memory_policy held;
  const std::shared_ptr<handshake_queue> handshakes;
  std::atomic<bool> draining{false};
  std::atomic<bool> releasing{false};  ///< each answer is the last of its connection

 private:
  boost::asio::awaitable<void> finish(boost::asio::awaitable<void> rest, request* from,
                                      response* into);

  struct reason {
    core::counter* counter = nullptr;
    core::log_limit log;
  };

  handler& handler_;
  std::array<reason, static_cast<std::size_t>(refusal::exception) + 1> reasons_;
};

/// How a request comes along: for its least rate, and for the memory policy.
struct body_progress {
  explicit body_progress(core::time_point now = {}) : begun(now), since(now) {}

  /// Notes that `received` bytes of the body are there. Returns until when to wait for more.
  core::time_point due(std::size_t received, core::time_point now, const server_limits& limits);

  core::time_point begun;   ///< of the body
  core::time_point since;   ///< the last time that it had come a good step further
  std::size_t counted = 0;  ///< bytes, then
};

/// What a connection is made of.
struct accepted {
  std::shared_ptr<server_shared> shared;
  std::shared_ptr<account> own;
  boost::asio::any_io_executor executor;
  std::unique_ptr<core::stream> stream;
  boost::asio::ip::tcp::endpoint from;
};

/// One accepted connection. Everything happens on its executor.
class server_connection : public account_owner,
                          public std::enable_shared_from_this<server_connection> {
 public:
  explicit server_connection(accepted parts);
  virtual ~server_connection() { account_->attach(nullptr); }

  virtual boost::asio::awaitable<void> run() = 0;

 protected:
  /// A client that is still sending would lose the answer to a reset connection, so what it sends
  /// is thrown away for a while (RFC 9112, section 9.6), if there is any, or `more` to come.
  boost::asio::awaitable<void> linger(bool more);

  /// Ends the socket without another word. It is not closed: its number could be another's by the
  /// time `run` comes to its end.
  void cut_off();

  std::shared_ptr<server_shared> shared_;
  std::shared_ptr<account> account_;
  boost::asio::any_io_executor executor_;
  std::unique_ptr<core::stream> stream_;
  http::peer peer_;
  bool dropped_ = false;  ///< to be closed without another word
  bool evicted_ = false;  ///< another connection has its place: not to linger
};

std::unique_ptr<server_connection> make_http1_connection(accepted parts);
std::unique_ptr<server_connection> make_http2_connection(accepted parts);

}  // namespace rw::http
