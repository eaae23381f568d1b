#include "rw/core/http/tunnel.hpp"

#include "rw/core/config.hpp"
#include "rw/core/text.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>
#include <utility>

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

constexpr std::string_view protocol = "HTTP/1.";
constexpr std::size_t longest_head = 64 * 1024;  // some proxies explain themselves

/// Returns the position behind the first empty line, whose end may be a bare LF, as other clients
/// take it. None ends before `looked_at`.
std::size_t end_of_head(std::string_view text, std::size_t looked_at) {
  for (auto at = text.find('\n', std::max<std::size_t>(looked_at, 2) - 2);
       at != std::string_view::npos; at = text.find('\n', at + 1)) {
    const auto next = text.substr(at + 1, 2);
    if (next.starts_with('\n')) return at + 2;
    if (next == "\r\n") return at + 3;
  }
  return std::string_view::npos;
}

}  // namespace

bool tunnel_reader::take(std::string_view bytes, tunnel_result& into) {
  const auto over = [&into](std::string cause) {
    into.cause = std::move(cause);
    return true;
  };
  seen_ += bytes.size();
  kept_ += bytes;
  for (;;) {
    const auto begin = std::string_view(kept_).substr(0, protocol.size());
    if (!protocol.starts_with(begin)) return over("its answer is not HTTP");
    if (seen_ > limit_) return over("its header is too large");
    const auto end = end_of_head(kept_, std::exchange(looked_at_, kept_.size()));
    if (end == std::string::npos) return false;
    looked_at_ = 0;
    const auto line = core::trimmed(std::string_view(kept_).substr(0, kept_.find('\n')));
    const auto rest = line.substr(std::min(line.find(' ') + 1, line.size()));
    const auto status = core::parse_number<unsigned>(rest.substr(0, rest.find(' ')));
    if (!status || !is_status(*status)) return over("its answer is not HTTP");
    kept_.erase(0, end);
    if (*status / 100 == 1) continue;  // informational answers come before the real one
    if (*status / 100 != 2) {
      return over("it answers " + std::to_string(*status) + " " +
                  std::string(reason_phrase(*status)));
    }
    into.open = kept_.empty();
    return into.open || over("it sends more than its answer");
  }
}

asio::awaitable<tunnel_result> open_tunnel(asio::ip::tcp::socket* socket,
                                           const client_options* options, const bool* late) {
  tunnel_result result;
  const auto request = request_for(*options);
  boost::system::error_code error;
  co_await asio::async_write(*socket, asio::buffer(request),
                             asio::redirect_error(asio::use_awaitable, error));
  tunnel_reader response(longest_head);
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
