#pragma once

#include "rw/core/network.hpp"
#include "rw/core/wake.hpp"

#include "tests/simulation/environment.hpp"
#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <sys/un.h>

namespace rw::simulation {

/// What the network does to the connections of one server.
struct path_state {
  duration delay{};      ///< of each piece of data, at most
  bool refuses = false;  ///< new connections
  bool loses = false;    ///< the first packet of new connections
  bool stalls = false;   ///< nothing gets through, though connections stay open
};

/// Of a Unix socket.
struct address {
  sockaddr_un name{};
  socklen_t size = 0;
};

/// Streams without TLS, over HTTP/2 or HTTP/1.1.
std::unique_ptr<core::transport> make_transport(bool http2);

/// A network of servers that are named by their port: each connection is a link of two pairs of
/// Unix sockets with a pump between, which the simulated clock drives.
class simulated_network final : public core::network {
 public:
  simulated_network(environment& in, bool http2);
  ~simulated_network() override;
  simulated_network(const simulated_network&) = delete;
  simulated_network& operator=(const simulated_network&) = delete;

  boost::asio::awaitable<boost::system::error_code> connect(
      boost::asio::ip::tcp::socket* socket, boost::asio::ip::tcp::endpoint to) override;
  boost::system::error_code listen(boost::asio::ip::tcp::acceptor& acceptor,
                                   const boost::asio::ip::tcp::endpoint& at) override;

  /// Of clients whose server is asked without TLS.
  std::unique_ptr<core::transport> make_plain() override;

  path_state& path(std::uint16_t port) { return paths_[port]; }
  /// Lets stalled connections of the server go on, if its path no longer stalls.
  void resume(std::uint16_t port);
  /// Resets all connections of the server.
  void cut(std::uint16_t port);
  /// Ends one direction of all connections of the server.
  void half_close(std::uint16_t port, bool from_server);

  std::size_t links() const noexcept { return links_.size(); }

 private:
  class link;

  boost::asio::awaitable<void> run(std::shared_ptr<link> one);

  environment& in_;
  const bool http2_;
  std::map<std::uint16_t, path_state> paths_;
  std::map<std::uint16_t, address> servers_;
  std::list<std::shared_ptr<link>> links_;
  core::task_group tasks_;
};

}  // namespace rw::simulation
