#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "use.hpp"
#include <rw/reactors/intake/identity.hpp>
#include <rw/reactors/intake/listener.hpp>
#include <rw/reactors/intake/san_pinning.hpp>
#include <rw/reactors/intake/serve.hpp>
#include <rw/reactors/shared/events.hpp>
#include <rw/reactors/shared/heartbeat.hpp>
#include <rw/reactors/shared/resync.hpp>
#include <rw/tls/issuer.hpp>
#include <stdexcept>
#include <string>

/// As reactors/README.md shows it.
boost::asio::awaitable<void> listen(boost::asio::any_io_executor executor,
                                    boost::asio::ip::tcp::endpoint address);

namespace {

namespace asio = boost::asio;

/// A certificate as a gateway forwards it.
std::string forwarded(const std::string& pem) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out = "x-forwarded-client-cert: Cert=\"";
  for (const char each : pem) {
    const auto code = static_cast<unsigned char>(each);
    (out += '%') += digits[code >> 4];
    out += digits[code & 15];
  }
  return out + "\"\r\n";
}

/// What a peer says after these bytes, until it closes.
asio::awaitable<std::string> say(asio::ip::tcp::endpoint to, std::string bytes) {
  asio::ip::tcp::socket socket(co_await asio::this_coro::executor);
  co_await socket.async_connect(to, asio::use_awaitable);
  co_await asio::async_write(socket, asio::buffer(bytes), asio::use_awaitable);
  std::string said;
  boost::system::error_code ended;
  auto all = asio::dynamic_buffer(said);
  co_await asio::async_read(socket, all, asio::redirect_error(asio::use_awaitable, ended));
  co_return said;
}

/// A client that stalls is let go while others are served, and what a consumer throws is what
/// `serve` throws, after it has ended. The host brings nothing.
void serves_hostile_peers() {
  asio::io_context context;
  const auto runtime = rw::tls::issuer::create({.common_name = "runtime-1"});
  EXPECT(runtime.has_value());
  const std::string event =
      R"({"watched":{"Namespace":"a","Name":"b"},"watchedGvk":{"group":"","version":"v1","kind":"ConfigMap"}})";
  const std::string post = "POST /v2/hostile/event HTTP/1.1\r\nhost: h\r\nconnection: close\r\n" +
                           forwarded(runtime->certificate_pem()) +
                           "content-length: " + std::to_string(event.size()) + "\r\n\r\n" + event;
  std::string stalled;
  std::string sent;
  const auto peers = [](asio::ip::tcp::endpoint to, std::string request, std::string* first,
                        std::string* second) -> asio::awaitable<void> {
    *first = co_await say(to, request.substr(0, 20));
    *second = co_await say(to, request);
  };
  rw::listener::listener_options options;
  options.address = {asio::ip::address_v4::loopback(), 0};
  options.component = "hostile";
  options.limits.header = std::chrono::milliseconds(300);
  std::string thrown;
  asio::co_spawn(context,
                 rw::listener::serve(context.get_executor(), options,
                                     [](rw::listener::received_event) -> asio::awaitable<void> {
                                       throw std::runtime_error("the consumer's own");
                                       co_return;
                                     },
                                     {.on_listening =
                                          [&](asio::ip::tcp::endpoint at) {
                                            asio::co_spawn(context,
                                                           peers(at, post, &stalled, &sent),
                                                           asio::detached);
                                          }}),
                 [&thrown](std::exception_ptr failure) {
                   try {
                     if (failure) std::rethrow_exception(failure);
                   } catch (const std::exception& e) {
                     thrown = e.what();
                   }
                 });
  context.run();
  EXPECT(stalled.starts_with("HTTP/1.1 408"));
  EXPECT(sent.starts_with("HTTP/1.1 200"));
  EXPECT(thrown == "the consumer's own");
}

}  // namespace

void use_listener() {
  serves_hostile_peers();
  boost::asio::io_context context;
  boost::asio::cancellation_signal end;
  bool ended = false;
  boost::asio::co_spawn(
      context, listen(context.get_executor(), {boost::asio::ip::address_v4::loopback(), 0}),
      boost::asio::bind_cancellation_slot(
          end.slot(), [&ended](std::exception_ptr failure) { ended = failure == nullptr; }));
  context.poll();
  end.emit(boost::asio::cancellation_type::terminal);
  context.run();
  context.restart();
  EXPECT(ended);
  rw::core::real_clock clock;
  rw::core::watchdog watchdog(clock, context.get_executor());
  rw::core::logger log(rw::core::log_level::error);
  rw::core::metrics metrics;
  rw::listener::listener_options options;
  options.address = {boost::asio::ip::address_v4::loopback(), 0};
  options.component = "host";
  options.verify = rw::listener::pin_san([](std::string_view) { return std::nullopt; });
  options.resyncs = true;
  options.heartbeats = std::make_shared<rw::core::channel<rw::received_heartbeat>>(1);
  bool served = false;
  boost::asio::co_spawn(
      context,
      rw::listener::serve(
          context.get_executor(), {.address = options.address, .component = ".."},
          [](rw::listener::received_event) -> boost::asio::awaitable<void> { co_return; }),
      [&served](std::exception_ptr failure) { served = failure == nullptr; });
  context.run();
  EXPECT(!served);  // the component is no element of a path

  auto [listener, events] = rw::listener::register_component(context.get_executor(), options,
                                                             {clock, watchdog, log, metrics});
  EXPECT(listener->address().port() != 0 && events->capacity() > 0);
  EXPECT(rw::listener::network_list::parse("10.0.0.0/8")
             .contains(boost::asio::ip::make_address("10.1.2.3")));
  EXPECT(rw::is_path_segment("lifecycle-manager") && !rw::is_path_segment(".."));
  EXPECT(rw::parse_resync_reason("watch-back") == rw::resync_reason::watch_back &&
         !rw::is_loss(rw::resync_reason::watch_back));
  EXPECT(rw::parse_heartbeat(rw::render_heartbeat({.boot_id = "b"})).has_value());
}
