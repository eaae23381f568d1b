#pragma once

#include "core/stream.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

namespace rw::core {

/// Waits until the socket is readable or writable, as `what` says. The deadline is the owner's: a
/// watchdog cancels the socket, and the wait ends with `operation_aborted`.
boost::asio::awaitable<boost::system::error_code> ready(boost::asio::ip::tcp::socket& socket,
                                                        want what);

}  // namespace rw::core
