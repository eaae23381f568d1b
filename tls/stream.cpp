#include "rw/tls/stream.hpp"

#include "rw/tls/openssl.hpp"

#include <boost/asio/error.hpp>
#include <openssl/err.h>

#include <cerrno>
#include <sys/socket.h>

namespace rw::tls {
namespace {

using core::io_result;
using core::want;

// A BIO with MSG_NOSIGNAL. OpenSSL's own socket BIO writes with write(2), which raises SIGPIPE; a
// library must not require its host to ignore that signal.

stream::wire* wire_of(BIO* bio) {
  return static_cast<stream::wire*>(BIO_get_data(bio));
}

bool not_now(int reason) {
  return reason == EAGAIN || reason == EWOULDBLOCK || reason == EINTR;
}

int wire_write(BIO* bio, const char* data, int size) {
  auto* wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  const auto n = ::send(wire->fd, data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (n >= 0) return static_cast<int>(n);
  if (not_now(errno)) {
    BIO_set_retry_write(bio);
  } else {
    wire->error = errno;
  }
  return -1;
}

int wire_read(BIO* bio, char* data, int size) {
  auto* wire = wire_of(bio);
  BIO_clear_retry_flags(bio);
  const auto n = ::recv(wire->fd, data, static_cast<std::size_t>(size), 0);
  wire->short_read = n < size;
  if (n > 0) return static_cast<int>(n);
  if (n == 0) {
    wire->eof = true;
    return 0;
  }
  if (not_now(errno)) {
    BIO_set_retry_read(bio);
  } else {
    wire->error = errno;
  }
  return -1;
}

long wire_control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return wire_of(bio)->eof ? 1 : 0;
  return 0;
}

BIO_METHOD* wire_method() {
  static BIO_METHOD* const method = [] {
    auto* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    if (!made) return made;
    BIO_meth_set_write(made, wire_write);
    BIO_meth_set_read(made, wire_read);
    BIO_meth_set_ctrl(made, wire_control);
    return made;
  }();
  return method;
}

/// OpenSSL's queue of errors must be empty before a call whose outcome SSL_get_error is to explain.
/// It nearly always is; to look costs a fifth of clearing its 16 places.
void forget_errors() {
  if (ERR_peek_error() != 0) ERR_clear_error();
}

bool valid_now(const X509* peer) {
  return X509_cmp_current_time(X509_get0_notBefore(peer)) < 0 &&
         X509_cmp_current_time(X509_get0_notAfter(peer)) > 0;
}

}  // namespace

stream::stream(boost::asio::ip::tcp::socket socket, ssl_ctx_st* context, side role,
               std::shared_ptr<void> kept)
    : socket_(std::move(socket)), kept_(std::move(kept)) {
  boost::system::error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  wire_.fd = socket_.native_handle();

  ERR_clear_error();
  ssl_ptr ssl(SSL_new(context));
  auto* bio = wire_method() ? BIO_new(wire_method()) : nullptr;
  if (!ssl || !bio) {
    BIO_free(bio);
    dead_ = take_openssl_error(error::out_of_memory);
    return;
  }
  BIO_set_data(bio, &wire_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl.get(), bio, bio);
  if (role == side::server) {
    SSL_set_accept_state(ssl.get());
  } else {
    SSL_set_connect_state(ssl.get());
  }
  ssl_ = ssl.release();
}

stream::~stream() {
  SSL_free(ssl_);
}

io_result stream::handshake() {
  if (dead_) return {.error = dead_};
  if (ready_) return {};
  ERR_clear_error();
  auto done = result_of(SSL_do_handshake(ssl_), 0);
  if (done.error == boost::asio::error::eof) done.error = dead_ = error::stream_truncated;
  if (done.error || done.wants != want::nothing) return done;
  dead_ = established();
  ready_ = !dead_;
  return {.error = dead_};
}

io_result stream::read(std::span<char> into) {
  if (dead_) return {.error = dead_};
  if (into.empty()) return {};
  forget_errors();
  std::size_t bytes = 0;
  const int returned = SSL_read_ex(ssl_, into.data(), into.size(), &bytes);
  auto got = result_of(returned, bytes);
  // The rest of this record, and the records after it.
  got.drained = wire_.short_read && SSL_pending(ssl_) == 0 && SSL_has_pending(ssl_) == 0;
  return got;
}

io_result stream::write(std::span<const char> from) {
  if (dead_) return {.error = dead_};
  if (from.empty()) return {};
  forget_errors();
  std::size_t bytes = 0;
  const int returned = SSL_write_ex(ssl_, from.data(), from.size(), &bytes);
  return result_of(returned, bytes);
}

io_result stream::shutdown() {
  if (dead_ || !ready_) return {};
  ERR_clear_error();
  const int returned = SSL_shutdown(ssl_);
  if (returned >= 0) return {};  // 0: sent, and the peer's is not awaited
  auto done = result_of(returned, 0);
  // Data of the peer may precede its close_notify; that is no failure.
  if (done.wants == want::read) done.wants = want::nothing;
  return done;
}

std::string_view stream::protocol() const noexcept {
  if (!ssl_) return {};
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

bool stream::resumed() const noexcept {
  return ready_ && SSL_session_reused(ssl_) == 1;
}

io_result stream::result_of(int returned, std::size_t bytes) {
  if (returned > 0) return {.bytes = bytes, .error = {}};
  switch (SSL_get_error(ssl_, returned)) {
    case SSL_ERROR_WANT_READ:
      return {.wants = want::read, .error = {}};
    case SSL_ERROR_WANT_WRITE:
      return {.wants = want::write, .error = {}};
    case SSL_ERROR_ZERO_RETURN:
      return {.error = boost::asio::error::eof};
    default:
      break;
  }
  dead_ = protocol_failure();
  return {.error = dead_};
}

boost::system::error_code stream::protocol_failure() {
  const auto code = ERR_peek_last_error();
  if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
    const int reason = ERR_GET_REASON(code);
    const auto refused = SSL_get_verify_result(ssl_);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && refused != X509_V_OK) {
      ERR_clear_error();
      return {static_cast<int>(refused), verify_category()};
    }
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
      ERR_clear_error();
      return error::stream_truncated;
    }
  }
  if (wire_.error != 0) {
    ERR_clear_error();
    return {wire_.error, boost::system::system_category()};
  }
  return take_openssl_error(error::stream_truncated);
}

/// A resumed session carries the peer's certificate verified when the session began, so this checks
/// its validity again.
boost::system::error_code stream::established() {
  const auto* peer = SSL_get0_peer_certificate(ssl_);
  if (!peer || SSL_get_verify_mode(ssl_) == SSL_VERIFY_NONE) return {};
  if (SSL_session_reused(ssl_) == 1 && !valid_now(peer)) {
    return {X509_V_ERR_CERT_HAS_EXPIRED, verify_category()};
  }
  verified_ = true;
  return {};
}

std::string_view stream::peer_certificate() const noexcept {
  if (verified_ && peer_.empty()) {
    unsigned char* der = nullptr;
    const int size = i2d_X509(SSL_get0_peer_certificate(ssl_), &der);
    if (size > 0) {
      peer_.assign(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
    }
    OPENSSL_free(der);
    ERR_clear_error();
  }
  return peer_;
}

}  // namespace rw::tls
