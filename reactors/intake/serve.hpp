#pragma once

#include "rw/reactors/intake/listener.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <functional>

namespace rw::listener {

/// Takes one event; the next one follows when it has returned.
using event_handler = std::function<boost::asio::awaitable<void>(received_event event)>;

/// What the host brings; null: `serve` makes one of its own (the system's clock, a log to standard
/// error).
struct host_parts {
  core::clock* clock = nullptr;
  core::logger* log = nullptr;
  core::metrics* metrics = nullptr;
  /// Gets the address, once it is bound; may be empty.
  std::function<void(boost::asio::ip::tcp::endpoint)> on_listening = {};
};

/// Runs a listener with all that it needs, on `executor`, where it is also awaited. Throws what the
/// listener's constructor throws, and what `on_event` throws, after the listener has ended.
///
/// Cancellation is the graceful end: new requests are rejected, those under way end, and `on_event`
/// gets every event that was accepted, all within twice `listener_options::drain_requests`; then it
/// cancels `on_event`. It returns, and its caller's coroutine is not cancelled any more. What was
/// not handed over is counted (`rw_listener_abandoned_events_total`).
boost::asio::awaitable<void> serve(boost::asio::any_io_executor executor, listener_options options,
                                   event_handler on_event, host_parts parts = {});

}  // namespace rw::listener
