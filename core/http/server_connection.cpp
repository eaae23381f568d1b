#include "rw/core/http/server_connection.hpp"

#include "rw/core/http/buffers.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <sstream>
#include <sys/socket.h>

namespace rw::http {

namespace asio = boost::asio;

namespace {

constexpr std::array reason_names{"connections",  "handshakes",    "handshake", "header_timeout",
                                  "body_timeout", "write_timeout", "malformed", "header_size",
                                  "body_size",    "memory",        "protocol",  "flood",
                                  "streams",      "vanished",      "exception"};

constexpr int most_lingers = 6;               // in a row; nginx waits for 5 s, and at most for 30
constexpr std::size_t logged_path = 256;      // characters
constexpr std::size_t good_step = 64 * 1024;  // bytes; less is no progress

core::counter& answered(core::metrics& registry, const std::string& server, const char* protocol) {
  return core::make_counter(registry, "rw_http_requests_total", "Requests that were answered",
                            {{"server", server}, {"protocol", protocol}});
}

}  // namespace

server_shared::server_shared(asio::any_io_executor executor, server_options o, handler& h,
                             server_environment e)
    : options(std::move(o)),
      own_watchdog(e.watchdog, own_clock, executor),
      environment(e),
      connections(core::make_counter(e.metrics, "rw_http_connections_total",
                                     "Connections that were accepted", {{"server", options.name}})),
      requests_http1(answered(e.metrics, options.name, "http/1.1")),
      requests_http2(answered(e.metrics, options.name, "h2")),
      held({options.limits.connections, options.limits.handshakes, options.limits.buffered_bytes},
           core::make_gauge(e.metrics, "rw_http_open_connections", "Connections that are open",
                            {{"server", options.name}})),
      handshakes(
          std::make_shared<handshake_queue>(std::move(executor), e.watchdog->time(),
                                            [&counter = requests_http1, &two = requests_http2] {
                                              return counter.Value() + two.Value();
                                            })),
      handler_(h) {
  for (std::size_t i = 0; i < reasons_.size(); ++i) {
    reasons_[i].counter =
        &core::make_counter(e.metrics, "rw_http_rejected_total",
                            "Connections and requests that were refused or given up, by reason",
                            {{"server", options.name}, {"reason", reason_names[i]}});
  }
}

void server_shared::note(refusal reason, const asio::ip::tcp::endpoint& peer, const request* from,
                         unsigned status, std::string_view error) {
  const auto i = static_cast<std::size_t>(reason);
  reasons_[i].counter->Increment();
  if (status != 0 && reason != refusal::exception) handler_.refused(status);
  if (reason == refusal::vanished) return;  // the client's own doing
  std::ostringstream address;
  address << peer;
  environment.log.limited(
      reasons_[i].log,
      reason == refusal::exception ? core::log_level::error : core::log_level::warning,
      from != nullptr ? "request refused" : "connection refused",
      {{"server", options.name},
       {"reason", reason_names[i]},
       {"peer", address.str()},
       {"method", from != nullptr ? std::string_view(from->method) : std::string_view()},
       {"path", from != nullptr ? std::string_view(from->target).substr(0, logged_path)
                                : std::string_view()},
       {"status", status},
       {"error", error}});
}

std::size_t server_shared::body_limit(const request& head) {
  try {
    return handler_.body_limit(head);
  } catch (...) {
    failed(std::current_exception(), head, nullptr);
    return 0;
  }
}

asio::awaitable<void> server_shared::respond(request& from, response& into) {
  try {
    auto rest = handler_.handle(from, into);
    if (rest.valid()) return finish(std::move(rest), &from, &into);
  } catch (...) {
    failed(std::current_exception(), from, &into);
  }
  return {};
}

asio::awaitable<void> server_shared::finish(asio::awaitable<void> rest, request* from,
                                            response* into) {
  std::exception_ptr thrown;
  try {
    co_await std::move(rest);
  } catch (...) {
    thrown = std::current_exception();
  }
  if (!thrown) co_return;
  const auto state = co_await asio::this_coro::cancellation_state;
  if (state.cancelled() != asio::cancellation_type::none) std::rethrow_exception(thrown);
  failed(thrown, *from, into);
}

void server_shared::failed(const std::exception_ptr& thrown, const request& from, response* into) {
  if (into != nullptr) {
    into->clear();
    into->text(500, "the handler failed");
  }
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& e) {
    note(refusal::exception, from.peer.address, &from, 500, e.what());
  } catch (...) {
    note(refusal::exception, from.peer.address, &from, 500, "not a std::exception");
  }
}

core::time_point body_progress::due(std::size_t received, core::time_point now,
                                    const server_limits& limits) {
  if (received >= counted + good_step) {
    counted = received;
    since = now;
  }
  if (limits.body_rate == 0) return begun + limits.body;
  const auto earned = std::chrono::milliseconds(1000 * received / limits.body_rate);
  return begun + std::min(limits.body, limits.body_grace + earned);
}

server_connection::server_connection(accepted parts)
    : shared_(std::move(parts.shared)),
      account_(std::move(parts.own)),
      executor_(std::move(parts.executor)),
      stream_(std::move(parts.stream)),
      peer_{std::move(parts.from), stream_->peer_certificate()} {
  account_->attach(this);
}

void server_connection::cut_off() {
  dropped_ = true;
  boost::system::error_code ignored;
  stream_->socket().shutdown(asio::socket_base::shutdown_both, ignored);
}

asio::awaitable<void> server_connection::linger(bool more) {
  auto& socket = stream_->socket();
  boost::system::error_code error;
  stream_->shutdown();
  if (evicted_ || (!more && socket.available(error) == 0)) co_return;
  socket.shutdown(asio::socket_base::shutdown_send, error);
  account_->hold(0, shared_->now());
  account_->enter(account::phase::idle, shared_->now());
  bool late = false;
  auto limit = shared_->environment.watchdog->watch(executor_, [&] {
    late = true;
    core::interrupt(socket);
  });
  const auto end = shared_->now() + most_lingers * shared_->options.limits.linger;
  for (unsigned reads = 1; !late && !dropped_; ++reads) {
    ssize_t n = 0;
    {
      // Beneath TLS: nobody wants to know what it says.
      read_buffer buffer;
      n = ::recv(socket.native_handle(), buffer.bytes().data(), buffer.bytes().size(),
                 MSG_DONTWAIT);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
    if (reads % reads_per_turn == 0) co_await asio::post(executor_, asio::use_awaitable);
    if (n > 0 && shared_->now() < end) continue;
    limit.arm(std::min(end, shared_->now() + shared_->options.limits.linger));
    error = std::get<0>(co_await core::ready(socket, core::want::read));
    if (error) break;
  }
}

}  // namespace rw::http
