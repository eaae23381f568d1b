#include "rw/core/http/tunnel.hpp"

#include "rw/core/config.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <array>

namespace rw::http {
namespace {

namespace asio = boost::asio;

std::string request_for(const client_options& options) {
  // The port is always named, even the default one.
  const auto upstream = core::to_string({options.host, options.port});
  auto text = "CONNECT " + upstream + " HTTP/1.1\r\nhost: " + upstream + "\r\n";
  if (!options.proxy->authorization.empty()) {
    text += "proxy-authorization: " + options.proxy->authorization + "\r\n";
  }
  return text + "\r\n";
}

}  // namespace

bool tunnel_reader::take(std::string_view bytes, tunnel_result& into) {
  seen_ += bytes.size();
  kept_ += bytes;
  for (;;) {
    boost::beast::error_code error;
    kept_.erase(0, feed(*parser_, kept_, error));
    if (error) into.cause = "its answer is not HTTP: " + error.message();
    if (seen_ > limit_) into.cause = "its header is too large";
    if (error || seen_ > limit_) return true;
    if (!parser_->is_done()) return false;
    // Informational answers (1xx) come before the real one.
    if (response_.status >= 200) break;
    begin();
  }
  into.open = response_.status / 100 == 2 && kept_.empty();
  if (response_.status / 100 != 2) {
    into.cause = "it answers " + std::to_string(response_.status) + " " +
                 std::string(reason_phrase(response_.status));
  } else if (!kept_.empty()) {
    into.cause = "it sends more than its answer";
  }
  return true;
}

void tunnel_reader::begin() {
  response_.clear();
  parser_.emplace(response_, limit_, 0);
  parser_->skip(true);  // an answer to CONNECT has no body, and that of a refusal is not read
}

asio::awaitable<tunnel_result> open_tunnel(asio::ip::tcp::socket* socket,
                                           const client_options* options, const bool* late) {
  tunnel_result result;
  const auto request = request_for(*options);
  boost::system::error_code error;
  co_await asio::async_write(*socket, asio::buffer(request),
                             asio::redirect_error(asio::use_awaitable, error));
  tunnel_reader response(options->limits.header_bytes);
  std::array<char, 1024> bytes;
  while (!error && !*late) {
    const auto n = co_await socket->async_read_some(
        asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, error));
    if (!error && response.take({bytes.data(), n}, result)) co_return result;
  }
  result.cause = *late ? "it does not answer in time" : error.message();
  co_return result;
}

}  // namespace rw::http
