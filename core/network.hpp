#pragma once

#include "rw/core/stream.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include <memory>

namespace rw::core {

/// Opens the connections of the HTTP clients and servers of one execution context: by TCP, unless
/// a test puts another network in its place.
///
/// Sockets are read, written, awaited, shut down and closed afterwards, so that any kind of stream
/// socket will do. Called on the executors of clients and servers.
class network {
 public:
  virtual ~network() = default;

  /// Connects `socket`, which lives until the result is there. Cancelling the socket's operations
  /// ends the wait.
  virtual boost::asio::awaitable<boost::system::error_code> connect(
      boost::asio::ip::tcp::socket* socket, boost::asio::ip::tcp::endpoint to) = 0;

  /// Opens `acceptor`, which is closed, and has it listen. At `[::]` it accepts connections of both
  /// families, or of IPv4 alone where the system has no IPv6.
  virtual boost::system::error_code listen(boost::asio::ip::tcp::acceptor& acceptor,
                                           const boost::asio::ip::tcp::endpoint& at) = 0;

  /// Makes streams without TLS of its sockets, for a client whose server has none. A test's may say
  /// that HTTP/2 was chosen.
  virtual std::unique_ptr<transport> make_plain() { return make_plain_transport(); }

  /// Returns the network of the executor's context.
  static network& of(const boost::asio::any_io_executor& executor);

  /// Replaces the network of the executor's context from now on; null: TCP again. Not thread-safe.
  static void replace(const boost::asio::any_io_executor& executor, network* other);
};

/// True for an address of this machine or of its link: loopback, link-local (such as the metadata
/// service of cloud providers, 169.254.169.254) and unspecified ones, also mapped to IPv6 (RFC
/// 4291, section 2.5.5.2) or translated to it (RFC 6052, RFC 8215). Addresses of private networks
/// (RFC 1918, RFC 4193) are not among them.
bool is_local(const boost::asio::ip::address& address) noexcept;

}  // namespace rw::core
