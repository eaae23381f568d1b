// A whole connection of the client, HTTP/1.1 or HTTP/2: whatever an upstream sends, all exchanges
// end when it has hung up, with an answer within the limits or an error.
//
// The first byte says how: bit 0 HTTP/2, bit 1 the server's settings come first, the upper four
// the size of the pieces.

#include "rw/core/http/client.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>

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

constexpr std::string_view settings("\0\0\0\4\0\0\0\0\0", 9);
constexpr std::size_t body_limit = 4096;

http::client_limits tight_limits() {
  http::client_limits limits;
  limits.connections = 1;
  limits.header_bytes = 2048;
  limits.body_bytes = body_limit;
  return limits;
}

/// Takes the body of a long answer, and has enough of it after a while.
struct counting_sink final : http::body_sink {
  bool take(std::string_view bytes) override {
    taken += bytes.size();
    return taken < body_limit;
  }
  std::size_t taken = 0;
};

/// An exchange; what it uses lives until it has ended.
struct exchange {
  http::request request;
  http::response response;
  counting_sink sink;
};

asio::awaitable<void> ask(http::client* through, std::shared_ptr<exchange> one, bool streaming) {
  http::client_slot slot;
  const auto kind = streaming ? http::exchange_kind::streaming : http::exchange_kind::unary;
  const auto refused = co_await through->acquire(slot, {}, kind);
  if (refused) co_return;
  http::exchange_options options;
  if (streaming) options.sink = &one->sink;
  const auto error = co_await slot.exchange(one->request, one->response, options);
  check(one->response.body.size() <= body_limit, "the body is limited");
  check(error || one->response.status >= 200, "an answer has a final status");
}

struct upstream : fuzz::surroundings {
  explicit upstream(std::unique_ptr<core::transport> over)
      : transport(std::move(over)),
        acceptor(context, {asio::ip::address_v4::loopback(), 0}),
        client(context.get_executor(),
               {"fuzz", "127.0.0.1", acceptor.local_endpoint().port(), tight_limits()},
               {*transport, watchdog, log, metrics}) {
    acceptor.non_blocking(true);
  }

  /// -1: nobody wants to connect.
  int accept() {
    boost::system::error_code error;
    asio::ip::tcp::socket socket(context);
    acceptor.accept(socket, error);
    if (error) return -1;
    // No TIME_WAIT: a fuzzer would run out of ports.
    socket.set_option(asio::socket_base::linger(true, 0));
    return socket.release();
  }

  void begin(std::string_view method, bool streaming) {
    auto one = std::make_shared<exchange>();
    one->request.method = method;
    one->request.target = "/x";
    if (method == "POST") one->request.body = "abc";
    ++open;
    asio::co_spawn(context, ask(&client, std::move(one), streaming),
                   [this](std::exception_ptr thrown) {
                     check(thrown == nullptr, "an exchange throws nothing");
                     --open;
                   });
  }

  void run(std::string_view bytes, std::size_t step, bool with_settings) {
    const auto settle = [this] { surroundings::settle(); };
    begin("GET", false);
    begin("POST", false);
    begin("GET", true);
    bool answered = false;
    for (std::size_t connections = 0; open > 0; ++connections) {
      check(connections < 16, "exchanges end with their connections");
      settle();
      const int socket = accept();
      check(socket >= 0 || open == 0, "an exchange has ended, or wants a connection");
      if (socket < 0) break;
      fuzz::fuzzed_peer peer(socket);
      if (!std::exchange(answered, true)) {
        if (with_settings) peer.send(settings, settings.size(), settle);
        peer.send(bytes, step, settle);
      }
      peer.end(settle);
    }
    client.retire();
    settle();
    check(open_connections.Value() == 0, "no connection outlasts its upstream");
  }

  const std::unique_ptr<core::transport> transport;
  asio::ip::tcp::acceptor acceptor;
  http::client client;
  core::gauge& open_connections =
      core::make_gauge(metrics, "rw_http_client_open_connections",
                       "Connections to the upstream that are open", {{"client", "fuzz"}});
  std::size_t open = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static upstream http1(core::make_plain_transport());
  static upstream http2(std::make_unique<http::test::h2_transport>());
  if (size == 0) return 0;
  const auto how = data[0];
  const std::size_t step = (how >> 4) == 0 ? size : std::size_t{how} >> 4;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  ((how & 1) != 0 ? http2 : http1).run(bytes, step, (how & 2) != 0);
  return 0;
}
