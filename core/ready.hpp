#pragma once

#include "core/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

namespace rw::core {

/// Waits until the socket is readable or writable, as `what` says. Has no deadline: the owner's
/// watchdog cancels the socket, and the wait ends with `operation_aborted`.
boost::asio::awaitable<boost::system::error_code> ready(boost::asio::ip::tcp::socket& socket,
                                                        want what);

/// Ends the waits on the socket, with `operation_aborted`. Does nothing on a closed socket.
void interrupt(boost::asio::ip::tcp::socket& socket) noexcept;

}  // namespace rw::core
