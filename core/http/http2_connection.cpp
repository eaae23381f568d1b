#include "core/http/http2_connection.hpp"

#include "core/http/buffers.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace rw::http {

namespace asio = boost::asio;

namespace {

constexpr std::size_t reads_per_flush = 8;  // a client that never pauses still gets answers
constexpr std::uint32_t connection_window = 1u << 20;

}  // namespace

http2_connection::http2_connection(std::shared_ptr<server_shared> shared,
                                   asio::any_io_executor executor,
                                   std::unique_ptr<core::stream> stream,
                                   asio::ip::tcp::endpoint from)
    : server_connection(std::move(shared), std::move(executor), std::move(stream), std::move(from)),
      tasks_(executor_, [this](std::exception_ptr failure) { fail(failure); }),
      deadline_(shared_->environment.watchdog.watch(executor_, [this] { expire(); })),
      last_request_(shared_->now()) {
  peer_.certificate = stream_->peer_certificate();
  const auto callbacks = callbacks_of<http2_connection>();
  const auto option = make_nghttp2_option();
  nghttp2_option_set_no_closed_streams(option.get(), 1);
  nghttp2_session* raw = nullptr;
  if (nghttp2_session_server_new3(&raw, callbacks.get(), this, option.get(), out_.memory()) != 0)
    throw std::bad_alloc();
  session_.reset(raw);

  const auto& limits = shared_->options.limits;
  const std::array settings{
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, http2_stream_window},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                             static_cast<std::uint32_t>(limits.header_bytes)}};
  nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(raw, NGHTTP2_FLAG_NONE, 0, connection_window);
}

asio::awaitable<void> http2_connection::run() {
  std::exception_ptr failure;
  try {
    co_await serve();
  } catch (...) {
    failure = std::current_exception();
  }
  broken_ = true;
  if (!dropped_) stream_->shutdown();
  // Whatever the handlers' tasks still do, nobody waits for these any more.
  for (auto& one : live_) one.source.close();
  tasks_.cancel();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await tasks_.join();
  if (!failure) failure = failure_;
  if (failure) std::rethrow_exception(failure);
}

/// A handler's task threw.
void http2_connection::fail(std::exception_ptr failure) {
  if (!failure_) failure_ = failure;
  stop();
}

asio::awaitable<void> http2_connection::serve() {
  look_at(shared_->now() + shared_->options.limits.header);
  flush();
  while (!finished()) {
    const auto got = receive();
    if (got.error) break;
    flush();
    if (finished()) break;
    if (got.wants == core::want::nothing) {
      // A client that never pauses must not keep the others waiting.
      co_await asio::post(executor_, asio::use_awaitable);
    } else {
      co_await core::ready(stream_->socket(), got.wants);
    }
  }
}

/// Feeds nghttp2 what is there, up to a turn's worth.
core::io_result http2_connection::receive() {
  read_buffer buffer;
  core::io_result got;
  for (std::size_t reads = 0; reads < reads_per_flush && !finished(); ++reads) {
    got = stream_->read(buffer.bytes());
    if (got.error && !live_.empty() && !dropped_) shared_->counters.vanished.Increment();
    if (got.error || got.wants != core::want::nothing) break;
    if (!feed({buffer.bytes().data(), got.bytes})) {
      flush();  // why
      got.error = asio::error::invalid_argument;
      break;
    }
  }
  return got;
}

/// False: the connection is beyond repair.
bool http2_connection::feed(std::string_view bytes) {
  const auto used = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (used >= 0) return true;
  if (used == NGHTTP2_ERR_FLOODED || used == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS) {
    shared_->counters.flood.Increment();
  } else if (used != NGHTTP2_ERR_CALLBACK_FAILURE) {
    shared_->counters.protocol.Increment();
  }
  return false;
}

/// Writes what nghttp2 has to say, as far as the socket takes it.
void http2_connection::flush() {
  if (write_blocked_ || broken_) return;
  const auto put = out_.write(session_.get(), *stream_);
  if (put.error) {
    shared_->counters.vanished.Increment();
    stop();
  } else if (put.wants != core::want::nothing) {
    write_blocked_ = true;
    blocked_since_ = shared_->now();
    look_at(blocked_since_ + shared_->options.limits.write);
    tasks_.spawn(write_when_possible());
  }
}

void http2_connection::push_soon() {
  if (std::exchange(push_pending_, true)) return;
  asio::post(executor_, [weak = weak_from_this(), this] {
    const auto self = weak.lock();
    if (!self) return;
    push_pending_ = false;
    push();
  });
}

asio::awaitable<void> http2_connection::write_when_possible() {
  co_await core::ready(stream_->socket(), core::want::write);
  write_blocked_ = false;
  push();
}

void http2_connection::drain() {
  draining_ = true;
  drained_by_ = shared_->now() + shared_->options.limits.write;
  for (auto& one : live_) drain(one);
  // First a notice that leaves room for requests on their way, then at the next look the real end
  // (RFC 9113, section 6.8).
  nghttp2_submit_shutdown_notice(session_.get());
  look_at(shared_->now());
  push();
}

void http2_connection::drop() {
  dropped_ = true;
  boost::system::error_code ignored;
  stream_->socket().shutdown(asio::socket_base::shutdown_both, ignored);
  stop();
}

/// Looks at what is overdue.
void http2_connection::expire() {
  const auto now = shared_->now();
  const auto& limits = shared_->options.limits;
  next_look_ = core::time_point::max();
  if (write_blocked_ && blocked_since_ + limits.write <= now) {
    shared_->counters.write_timeout.Increment();
    stop();
    return;
  }
  if (write_blocked_) look_at(blocked_since_ + limits.write);
  if (draining_ && !goaway_sent_) {
    goaway_sent_ = true;
    nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(session_.get()), NGHTTP2_NO_ERROR,
                          nullptr, 0);
  }
  look_at(now + limits.idle);
  out_.trim();
  frames_since_request_ /=
      2;  // PINGs now and then, beside an answer that takes hours, are no flood
  if (live_.empty()) expire_idle(now);
  for (auto& one : live_) {
    if (one.running) continue;  // the handler bounds its own time
    if (one.due > now) {
      look_at(one.due);
    } else {
      expire(one);
    }
  }
  push();
}

void http2_connection::expire_idle(core::time_point now) {
  const auto& limits = shared_->options.limits;
  const auto until = last_request_ + (any_request_ ? limits.idle : limits.header);
  if (until > now) {
    look_at(until);
    return;
  }
  if (!any_request_) shared_->counters.header_timeout.Increment();
  nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
}

void http2_connection::expire(exchange& one) {
  one.due = core::time_point::max();
  if (!one.headers_done) {
    // Nothing else can come before the rest of the header, so the whole connection is stuck.
    shared_->counters.header_timeout.Increment();
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
    return;
  }
  (one.answered ? shared_->counters.write_timeout : shared_->counters.body_timeout).Increment();
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, one.id, NGHTTP2_CANCEL);
}

std::unique_ptr<server_connection> make_http2_connection(std::shared_ptr<server_shared> shared,
                                                         asio::any_io_executor executor,
                                                         std::unique_ptr<core::stream> stream,
                                                         asio::ip::tcp::endpoint from) {
  return std::make_unique<http2_connection>(std::move(shared), std::move(executor),
                                            std::move(stream), std::move(from));
}

}  // namespace rw::http
