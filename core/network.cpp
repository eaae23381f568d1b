#include "rw/core/network.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>

namespace rw::core {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

class tcp_network final : public network {
 public:
  asio::awaitable<boost::system::error_code> connect(tcp::socket* socket,
                                                     tcp::endpoint to) override {
    boost::system::error_code error;
    socket->open(to.protocol(), error);
    co_await socket->async_connect(to, asio::redirect_error(asio::use_awaitable, error));
    co_return error;
  }

  boost::system::error_code listen(tcp::acceptor& acceptor, const tcp::endpoint& at) override {
    const bool both = at.address().is_v6() && at.address().is_unspecified();
    auto error = listen(acceptor, at, both);
    const bool no_v6 = error == asio::error::address_family_not_supported ||
                       error == boost::system::errc::address_not_available;
    if (!both || !no_v6) return error;
    boost::system::error_code ignored;
    acceptor.close(ignored);
    return listen(acceptor, {asio::ip::address_v4::any(), at.port()}, false);
  }

 private:
  static boost::system::error_code listen(tcp::acceptor& acceptor, const tcp::endpoint& at,
                                          bool both) {
    boost::system::error_code error;
    acceptor.open(at.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    // The system's default is net.ipv6.bindv6only (ipv6(7)).
    if (!error && both) acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.bind(at, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    return error;
  }
};

class network_service final : public asio::execution_context::service {
 public:
  using key_type = network_service;
  static inline asio::execution_context::id id;

  explicit network_service(asio::execution_context& context) : service(context) {}

  tcp_network usual;
  network* current = &usual;

 private:
  void shutdown() override {}
};

network_service& service_of(const asio::any_io_executor& executor) {
  return asio::use_service<network_service>(asio::query(executor, asio::execution::context));
}

}  // namespace

network& network::of(const asio::any_io_executor& executor) {
  return *service_of(executor).current;
}

void network::replace(const asio::any_io_executor& executor, network* other) {
  auto& service = service_of(executor);
  service.current = other != nullptr ? other : &service.usual;
}

bool is_local(const boost::asio::ip::address& address) noexcept {
  using boost::asio::ip::address_v4;
  const auto local_v4 = [](const address_v4& v4) {
    const auto bytes = v4.to_bytes();
    return bytes[0] == 0 || v4.is_loopback() || (bytes[0] == 169 && bytes[1] == 254);
  };
  if (address.is_v4()) return local_v4(address.to_v4());
  const auto v6 = address.to_v6();
  if (v6.is_loopback() || v6.is_unspecified() || v6.is_link_local()) return true;
  constexpr std::array<unsigned char, 12> translated{0, 0x64, 0xff, 0x9b};
  constexpr std::array<unsigned char, 6> translated_by_network{0, 0x64, 0xff, 0x9b, 0, 1};
  const auto bytes = v6.to_bytes();
  const auto begins = [&](const auto& prefix) {
    return std::equal(prefix.begin(), prefix.end(), bytes.begin());
  };
  // Of a prefix of 48 bits the address stands around the ninth byte (RFC 6052, section 2.2), or at
  // the end where the network has a longer one below it.
  const bool by_network = begins(translated_by_network);
  const bool in_the_middle =
      std::any_of(bytes.begin() + 6, bytes.begin() + 12, [](auto b) { return b != 0; });
  if (by_network && in_the_middle &&
      local_v4(address_v4({bytes[6], bytes[7], bytes[9], bytes[10]})))
    return true;
  if (!v6.is_v4_mapped() && !begins(translated) && !by_network) return false;
  return local_v4(address_v4({bytes[12], bytes[13], bytes[14], bytes[15]}));
}

}  // namespace rw::core
