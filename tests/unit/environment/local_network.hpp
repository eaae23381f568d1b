#pragma once

#include "rw/core/network.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace rw::test {

/// The network of an executor's context, of servers that are named by their port: each connection
/// is a pair of Unix sockets, on which HTTP/2 is spoken without TLS. What is sent has arrived at
/// once, so that nothing of an order depends on the kernel.
class local_network final : public core::network {
 public:
  explicit local_network(boost::asio::any_io_executor executor);
  ~local_network() override;
  local_network(const local_network&) = delete;
  local_network& operator=(const local_network&) = delete;

  boost::asio::awaitable<boost::system::error_code> connect(
      boost::asio::ip::tcp::socket* socket, boost::asio::ip::tcp::endpoint to) override;
  /// At a port that is not 0.
  boost::system::error_code listen(boost::asio::ip::tcp::acceptor& acceptor,
                                   const boost::asio::ip::tcp::endpoint& at) override;
  std::unique_ptr<core::transport> make_plain() override;

 private:
  const boost::asio::any_io_executor executor_;
  std::map<std::uint16_t, std::string> servers_;  ///< socket addresses
};

}  // namespace rw::test
