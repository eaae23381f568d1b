#pragma once

#include "rw/core/stream.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_ctx_st;

namespace rw::tls {

/// TLS over a connected socket. OpenSSL works directly on the non-blocking socket, without the
/// memory buffers of asio::ssl::stream between: one recv or send for each record, no copies besides
/// decryption.
///
/// Errors: boost::asio::error::eof after the peer's close_notify, error::stream_truncated if the
/// peer closed without it, verify_category() if its certificate is rejected, openssl_category() for
/// other violations of the protocol (an older version of TLS, plain HTTP, alerts), system errors of
/// the socket. After any of them but eof the stream is unusable. SIGPIPE is never raised, whatever
/// the host's signal handling.
class stream : public core::stream {
 public:
  enum class side { server, client };

  /// Takes ownership of the socket. `context` is shared; `kept` is kept alive as long as the
  /// stream. handshake() reports a failure to allocate.
  stream(boost::asio::ip::tcp::socket socket, ssl_ctx_st* context, side role,
         std::shared_ptr<void> kept);
  ~stream() override;

  boost::asio::ip::tcp::socket& socket() noexcept override { return socket_; }
  core::io_result handshake() override;
  /// Reads at most one record.
  core::io_result read(std::span<char> into) override;
  /// Writes at most one record (16 KiB).
  core::io_result write(std::span<const char> from) override;
  /// Sends close_notify. Does nothing on an unusable stream, or before the handshake.
  core::io_result shutdown() override;
  std::string_view protocol() const noexcept override;
  bool encrypted() const noexcept override { return true; }
  std::string_view peer_certificate() const noexcept override;

  /// Returns true once the handshake has resumed an earlier session.
  bool resumed() const noexcept;

  /// OpenSSL's object, borrowed; null if it could not be allocated.
  ssl_st* native() const noexcept { return ssl_; }

  /// The part of the stream that OpenSSL's BIO uses.
  struct wire {
    int fd = -1;
    bool eof = false;
    int error = 0;            ///< errno of a failure other than "try again"
    bool short_read = false;  ///< the latest read returned less than requested
  };

 private:
  core::io_result result_of(int returned, std::size_t bytes);
  boost::system::error_code protocol_failure();
  boost::system::error_code established();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<void> kept_;
  wire wire_;
  ssl_st* ssl_ = nullptr;
  bool ready_ = false;
  boost::system::error_code dead_;
  bool verified_ = false;     ///< the peer sent a certificate, and it is valid
  mutable std::string peer_;  ///< that certificate, once a caller has requested it
};

}  // namespace rw::tls
