#pragma once

#include "rw/core/http/frame_budget.hpp"
#include "rw/core/http/http2_session.hpp"
#include "rw/core/http/open_source.hpp"
#include "rw/core/http/server_connection.hpp"
#include "rw/core/task_group.hpp"

#include <array>
#include <list>
#include <span>

namespace rw::http {

/// Window of each stream, in bytes: what a client may send before it hears from us.
inline constexpr std::uint32_t http2_stream_window = 256 * 1024;

/// An HTTP/2 connection (RFC 9113) over nghttp2. http2_connection.cpp moves bytes and time,
/// http2_exchange.cpp has requests and answers.
class http2_connection final : public server_connection {
 public:
  explicit http2_connection(accepted parts);

  boost::asio::awaitable<void> run() override;
  void drain() override;
  void drop() override;
  void evict(std::size_t bytes) override;

  // What nghttp2 calls.
  int on_begin_headers(const nghttp2_frame& frame);
  int on_header(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int on_frame(const nghttp2_frame& frame);
  int on_data(std::int32_t id, std::string_view bytes);
  int on_frame_sent(const nghttp2_frame& frame);
  int on_stream_close(std::int32_t id, std::uint32_t code);

 private:
  /// One request and its answer. Recycled, with its buffers, by all connections of the thread.
  struct exchange {
    std::int32_t id = 0;
    request from;
    response into;
    outgoing_body body;
    open_source source;
    std::string left;  ///< of what the source gave
    body_progress progress;
    std::size_t held = 0;  ///< as the connection's sum has it
    std::array<char, 8> status{};
    std::array<char, 24> length{};
    std::string date;
    std::size_t body_limit = 0;  ///< of a refused header: what has been thrown away of it
    std::size_t expected = 0;    ///< of the body
    core::time_point due;
    bool headers_done = false;
    bool responded = false;  ///< the answer was handed to nghttp2
    bool complete = false;   ///< the whole request is there
    bool running = false;    ///< a task of the handler refers to it
    bool pinned = false;     ///< running, or with a source: may last, and is not evicted
    bool evicted = false;
    bool closed = false;    ///< nghttp2 forgot the stream
    bool deferred = false;  ///< nghttp2 waits to hear of the source
    std::list<exchange>::iterator self;
  };

  exchange* find(std::int32_t id) {
    return static_cast<exchange*>(nghttp2_session_get_stream_user_data(session_.get(), id));
  }

  void on_headers_done(exchange& exchange);
  void on_complete(exchange& exchange);
  void respond(exchange& exchange);
  void open(exchange& exchange);
  ssize_t read_source(exchange& exchange, std::span<char> into, std::uint32_t& flags);
  std::function<void()> waker(std::int32_t id);
  void go_on(exchange& exchange);
  void drain(exchange& exchange);
  void refuse(exchange& exchange, unsigned status, std::string_view line, refusal reason);
  static std::list<exchange>& spare();
  void pin(exchange& exchange, bool pinned) noexcept;
  void charge(exchange& exchange);
  void settle();
  boost::asio::awaitable<void> finish(exchange* exchange, boost::asio::awaitable<void> rest);
  void recycle(exchange& exchange);

  boost::asio::awaitable<void> serve();
  core::io_result receive();
  bool feed(std::string_view bytes);
  void flush();
  /// The same from outside the reader, which may be waiting though there is nothing left to wait
  /// for.
  void push() {
    flush();
    settle();
    if (finished()) core::interrupt(stream_->socket());
  }
  /// The same from within nghttp2's own calls, where nothing may be sent.
  void push_soon();
  boost::asio::awaitable<void> write_when_possible();
  bool finished() const {
    return broken_ || (!nghttp2_session_want_read(session_.get()) &&
                       !nghttp2_session_want_write(session_.get()) && out_.empty());
  }
  void fail(std::exception_ptr failure);
  void stop() {
    broken_ = true;
    core::interrupt(stream_->socket());
  }
  void expire();
  void expire(exchange& exchange);
  void expire_idle(core::time_point now);
  /// Has `expire` look at `time` at the latest.
  void look_at(core::time_point time) {
    if (time >= next_look_) return;
    next_look_ = time;
    deadline_.arm(time);
  }
  int flood();

  frame_output out_;
  nghttp2_session_ptr session_;
  frame_budget budget_{frame_budget::peer::client};
  core::task_group tasks_;
  core::deadline deadline_;
  std::list<exchange> live_;
  std::size_t pinned_ = 0;  ///< of these
  std::size_t held_ = 0;    ///< by them
  std::size_t block_ = 0;   ///< bytes of a header block that has not ended
  std::exception_ptr failure_;
  core::time_point last_request_;
  core::time_point blocked_since_;
  core::time_point next_look_ = core::time_point::max();
  core::time_point drained_by_ = core::time_point::max();  ///< set when the server drains
  bool in_block_ = false;
  bool any_request_ = false;
  bool write_blocked_ = false;
  bool push_pending_ = false;
  bool draining_ = false;
  bool goaway_sent_ = false;
  bool over_budget_ = false;  ///< the client has sent too many frames
  bool broken_ = false;
};

}  // namespace rw::http
