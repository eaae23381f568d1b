#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "use.hpp"
#include <rw/reactors/listener/identity.hpp>
#include <rw/reactors/listener/listener.hpp>
#include <rw/reactors/listener/san_pinning.hpp>
#include <rw/reactors/listener/serve.hpp>
#include <rw/reactors/shared/events.hpp>
#include <rw/reactors/shared/heartbeat.hpp>

/// As reactors/README.md shows it.
boost::asio::awaitable<void> listen(boost::asio::any_io_executor executor,
                                    boost::asio::ip::tcp::endpoint address);

void use_listener() {
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
  options.verify =
      rw::listener::pin_san([](const rw::object_key&, std::string_view) { return std::nullopt; });
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
  EXPECT(rw::parse_heartbeat(rw::render_heartbeat({.boot_id = "b"})).has_value());
}
