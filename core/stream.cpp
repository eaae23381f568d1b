#include "rw/core/stream.hpp"

#include <boost/asio/error.hpp>

#include <cerrno>
#include <sys/socket.h>

namespace rw::core {
namespace {

namespace asio = boost::asio;

class plain_stream final : public stream {
 public:
  explicit plain_stream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
    boost::system::error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  asio::ip::tcp::socket& socket() noexcept override { return socket_; }
  io_result handshake() override { return {}; }

  io_result read(std::span<char> into) override {
    const auto n = ::recv(socket_.native_handle(), into.data(), into.size(), 0);
    if (n == 0) return {.error = asio::error::eof};
    return result_of(n, want::read);
  }

  io_result write(std::span<const char> from) override {
    return result_of(::send(socket_.native_handle(), from.data(), from.size(), MSG_NOSIGNAL),
                     want::write);
  }

  io_result shutdown() override {
    io_result result;
    socket_.shutdown(asio::socket_base::shutdown_send, result.error);
    return result;
  }

  std::string_view protocol() const noexcept override { return {}; }
  std::string_view peer_certificate() const noexcept override { return {}; }

 private:
  static io_result result_of(ssize_t n, want on_block) {
    if (n >= 0) return {.bytes = static_cast<std::size_t>(n)};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {.wants = on_block};
    return {.error = {errno, boost::system::system_category()}};
  }

  asio::ip::tcp::socket socket_;
};

class plain_transport final : public transport {
 public:
  std::unique_ptr<stream> wrap(asio::ip::tcp::socket socket) override {
    return std::make_unique<plain_stream>(std::move(socket));
  }
};

}  // namespace

void interrupt(asio::ip::tcp::socket& socket) noexcept {
  boost::system::error_code ignored;
  socket.cancel(ignored);
}

std::unique_ptr<transport> make_plain_transport() {
  return std::make_unique<plain_transport>();
}

}  // namespace rw::core
