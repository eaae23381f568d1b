#pragma once

#include "rw/core/http/client.hpp"
#include "rw/core/stream.hpp"
#include "rw/core/task_group.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace rw::dev_gateway {

struct backend_limits {
  http::client_limits client;
  std::size_t backends = 64;
};

/// All of it must outlive the backends.
struct backend_environment {
  core::watchdog& watchdog;
  core::logger& log;
  core::metrics& metrics;
};

/// Connections to the gateway's backends, plain HTTP/1.1, kept from request to request. Of more
/// than `backends` it closes the least recently used, unless they are in use.
///
/// On one executor.
class backends {
 public:
  backends(boost::asio::any_io_executor executor, backend_limits limits,
           backend_environment environment);

  /// Sends a request and reads the response; both must live until then. `connected` is false if
  /// nothing was sent.
  struct outcome {
    boost::system::error_code error;
    bool connected = false;
  };
  boost::asio::awaitable<outcome> exchange(boost::asio::ip::tcp::endpoint with,
                                           const http::request* request, http::response* into);

  /// Cancels requests under way and closes all connections. Awaited before destruction.
  boost::asio::awaitable<void> close();

 private:
  struct backend {
    std::unique_ptr<http::client> client;
    std::size_t in_use = 0;
    std::uint64_t last_used = 0;
  };
  using shared = std::shared_ptr<backend>;

  shared find(const boost::asio::ip::tcp::endpoint& at);
  void make_room();
  boost::asio::awaitable<void> close_one(shared backend);

  const boost::asio::any_io_executor executor_;
  const backend_limits limits_;
  const backend_environment environment_;
  const std::unique_ptr<core::transport> plain_;
  std::map<boost::asio::ip::tcp::endpoint, shared> all_;
  std::uint64_t uses_ = 0;
  core::task_group closing_;
};

}  // namespace rw::dev_gateway
