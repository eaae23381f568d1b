#include "core/http/http2_session.hpp"
#include "core/http/server_connection.hpp"
#include "core/ready.hpp"
#include "core/task_group.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <array>
#include <charconv>
#include <list>

namespace rw::http {
namespace {

namespace asio = boost::asio;

constexpr std::size_t read_size = 16 * 1024;    // one TLS record
constexpr std::size_t output_size = 32 * 1024;  // frames are gathered up to this before a write
constexpr std::size_t reads_per_flush = 8;      // a client that never pauses still gets answers
constexpr std::size_t granted_body =
    16 * 1024;  // of each stream; beyond it, it has to be accounted for
constexpr std::size_t kept_body = 64 * 1024;  // larger buffers are not kept for the next stream
constexpr std::uint32_t connection_window = 1u << 20;
constexpr std::uint32_t stream_window = 256 * 1024;
constexpr unsigned idle_frames = 10'000;  // PING, SETTINGS and the like between two requests

/// An HTTP/2 connection (RFC 9113) over nghttp2.
class http2_connection final : public server_connection {
 public:
  http2_connection(std::shared_ptr<server_shared> shared, asio::any_io_executor executor,
                   std::unique_ptr<core::stream> stream, asio::ip::tcp::endpoint from);

  asio::awaitable<void> run() override;
  void drain() override;

 private:
  /// One request and its answer. Recycled, with its buffers.
  struct exchange {
    explicit exchange(server_shared& shared) : budget(shared) {}

    std::int32_t id = 0;
    request from;
    response into;
    outgoing_body body;
    body_budget budget;
    std::array<char, 8> status{};
    std::array<char, 24> length{};
    std::size_t body_limit = 0;
    core::time_point due;
    bool headers_done = false;
    bool answered = false;  ///< the answer was handed to nghttp2
    bool complete = false;  ///< the whole request is there
    bool running = false;   ///< a task of the handler refers to it
    bool closed = false;    ///< nghttp2 forgot the stream
    std::list<exchange>::iterator self;
  };

  static http2_connection& self(void* user) { return *static_cast<http2_connection*>(user); }
  exchange* find(std::int32_t id) {
    return static_cast<exchange*>(nghttp2_session_get_stream_user_data(session_.get(), id));
  }

  int on_begin_headers(const nghttp2_frame& frame);
  int on_header(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int on_frame(const nghttp2_frame& frame);
  int on_data(std::int32_t id, std::string_view bytes);
  int on_frame_sent(const nghttp2_frame& frame);
  int on_stream_close(std::int32_t id);

  void on_headers_done(exchange& one);
  void on_complete(exchange& one);
  void answer(exchange& one);
  void refuse(exchange& one, unsigned status, std::string_view line, core::counter& reason);
  asio::awaitable<void> finish(exchange* one, asio::awaitable<void> rest);
  void recycle(exchange& one);

  asio::awaitable<void> serve();
  bool receive(std::size_t size);
  void flush();
  /// The same from outside the reader, which may be waiting though there is nothing left to wait
  /// for.
  void push() {
    flush();
    if (finished()) core::interrupt(stream_->socket());
  }
  asio::awaitable<void> write_when_possible();
  bool finished() const {
    return broken_ || (!nghttp2_session_want_read(session_.get()) &&
                       !nghttp2_session_want_write(session_.get()) && out_.empty());
  }
  void stop() {
    broken_ = true;
    core::interrupt(stream_->socket());
  }
  void expire();
  void expire(exchange& one);
  void expire_idle(core::time_point now);
  /// Has `expire` look at `when` at the latest.
  void look_at(core::time_point when) {
    if (when >= next_look_) return;
    next_look_ = when;
    deadline_.arm(when);
  }
  int flood();

  nghttp2_session_ptr session_;
  core::task_group tasks_;
  core::deadline deadline_;
  std::list<exchange> live_;
  std::list<exchange> spare_;
  std::string in_;
  std::string out_;
  std::size_t out_begin_ = 0;
  core::time_point last_request_;
  core::time_point blocked_since_;
  core::time_point next_look_ = core::time_point::max();
  unsigned frames_since_request_ = 0;
  bool any_request_ = false;
  bool write_blocked_ = false;
  bool draining_ = false;
  bool goaway_sent_ = false;
  bool broken_ = false;
};

http2_connection::http2_connection(std::shared_ptr<server_shared> shared,
                                   asio::any_io_executor executor,
                                   std::unique_ptr<core::stream> stream,
                                   asio::ip::tcp::endpoint from)
    : server_connection(std::move(shared), std::move(executor), std::move(stream), std::move(from)),
      tasks_(executor_),
      deadline_(shared_->environment.watchdog.watch(executor_, [this] { expire(); })),
      last_request_(shared_->now()) {
  peer_.certificate = stream_->peer_certificate();
  const auto callbacks = make_nghttp2_callbacks();
  auto* c = callbacks.get();
  nghttp2_session_callbacks_set_on_begin_headers_callback(
      c, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return self(user).on_begin_headers(*frame);
      });
  nghttp2_session_callbacks_set_on_header_callback(
      c, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t n,
            const std::uint8_t* value, std::size_t v, std::uint8_t,
            void* user) { return self(user).on_header(*frame, view(name, n), view(value, v)); });
  nghttp2_session_callbacks_set_on_frame_recv_callback(
      c, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return self(user).on_frame(*frame);
      });
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
      c, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
            std::size_t size, void* user) { return self(user).on_data(id, view(bytes, size)); });
  nghttp2_session_callbacks_set_on_frame_send_callback(
      c, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
        return self(user).on_frame_sent(*frame);
      });
  nghttp2_session_callbacks_set_on_stream_close_callback(
      c, [](nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
        return self(user).on_stream_close(id);
      });
  const auto option = make_nghttp2_option();
  nghttp2_option_set_no_closed_streams(option.get(), 1);
  nghttp2_session* raw = nullptr;
  if (nghttp2_session_server_new2(&raw, c, this, option.get()) != 0) throw std::bad_alloc();
  session_.reset(raw);

  const auto& limits = shared_->options.limits;
  const std::array settings{
      nghttp2_settings_entry{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.streams},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window},
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
  stream_->shutdown();
  tasks_.cancel();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await tasks_.join();
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> http2_connection::serve() {
  look_at(shared_->now() + shared_->options.limits.header);
  in_.resize(read_size);
  flush();
  std::size_t reads = 0;
  while (!finished()) {
    const auto got = stream_->read({in_.data(), in_.size()});
    if (got.error) {
      if (!live_.empty()) shared_->counters.vanished.Increment();
      break;
    }
    if (got.bytes > 0 && !receive(got.bytes)) {
      flush();
      break;
    }
    if (got.wants == core::want::nothing && ++reads < reads_per_flush) continue;
    reads = 0;
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

/// Feeds nghttp2. False: the connection is beyond repair.
bool http2_connection::receive(std::size_t size) {
  const auto used = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const std::uint8_t*>(in_.data()), size);
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
  for (;;) {
    if (out_begin_ == out_.size()) {
      out_.clear();
      out_begin_ = 0;
      while (out_.size() < output_size) {
        const std::uint8_t* bytes = nullptr;
        const auto n = nghttp2_session_mem_send(session_.get(), &bytes);
        if (n <= 0) break;
        out_.append(view(bytes, static_cast<std::size_t>(n)));
      }
      if (out_.empty()) return;
    }
    const auto put = stream_->write({out_.data() + out_begin_, out_.size() - out_begin_});
    out_begin_ += put.bytes;
    if (put.error) {
      shared_->counters.vanished.Increment();
      stop();
      return;
    }
    if (put.wants == core::want::nothing) continue;
    write_blocked_ = true;
    blocked_since_ = shared_->now();
    look_at(blocked_since_ + shared_->options.limits.write);
    tasks_.spawn(write_when_possible());
    return;
  }
}

asio::awaitable<void> http2_connection::write_when_possible() {
  co_await core::ready(stream_->socket(), core::want::write);
  write_blocked_ = false;
  push();
}

void http2_connection::drain() {
  draining_ = true;
  // First a notice that leaves room for requests on their way, then at the next look the real end
  // (RFC 9113, section 6.8).
  nghttp2_submit_shutdown_notice(session_.get());
  look_at(shared_->now());
  push();
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

int http2_connection::flood() {
  shared_->counters.flood.Increment();
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

int http2_connection::on_begin_headers(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  if (spare_.empty()) {
    if (live_.size() >= 2 * shared_->options.limits.streams) return flood();
    spare_.emplace_front(*shared_);
  }
  live_.splice(live_.end(), spare_, spare_.begin());
  auto& one = live_.back();
  one.self = std::prev(live_.end());
  one.id = frame.hd.stream_id;
  one.due = shared_->now() + shared_->options.limits.header;
  look_at(one.due);
  one.from.peer = peer_;
  nghttp2_session_set_stream_user_data(session_.get(), one.id, &one);
  return 0;
}

int http2_connection::on_header(const nghttp2_frame& frame, std::string_view name,
                                std::string_view value) {
  auto* one = find(frame.hd.stream_id);
  if (one == nullptr || one->headers_done) return 0;  // trailers are of no use here
  auto& from = one->from;
  const auto limit = shared_->options.limits.header_bytes;
  if (from.headers.bytes() + from.target.size() + name.size() + value.size() > limit) {
    if (!one->answered) {
      refuse(*one, 431, "the header is too large", shared_->counters.header_size);
    }
    // The rest is decoded by nghttp2 and thrown away; a header bomb ends the connection.
    one->body_limit += name.size() + value.size();
    return one->body_limit > 16 * limit ? flood() : 0;
  }
  if (name == ":method") {
    from.method = value;
  } else if (name == ":path") {
    from.target = value;
  } else if (name == ":authority") {
    from.headers.add("host", value);
  } else if (name[0] != ':') {
    from.headers.add(name, value);
  }
  return 0;
}

int http2_connection::on_frame(const nghttp2_frame& frame) {
  auto* one = find(frame.hd.stream_id);
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      if (one != nullptr && !one->headers_done) on_headers_done(*one);
      [[fallthrough]];
    case NGHTTP2_DATA:
      if (one != nullptr && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) on_complete(*one);
      if (frame.hd.length > 0) return 0;
      break;
    default:
      break;
  }
  return ++frames_since_request_ > idle_frames ? flood() : 0;
}

void http2_connection::on_headers_done(exchange& one) {
  one.headers_done = true;
  one.due = shared_->now() + shared_->options.limits.body;
  look_at(one.due);
  if (one.answered) return;
  one.body_limit = shared_->answers.body_limit(one.from);
  const auto text = one.from.headers.get("content-length");
  std::size_t length = 0;
  std::from_chars(text.data(), text.data() + text.size(), length);
  if (length > one.body_limit) {
    refuse(one, 413, "the body is larger than this path accepts", shared_->counters.body_size);
  } else if (length > 0 && length <= stream_window) {
    one.from.body.reserve(length + body_padding);
  }
}

int http2_connection::on_data(std::int32_t id, std::string_view bytes) {
  auto* one = find(id);
  if (one == nullptr || one->answered) return 0;
  auto& body = one->from.body;
  if (body.size() + bytes.size() > one->body_limit) {
    refuse(*one, 413, "the body is larger than this path accepts", shared_->counters.body_size);
    return 0;
  }
  if (body.size() + bytes.size() > granted_body && !one->budget.take(bytes.size())) {
    refuse(*one, 503, "too many large requests at once", shared_->counters.memory);
    return 0;
  }
  body.append(bytes);
  return 0;
}

void http2_connection::on_complete(exchange& one) {
  one.complete = true;
  if (one.answered) return;
  frames_since_request_ = 0;
  last_request_ = shared_->now();
  any_request_ = true;
  if (one.from.body.capacity() < one.from.body.size() + body_padding) {
    one.from.body.reserve(one.from.body.size() + body_padding);
  }
  auto rest = shared_->answers.handle(one.from, one.into);
  if (rest.valid()) {
    one.running = true;
    tasks_.spawn(finish(&one, std::move(rest)));
    return;
  }
  answer(one);
}

/// Runs the part of the handler that waits.
asio::awaitable<void> http2_connection::finish(exchange* one, asio::awaitable<void> rest) {
  co_await std::move(rest);
  one->running = false;
  if (one->closed) {
    recycle(*one);
    co_return;
  }
  answer(*one);
  push();
}

void http2_connection::refuse(exchange& one, unsigned status, std::string_view line,
                              core::counter& reason) {
  reason.Increment();
  shared_->answers.refused(status);
  one.budget.release();
  one.into.clear();
  one.into.text(status, line);
  answer(one);
}

void http2_connection::answer(exchange& one) {
  one.answered = true;
  one.budget.release();
  one.due = shared_->now() + shared_->options.limits.write;
  look_at(one.due);
  if (one.complete) shared_->counters.requests_http2.Increment();
  const auto number = [](auto& into, std::size_t value) {
    const auto end = std::to_chars(into.data(), into.data() + into.size(), value).ptr;
    return std::string_view(into.data(), end);
  };
  std::array<nghttp2_nv, 16> nv;
  std::size_t n = 0;
  nv[n++] = borrow_field(":status", number(one.status, one.into.status));
  nv[n++] = borrow_field("content-length", number(one.length, one.into.body.size()));
  for (std::size_t i = 0; i < one.into.headers.size() && n < nv.size(); ++i) {
    const auto field = one.into.headers[i];
    nv[n++] = borrow_field(field.name, field.value);
  }
  one.body.rest = one.into.body;
  nghttp2_data_provider provider{{.ptr = &one.body}, &outgoing_body::read};
  const bool empty = one.into.body.empty() || one.from.method == "HEAD";
  nghttp2_submit_response(session_.get(), one.id, nv.data(), n, empty ? nullptr : &provider);
}

int http2_connection::on_frame_sent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR) {
    // nghttp2 says "internal error" where a client resets streams too fast.
    const bool flooded = frame.goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM ||
                         frame.goaway.error_code == NGHTTP2_INTERNAL_ERROR;
    (flooded ? shared_->counters.flood : shared_->counters.protocol).Increment();
  }
  if (frame.hd.type == NGHTTP2_RST_STREAM) {
    // What nghttp2 finds wrong with one stream.
    if (frame.rst_stream.error_code == NGHTTP2_REFUSED_STREAM) {
      shared_->counters.too_many_streams.Increment();
    } else if (frame.rst_stream.error_code == NGHTTP2_PROTOCOL_ERROR ||
               frame.rst_stream.error_code == NGHTTP2_FLOW_CONTROL_ERROR) {
      shared_->counters.malformed.Increment();
    }
    return 0;
  }
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  if (frame.hd.type != NGHTTP2_DATA && frame.hd.type != NGHTTP2_HEADERS) return 0;
  const auto* one = find(frame.hd.stream_id);
  if (one != nullptr && !one->complete) {
    // Answered before the request was whole: tell the client to stop sending it.
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, one->id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

int http2_connection::on_stream_close(std::int32_t id) {
  auto* one = find(id);
  if (one == nullptr) return 0;
  one->closed = true;
  if (!one->running) recycle(*one);
  return 0;
}

void http2_connection::recycle(exchange& one) {
  const bool large = one.from.body.capacity() > kept_body || one.into.body.capacity() > kept_body;
  one.budget.release();
  if (large || broken_) {
    live_.erase(one.self);
    return;
  }
  one.from.clear();
  one.into.clear();
  one.body_limit = 0;
  one.headers_done = one.answered = one.complete = one.running = one.closed = false;
  spare_.splice(spare_.begin(), live_, one.self);
}

}  // namespace

std::unique_ptr<server_connection> make_http2_connection(std::shared_ptr<server_shared> shared,
                                                         asio::any_io_executor executor,
                                                         std::unique_ptr<core::stream> stream,
                                                         asio::ip::tcp::endpoint from) {
  return std::make_unique<http2_connection>(std::move(shared), std::move(executor),
                                            std::move(stream), std::move(from));
}

}  // namespace rw::http
