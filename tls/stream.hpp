#pragma once

#include "core/stream.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <memory>
#include <string>
#include <string_view>

struct ssl_st;
struct ssl_ctx_st;

namespace rw::tls {

/// TLS over a connected socket. OpenSSL works directly on the non-blocking socket, without the
/// memory buffers of asio::ssl::stream between: one recv or send for each record, no copies beside
/// decryption.
///
/// Errors: boost::asio::error::eof after the peer's close_notify, error::stream_truncated where the
/// peer vanished without it, verify_category() where its certificate is refused, openssl_category()
/// for what else goes against the protocol (an older version of TLS, plain HTTP, alerts), system
/// errors of the socket. After any of them but eof the stream is dead. SIGPIPE is never raised,
/// whatever the host does with signals.
class stream : public core::stream {
 public:
  enum class side { server, client };

  /// Takes the socket over. `context` is shared; `kept` is kept alive as long as the stream. A
  /// failure to allocate is told by handshake().
  stream(boost::asio::ip::tcp::socket socket, ssl_ctx_st* context, side which,
         std::shared_ptr<void> kept);
  ~stream() override;

  boost::asio::ip::tcp::socket& socket() noexcept override { return socket_; }
  core::io_result handshake() override;
  /// At most one record.
  core::io_result read(std::span<char> into) override;
  /// At most one record (16 KiB).
  core::io_result write(std::span<const char> from) override;
  /// Sends close_notify; does nothing on a stream that is dead or not yet made.
  core::io_result shutdown() override;
  std::string_view protocol() const noexcept override;
  bool encrypted() const noexcept override { return true; }
  std::string_view peer_certificate() const noexcept override;

  /// True once the handshake has resumed an earlier session.
  bool resumed() const noexcept;

  /// OpenSSL's object, borrowed; null where it could not be made.
  ssl_st* native() const noexcept { return ssl_; }

  /// What OpenSSL's BIO sees of the stream.
  struct wire {
    int fd = -1;
    bool eof = false;
    int error = 0;            ///< errno of a failure that is no mere "not now"
    bool short_read = false;  ///< the latest read got less than it asked for
  };

 private:
  core::io_result outcome(int returned, std::size_t bytes);
  boost::system::error_code protocol_failure();
  boost::system::error_code established();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<void> kept_;
  wire wire_;
  ssl_st* ssl_ = nullptr;
  bool ready_ = false;
  boost::system::error_code dead_;
  bool verified_ = false;     ///< the peer showed a certificate, and it was good
  mutable std::string peer_;  ///< that certificate, once somebody has asked for it
};

}  // namespace rw::tls
