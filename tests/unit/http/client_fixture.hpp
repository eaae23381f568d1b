#pragma once

#include "rw/core/http/client.hpp"
#include "rw/core/stream.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "tests/unit/http/echo.hpp"
#include "tests/unit/http/host.hpp"
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace rw::http::test {

/// What came of an exchange.
struct outcome {
  boost::system::error_code error;
  response answer;
};

inline boost::asio::awaitable<outcome> exchange_once(client* through, request what,
                                                     exchange_options options = {}) {
  outcome result;
  client_slot slot;
  result.error = co_await through->acquire(slot);
  if (result.error) co_return result;
  result.error = co_await slot.exchange(what, result.answer, options);
  co_return result;
}

/// A client on a host.
struct client_fixture {
  explicit client_fixture(std::unique_ptr<core::transport> over = core::make_plain_transport())
      : transport(std::move(over)) {}
  ~client_fixture() {
    if (used) here.call(used->close());
    used.reset();
    here.stop();
  }

  void use(std::uint16_t port, client_limits limits = {}) {
    used = std::make_unique<client>(
        here.executor(), client_options{"test", "127.0.0.1", port, limits},
        client_environment{*transport, here.watchdog, here.log, here.metrics});
  }

  std::future<outcome> begin(request what, exchange_options options = {}) {
    return boost::asio::co_spawn(here.context, exchange_once(used.get(), std::move(what), options),
                                 boost::asio::use_future);
  }
  std::future<outcome> begin(std::string target, std::string body = {},
                             exchange_options options = {}) {
    request what;
    what.target = std::move(target);
    what.body = std::move(body);
    return begin(std::move(what), options);
  }

  static outcome end(std::future<outcome> from) {
    if (from.wait_for(patience) != std::future_status::ready) {
      throw std::runtime_error("no end in sight");
    }
    return from.get();
  }

  outcome ask_client(request what) { return end(begin(std::move(what))); }
  outcome ask_client(std::string target, std::string body = {}) {
    return end(begin(std::move(target), std::move(body)));
  }

  double opened() { return here.metric("rw_http_client_connections_total{client=\"test\"}"); }
  double open() { return here.metric("rw_http_client_open_connections{client=\"test\"}"); }

  host here;
  std::unique_ptr<core::transport> transport;
  std::unique_ptr<client> used;
};

/// The same with our own server as the upstream.
struct served : client_fixture {
  explicit served(bool http2, client_limits limits = {})
      : client_fixture(http2 ? std::make_unique<h2_transport>() : core::make_plain_transport()),
        server(here, *transport, answers) {
    use(server.address.port(), limits);
  }
  ~served() {
    here.call(used->close());
    used.reset();
    here.stop();
  }

  echo answers{here.executor()};
  running_server server;
};

}  // namespace rw::http::test
