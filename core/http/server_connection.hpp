#pragma once

#include "core/http/server.hpp"

#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace rw::http {

/// The server's counters, resolved once.
struct server_counters {
  server_counters(core::metrics& registry, const std::string& server);

  core::counter& connections;
  core::gauge& open;
  core::counter& requests_http1;
  core::counter& requests_http2;
  core::counter& too_many_connections;
  core::counter& handshake;
  core::counter& header_timeout;
  core::counter& body_timeout;
  core::counter& write_timeout;
  core::counter& malformed;
  core::counter& header_size;
  core::counter& body_size;
  core::counter& memory;
  core::counter& protocol;
  core::counter& flood;
  core::counter& too_many_streams;
  core::counter& vanished;
};

/// What all connections of one server share. Thread-safe.
struct server_shared {
  server_shared(server_options o, handler& h, server_environment e)
      : options(std::move(o)), answers(h), environment(e), counters(e.metrics, options.name) {}

  const server_options options;
  handler& answers;
  const server_environment environment;
  server_counters counters;
  std::atomic<std::size_t> open{0};
  std::atomic<std::size_t> buffered{0};  ///< bytes of bodies being received
  std::atomic<bool> draining{false};

  core::time_point now() const { return environment.watchdog.now(); }
};

/// A part of `server_shared::buffered`, given back when it goes.
class body_budget {
 public:
  explicit body_budget(server_shared& shared) : shared_(shared) {}
  ~body_budget() { release(); }
  body_budget(const body_budget&) = delete;
  body_budget& operator=(const body_budget&) = delete;

  /// False if the server holds too much already.
  bool take(std::size_t bytes) noexcept;
  void release() noexcept;

 private:
  server_shared& shared_;
  std::size_t taken_ = 0;
};

/// One accepted connection. Everything happens on its executor.
class server_connection : public std::enable_shared_from_this<server_connection> {
 public:
  server_connection(std::shared_ptr<server_shared> shared, boost::asio::any_io_executor executor,
                    std::unique_ptr<core::stream> stream, boost::asio::ip::tcp::endpoint from)
      : shared_(std::move(shared)),
        executor_(std::move(executor)),
        stream_(std::move(stream)),
        peer_{std::move(from), {}} {}
  virtual ~server_connection() = default;

  virtual boost::asio::awaitable<void> run() = 0;

  /// Begins the orderly end.
  virtual void drain() = 0;

  /// Breaks it off, as if the process had died.
  virtual void drop() = 0;

 protected:
  std::shared_ptr<server_shared> shared_;
  boost::asio::any_io_executor executor_;
  std::unique_ptr<core::stream> stream_;
  http::peer peer_;
};

std::unique_ptr<server_connection> make_http1_connection(std::shared_ptr<server_shared> shared,
                                                         boost::asio::any_io_executor executor,
                                                         std::unique_ptr<core::stream> stream,
                                                         boost::asio::ip::tcp::endpoint from);
std::unique_ptr<server_connection> make_http2_connection(std::shared_ptr<server_shared> shared,
                                                         boost::asio::any_io_executor executor,
                                                         std::unique_ptr<core::stream> stream,
                                                         boost::asio::ip::tcp::endpoint from);

}  // namespace rw::http
