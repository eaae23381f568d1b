#pragma once

#include "rw/tls/issuer.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace rw::http::test {

/// How a raw client speaks TLS.
struct wire_tls {
  std::string alpn = {};  ///< in wire format: each name behind its length
  int version = TLS1_3_VERSION;
  const tls::key_pair* own = nullptr;
};

/// A client that sends and reads exactly what it is told, and waits a bounded time for each.
class wire {
 public:
  explicit wire(const boost::asio::ip::tcp::endpoint& to, int receive_buffer = 0)
      : fd_(::socket(to.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int one = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    if (::connect(fd_, to.data(), static_cast<socklen_t>(to.size())) != 0) {
      ::close(fd_);
      throw std::runtime_error("cannot connect");
    }
  }

  /// The same over TLS. `connected` tells whether the handshake succeeded.
  wire(const boost::asio::ip::tcp::endpoint& to, const wire_tls& options) : wire(to) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_min_proto_version(context_.get(), options.version);
    SSL_CTX_set_max_proto_version(context_.get(), options.version);
    if (options.own != nullptr) use(*options.own);
    ssl_.reset(SSL_new(context_.get()));
    if (!options.alpn.empty()) {
      SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(options.alpn.data()),
                          static_cast<unsigned>(options.alpn.size()));
    }
    SSL_set_fd(ssl_.get(), fd_);
    connected_ = SSL_connect(ssl_.get()) == 1;
  }

  ~wire() {
    ssl_.reset();
    if (fd_ >= 0) ::close(fd_);
  }
  wire(wire&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        context_(std::move(other.context_)),
        ssl_(std::move(other.ssl_)),
        buffer_(std::move(other.buffer_)),
        connected_(other.connected_) {}
  wire& operator=(wire&&) = delete;

  bool connected() const noexcept { return connected_; }

  /// False if the peer does not take it.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t n = 0;
      if (ssl_) {
        n = SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
      } else {
        n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      }
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  /// Nothing more will be sent.
  void finish() { ::shutdown(fd_, SHUT_WR); }

  /// Gone, without a goodbye: the peer gets a reset.
  void vanish() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(std::exchange(fd_, -1));
  }

  /// Reads until `size` bytes are there; false if the peer ends before.
  bool fill(std::size_t size) {
    while (buffer_.size() < size) {
      if (!more()) return false;
    }
    return true;
  }

  /// Takes `size` bytes; fewer if the peer ends.
  std::string take(std::size_t size) {
    fill(size);
    size = std::min(size, buffer_.size());
    auto bytes = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return bytes;
  }

  /// Takes up to and with `end`; all there is if the peer ends before.
  std::string take_through(std::string_view end) {
    for (std::size_t from = 0;;) {
      const auto at = buffer_.find(end, from);
      if (at != std::string::npos) return take(at + end.size());
      from = buffer_.size() >= end.size() ? buffer_.size() - end.size() + 1 : 0;
      if (!more()) return take(buffer_.size());
    }
  }

  /// True if the peer closed, and nothing unread is left. Not so if it only keeps silent.
  bool at_end() { return buffer_.empty() && !more() && ended_; }

 private:
  struct deleter {
    void operator()(SSL_CTX* p) const noexcept { SSL_CTX_free(p); }
    void operator()(SSL* p) const noexcept { SSL_free(p); }
    void operator()(BIO* p) const noexcept { BIO_free(p); }
    void operator()(X509* p) const noexcept { X509_free(p); }
    void operator()(EVP_PKEY* p) const noexcept { EVP_PKEY_free(p); }
  };

  void use(const tls::key_pair& own) {
    const auto bio = [](const std::string& text) {
      return std::unique_ptr<BIO, deleter>(
          BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    };
    const auto chain = bio(own.certificate);
    const std::unique_ptr<X509, deleter> certificate(
        PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
    const std::unique_ptr<EVP_PKEY, deleter> key(
        PEM_read_bio_PrivateKey(bio(own.key).get(), nullptr, nullptr, nullptr));
    SSL_CTX_use_certificate(context_.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());
    while (auto* intermediate = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)) {
      SSL_CTX_add_extra_chain_cert(context_.get(), intermediate);
    }
    ERR_clear_error();
  }

  bool more() {
    char bytes[16 * 1024];
    ssize_t n = 0;
    if (ssl_) {
      n = SSL_read(ssl_.get(), bytes, sizeof bytes);
      if (n <= 0) {
        const auto why = SSL_get_error(ssl_.get(), static_cast<int>(n));
        ended_ = why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE;
      }
    } else {
      n = ::recv(fd_, bytes, sizeof bytes, 0);
      if (n <= 0) ended_ = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    }
    if (n <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }

  int fd_;
  std::unique_ptr<SSL_CTX, deleter> context_;
  std::unique_ptr<SSL, deleter> ssl_;
  std::string buffer_;
  bool connected_ = true;
  bool ended_ = false;
};

/// An HTTP/1.1 answer as it came.
struct answer {
  unsigned status = 0;  ///< 0: there was none
  std::string head;
  std::string body;

  bool says(std::string_view text) const { return head.find(text) != std::string::npos; }
};

inline answer read_answer(wire& from, bool to_head = false) {
  answer result;
  result.head = from.take_through("\r\n\r\n");
  if (!result.head.starts_with("HTTP/1.1 ")) return result;
  result.status = static_cast<unsigned>(std::atoi(result.head.c_str() + 9));
  const auto length = result.head.find("content-length: ");
  if (to_head || length == std::string::npos) return result;
  result.body = from.take(std::strtoull(result.head.c_str() + length + 16, nullptr, 10));
  return result;
}

inline std::string post(std::string_view target, std::string_view body,
                        std::string_view more_fields = {}) {
  std::string out = "POST ";
  out.append(target).append(" HTTP/1.1\r\nhost: test\r\n").append(more_fields);
  out.append("content-length: ")
      .append(std::to_string(body.size()))
      .append("\r\n\r\n")
      .append(body);
  return out;
}

inline answer ask(wire& with, std::string_view request) {
  with.send(request);
  return read_answer(with);
}

}  // namespace rw::http::test
