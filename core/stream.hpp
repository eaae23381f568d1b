#pragma once

#include "rw/core/requirements.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace rw::core {

/// The readiness that a non-blocking operation waits for.
enum class want : std::uint8_t { nothing, read, write };

/// Result of one non-blocking step on a stream. Exactly one of three holds:
/// - `error` is set: the stream is unusable (`boost::asio::error::eof`: the peer closed it in an
///   orderly way);
/// - `wants` is not `nothing`: try again when the socket is readable or writable;
/// - neither: the step succeeded, and moved `bytes` bytes (0 for a handshake or a shutdown).
struct io_result {
  std::size_t bytes = 0;
  want wants = want::nothing;
  boost::system::error_code error{};
  /// After a read: the socket is empty. Another read before it is readable would return `want`.
  bool drained = false;
};

/// A byte stream over one connected, non-blocking TCP socket: plain, or TLS (tls/stream.hpp).
///
/// The calls never wait and never suspend, so that the fast path of a connection costs no coroutine
/// frame: the owner calls, and only on `want::read` or `want::write` does it await the socket. Not
/// thread-safe: one owner at a time.
class stream {
 public:
  virtual ~stream() = default;

  /// The socket beneath, to await readiness on, and to cancel or close.
  virtual boost::asio::ip::tcp::socket& socket() noexcept = 0;

  /// Advances the handshake. The caller calls it until it succeeds, before anything else.
  virtual io_result handshake() = 0;

  /// Reads what is available, at most `into.size()` bytes.
  virtual io_result read(std::span<char> into) = 0;

  /// Writes what fits. After `want` from a TLS stream the caller must offer the same bytes again,
  /// at the same address or another.
  virtual io_result write(std::span<const char> from) = 0;

  /// Signals the end of sending to the peer in the protocol's own way (TLS close_notify, or a
  /// half-close of the socket). Does not wait for the peer's.
  virtual io_result shutdown() = 0;

  /// The protocol chosen by ALPN (RFC 7301), such as "h2"; empty without ALPN.
  virtual std::string_view protocol() const noexcept = 0;

  /// True for TLS: the scheme is https then.
  virtual bool encrypted() const noexcept { return false; }

  /// The peer's verified certificate, DER; empty if the peer sent none. Valid as long as the
  /// stream.
  virtual std::string_view peer_certificate() const noexcept = 0;
};

/// Waits until the socket is readable or writable, as `direction` says. Has no deadline: the
/// owner's watchdog cancels the socket, and the wait ends with `operation_aborted`. To be awaited
/// at once, without a coroutine frame of its own; the result is a tuple with the error.
[[nodiscard]] inline auto ready(boost::asio::ip::tcp::socket& socket, want direction) {
  using boost::asio::socket_base;
  return socket.async_wait(
      direction == want::write ? socket_base::wait_write : socket_base::wait_read,
      boost::asio::as_tuple(boost::asio::deferred));
}

/// Ends the waits on the socket, with `operation_aborted`. Does nothing on a closed socket.
void interrupt(boost::asio::ip::tcp::socket& socket) noexcept;

/// Wraps connected sockets in streams; one transport for each server or upstream. Thread-safe.
class transport {
 public:
  virtual ~transport() = default;

  /// Takes ownership of the socket; sets it non-blocking and, for small messages, TCP_NODELAY.
  virtual std::unique_ptr<stream> wrap(boost::asio::ip::tcp::socket socket) = 0;
};

std::unique_ptr<transport> make_plain_transport();

}  // namespace rw::core
