#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address_v4.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <utility>

namespace rw::http::test {

/// An upstream that does what it is told, on a thread of its own; one connection after another.
class upstream {
 public:
  using script = std::function<void(boost::asio::ip::tcp::socket&, int connection)>;

  explicit upstream(script what, int connections = 1) {
    thread_ = std::thread([this, what = std::move(what), connections] {
      for (int i = 0; i < connections; ++i) {
        boost::system::error_code error;
        boost::asio::ip::tcp::socket socket(context_);
        acceptor_.accept(socket, error);
        if (error) return;
        what(socket, i);
      }
    });
  }
  ~upstream() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  static std::string read_some(boost::asio::ip::tcp::socket& from) {
    std::string bytes(64 * 1024, '\0');
    boost::system::error_code error;
    bytes.resize(from.read_some(boost::asio::buffer(bytes), error));
    return bytes;
  }
  /// False if the client has gone.
  static bool write(boost::asio::ip::tcp::socket& to, std::string_view bytes) {
    boost::system::error_code error;
    boost::asio::write(to, boost::asio::buffer(bytes.data(), bytes.size()), error);
    return !error;
  }
  /// Reads until a request with this body is there.
  static void read_through(boost::asio::ip::tcp::socket& from, std::string_view body) {
    std::string all;
    while (all.find(body) == std::string::npos) {  // a SETTINGS frame may stand behind it
      const auto bytes = read_some(from);
      if (bytes.empty()) return;
      all += bytes;
    }
  }
  /// Reads until the client closes.
  static void read_rest(boost::asio::ip::tcp::socket& from) {
    while (!read_some(from).empty()) {
    }
  }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_{context_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

inline upstream::script answering(std::string bytes) {
  return [bytes = std::move(bytes)](boost::asio::ip::tcp::socket& socket, int) {
    upstream::read_some(socket);
    upstream::write(socket, bytes);
    boost::system::error_code ignored;  // the client may be gone
    socket.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
    upstream::read_rest(socket);
  };
}

}  // namespace rw::http::test
