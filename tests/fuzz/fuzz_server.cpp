// A whole connection of the server, HTTP/1.1 or HTTP/2: whatever a client sends, it comes to rest,
// it ends when the client has ended, and gives all memory back to the ledger.
//
// The first byte says how: bit 0 HTTP/2, bit 1 its preface and settings come first, the upper
// four the size of the pieces.

#include "rw/core/http/server_connection.hpp"

#include <boost/asio/co_spawn.hpp>

#include "tests/fuzz/connection.hpp"
#include "tests/unit/http/echo.hpp"
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

namespace {

namespace asio = boost::asio;
using namespace rw;
using fuzz::check;

/// The client's preface, with an empty SETTINGS frame (RFC 9113, section 3.4).
constexpr std::string_view preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

http::server_limits tight_limits() {
  http::server_limits limits;
  limits.header_bytes = 2048;
  limits.buffered_bytes = 256 * 1024;
  limits.streams = 8;
  return limits;
}

struct server : fuzz::surroundings {
  void run(const char* bytes, std::size_t size, std::size_t step, bool http2, bool with_preface) {
    std::array<int, 2> ends{};
    check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "a socket is to be had");
    fuzz::fuzzed_peer client(ends[1]);
    const auto executor = asio::any_io_executor(context.get_executor());
    asio::ip::tcp::socket socket(executor, asio::ip::tcp::v4(), ends[0]);
    auto own = shared->held.open(executor, {}, shared->now());
    check(own != nullptr, "there is room for one connection");
    own->enter(http::account::phase::idle, shared->now());
    {
      const auto make = http2 ? http::make_http2_connection : http::make_http1_connection;
      std::shared_ptr<http::server_connection> made =
          make({shared, std::move(own), executor, plain->wrap(std::move(socket)), {}});
      asio::co_spawn(executor, keep(std::move(made)), [](std::exception_ptr thrown) {
        check(thrown == nullptr, "a connection throws nothing");
      });
    }
    const auto settle = [this] {
      surroundings::settle();
      handler.release();
      surroundings::settle();
    };
    if (with_preface) client.send(preface, preface.size(), settle);
    client.send({bytes, size}, step, settle);
    client.end(settle);
    check(shared->held.connections() == 0, "it ends once the client has ended");
    check(shared->held.held() == 0, "it gives all memory back");
  }

  static asio::awaitable<void> keep(std::shared_ptr<http::server_connection> one) {
    co_await one->run();
  }

  http::test::echo handler{context.get_executor(), 4096};
  const std::unique_ptr<core::transport> plain = core::make_plain_transport();
  const std::shared_ptr<http::server_shared> shared = std::make_shared<http::server_shared>(
      context.get_executor(), http::server_options{"fuzz", {}, tight_limits()}, handler,
      http::server_environment{*plain, watchdog, log, metrics});
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static server one;
  if (size == 0) return 0;
  const auto how = data[0];
  const std::size_t step = (how >> 4) == 0 ? size : std::size_t{how} >> 4;
  one.run(reinterpret_cast<const char*>(data) + 1, size - 1, step, (how & 1) != 0, (how & 3) == 3);
  return 0;
}
