#include "rw/reactors/intake/serve.hpp"

#include "rw/core/wake.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/host.hpp"
#include "tests/unit/http/wire.hpp"
#include "tests/unit/tls/pki.hpp"
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>

BOOST_AUTO_TEST_SUITE(serve)

namespace {

namespace asio = boost::asio;
using namespace rw::listener;
using namespace rw::http::test;
using namespace rw::tls::test;

std::string hex_encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += code;
  }
  return out;
}

/// `serve` with nothing that the host brings but its executor, and a sender that it knows.
struct served {
  explicit served(event_handler on_event) {
    listener_options options;
    options.limits.header = std::chrono::milliseconds(100);
    options.address = {asio::ip::address_v4::loopback(), 0};
    options.component = "klm";
    options.drain_requests = std::chrono::milliseconds(200);
    host_parts parts;
    parts.log = &here.log;
    parts.on_listening = [this](const auto& bound) { listening.set_value(bound); };
    auto running = rw::listener::serve(here.executor(), options, std::move(on_event), parts);
    asio::co_spawn(here.context, std::move(running),
                   asio::bind_cancellation_slot(stop.slot(), [this](std::exception_ptr failure) {
                     ended.set_value(std::move(failure));
                   }));
    at = listening.get_future().get();
  }
  ~served() { here.stop(); }

  unsigned send(const std::string& name) {
    const auto fields = "x-forwarded-client-cert: Cert=\"" + hex_encoded(certificate) + "\"\r\n";
    const auto body = R"({"watched":{"Namespace":"n","Name":")" + name +
                      R"("},"watchedGvk":{"version":"v1","kind":"Pod"}})";
    wire client(at);
    return ask(client, post("/v2/klm/event", body, fields)).status;
  }
  void cancel() {
    here.on_thread([this] { stop.emit(asio::cancellation_type::terminal); });
  }
  /// Returns the failure that it ended with, in words.
  std::string end() {
    auto outcome = ended.get_future();
    if (outcome.wait_for(patience) != std::future_status::ready) return "does not end";
    const auto failure = outcome.get();
    if (!failure) return "";
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      return e.what();
    }
  }

  host here;
  asio::cancellation_signal stop;
  std::promise<asio::ip::tcp::endpoint> listening;
  std::promise<std::exception_ptr> ended;
  asio::ip::tcp::endpoint at;
  const std::string certificate = the_pki().client.certificate;
};

/// What was handed over, in the order of the calls.
struct recorder {
  event_handler handler() {
    return [this](received_event event) -> asio::awaitable<void> {
      const std::lock_guard lock(guard);
      names += event.runtime_id + "/" + event.event.watched.name + " ";
      co_return;
    };
  }
  std::mutex guard;
  std::string names;
};

asio::awaitable<void> hang(received_event) {
  rw::core::wake never(co_await asio::this_coro::executor);
  co_await never.wait();
}

asio::awaitable<void> fail(received_event event) {
  throw std::runtime_error("cannot handle " + event.event.watched.name);
  co_return;
}

}  // namespace

BOOST_AUTO_TEST_CASE(serve_hands_over_what_was_accepted_when_cancelled) {
  recorder events;
  served s(events.handler());
  BOOST_TEST(s.send("a") == 200u);
  BOOST_TEST(s.send("b") == 200u);
  s.cancel();
  BOOST_TEST(s.end() == "");
  BOOST_TEST(events.names == "runtime-1/a runtime-1/b ");
}

BOOST_AUTO_TEST_CASE(serve_closes_connection_when_request_stalls) {
  recorder events;
  served s(events.handler());
  wire stalled(s.at);
  stalled.send("POST /v2/klm/event HTTP/1.1\r\n");
  BOOST_TEST(read_answer(stalled).status == 408u);
  s.cancel();
  BOOST_TEST(s.end() == "");
}

BOOST_AUTO_TEST_CASE(serve_throws_and_closes_its_port_when_handler_throws) {
  served s(fail);
  BOOST_TEST(s.send("a") == 200u);
  BOOST_TEST(s.end() == "cannot handle a");
  BOOST_CHECK_THROW(s.send("b"), std::exception);
}

BOOST_AUTO_TEST_CASE(serve_ends_in_time_when_handler_hangs) {
  served s(hang);
  BOOST_TEST(s.send("a") == 200u);
  BOOST_TEST(s.send("b") == 200u);
  s.cancel();
  BOOST_TEST(s.end() == "");
}

BOOST_AUTO_TEST_SUITE_END()
