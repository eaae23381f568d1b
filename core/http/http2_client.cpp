#include "core/http/buffers.hpp"
#include "core/http/client_connection.hpp"
#include "core/http/http2_session.hpp"
#include "core/ready.hpp"
#include "core/wake.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <list>

namespace rw::http {
namespace {

namespace asio = boost::asio;

constexpr unsigned reads_per_turn = 16;  // then others on the executor get their turn

// What the upstream may send before it hears from us. What comes is taken at once, so a window
// holds no memory here; one that is too small costs a round trip for each window's length.
constexpr std::uint32_t stream_window = 1u << 20;
constexpr std::int32_t connection_window = 8 << 20;

/// An HTTP/2 connection that all exchanges share.
class http2_client final : public client_connection,
                           public std::enable_shared_from_this<http2_client> {
 public:
  http2_client(const client_options& options, const client_environment& environment,
               asio::any_io_executor executor, std::unique_ptr<core::stream> stream);

  asio::awaitable<void> run() override;
  asio::awaitable<boost::system::error_code> exchange(const request& what, response& into,
                                                      exchange_options options) override;

  std::size_t capacity() const noexcept override {
    if (ended_ || retired_ || suspected_) return 0;
    const auto theirs = nghttp2_session_get_remote_settings(
        session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    return std::min<std::size_t>(theirs, options_.limits.streams);
  }
  bool multiplexed() const noexcept override { return true; }

  void retire() override {
    retired_ = true;
    if (slots_ == 0) end();
  }

  // What nghttp2 calls.
  int on_header(const nghttp2_frame& frame, std::string_view name, std::string_view value);
  int on_data(std::int32_t id, std::string_view bytes);
  int on_frame(const nghttp2_frame& frame);
  int on_stream_close(std::int32_t id, std::uint32_t code);

 private:
  /// One exchange, in the frame of its coroutine. If that goes before the exchange has ended, its
  /// stream is reset.
  struct call {
    call(http2_client& o, response& answer, const exchange_options& options)
        : owner(o),
          done(o.executor_),
          into(answer),
          sink(options.sink),
          body_bytes(options.body_bytes > 0 ? options.body_bytes : o.options_.limits.body_bytes),
          guarded(options.guarded && o.options_.permit != nullptr),
          time(options, o.options_.limits, o.environment_.watchdog.now()) {}
    ~call() {
      if (id > 0 && !finished) owner.give_up(*this, client_error::shut_down);
    }
    call(const call&) = delete;
    call& operator=(const call&) = delete;

    http2_client& owner;
    core::wake done;
    response& into;
    body_sink* const sink;
    const std::size_t body_bytes;
    const bool guarded;
    outgoing_body body;
    std::array<char, 24> content_length{};  ///< in digits
    exchange_clock time;
    boost::system::error_code error;
    bool finished = false;
    bool whole = false;  ///< the answer came to its end
    std::int32_t id = 0;
    std::list<call*>::iterator self;
  };

  call* find(std::int32_t id) {
    return static_cast<call*>(nghttp2_session_get_stream_user_data(session_.get(), id));
  }

  int on_frame_not_sent(const nghttp2_frame& frame);

  void slot_given() override {
    if (retired_ && slots_ == 0) end();
  }
  bool submit(call& one, const request& what);
  void finish(call& one, boost::system::error_code error);
  void give_up(call& one, boost::system::error_code error);
  void end() {
    ended_ = true;
    core::interrupt(stream_->socket());
  }
  asio::awaitable<void> read_answers();
  core::io_result receive();
  void heard();
  void heard(call& one);
  void look_for_life(core::time_point now, bool overdue);
  void probe(core::time_point answered_by);
  void expire();
  /// Has `expire` look at `when` at the latest.
  void look_at(core::time_point when) {
    if (when >= next_look_) return;
    next_look_ = when;
    deadline_.arm(when);
  }
  bool may_still_be_held_back(const call& one) const;
  bool holds_guarded() const;
  void hold_back();
  void drop();
  void flush();
  void push() {
    flush();
    if (ended_) core::interrupt(stream_->socket());
  }
  /// Once for all exchanges that begin before the executor comes to it: their frames share a write.
  void push_soon() {
    if (std::exchange(push_pending_, true)) return;
    asio::post(executor_, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->push_pending_ = false;
        self->push();
      }
    });
  }
  asio::awaitable<void> write_when_possible();

  frame_output out_;
  nghttp2_session_ptr session_;
  core::task_group tasks_;
  core::deadline deadline_;
  std::list<call*> calls_;
  std::string authority_;
  core::time_point next_look_ = core::time_point::max();
  core::time_point last_use_;
  core::time_point last_heard_;
  core::time_point probed_until_ = core::time_point::max();  ///< when an answer to PING is due
  bool guarded_out_ = false;  ///< what is on its way out may be of a guarded exchange
  bool push_pending_ = false;
  bool write_blocked_ = false;
  bool retired_ = false;
  bool suspected_ = false;  ///< an exchange timed out, and nothing else was heard either
  bool ended_ = false;
  bool dropped_ = false;  ///< not another byte, not even of what the kernel holds
};

http2_client::http2_client(const client_options& options, const client_environment& environment,
                           asio::any_io_executor executor, std::unique_ptr<core::stream> stream)
    : client_connection(options, environment, std::move(executor), std::move(stream)),
      tasks_(executor_),
      deadline_(environment_.watchdog.watch(executor_, [this] { expire(); })),
      authority_(authority(options, stream_->encrypted())),
      last_use_(environment.watchdog.now()),
      last_heard_(last_use_) {
  const auto callbacks = callbacks_of<http2_client>();
  nghttp2_session* raw = nullptr;
  if (nghttp2_session_client_new3(&raw, callbacks.get(), this, nullptr, out_.memory()) != 0)
    throw std::bad_alloc();
  session_.reset(raw);
  const std::array settings{
      nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window}};
  nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(raw, NGHTTP2_FLAG_NONE, 0, connection_window);
}

asio::awaitable<void> http2_client::run() {
  std::exception_ptr failure;
  try {
    co_await read_answers();
  } catch (...) {
    failure = std::current_exception();
  }
  ended_ = true;
  while (!calls_.empty()) finish(*calls_.front(), client_error::closed);
  nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
  flush();
  if (!dropped_) stream_->shutdown();
  tasks_.cancel();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await tasks_.join();
  boost::system::error_code ignored;
  if (dropped_) stream_->socket().set_option(asio::socket_base::linger(true, 0), ignored);
  stream_->socket().close(ignored);
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> http2_client::read_answers() {
  look_at(environment_.watchdog.now() + options_.limits.exchange);
  flush();
  while (!ended_) {
    const auto got = receive();
    if (got.error) break;
    flush();
    if (nghttp2_session_want_read(session_.get()) == 0 &&
        nghttp2_session_want_write(session_.get()) == 0) {
      break;
    }
    if (ended_) break;
    if (got.wants == core::want::nothing) {
      co_await asio::post(executor_, asio::use_awaitable);
    } else {
      co_await core::ready(stream_->socket(), got.wants);
    }
  }
}

/// Feeds nghttp2 what is there, up to a turn's worth.
core::io_result http2_client::receive() {
  read_buffer buffer;
  core::io_result got;
  for (unsigned reads = 0; reads < reads_per_turn && !ended_; ++reads) {
    got = stream_->read(buffer.bytes());
    if (got.error || got.wants != core::want::nothing) break;
    heard();
    const auto used = nghttp2_session_mem_recv(
        session_.get(), reinterpret_cast<const std::uint8_t*>(buffer.bytes().data()), got.bytes);
    if (used >= 0) continue;
    got.error = client_error::protocol;
    break;
  }
  return got;
}

/// Not part of the coroutine below, whose frame lives as long as a watch does. The fields are
/// borrowed until they are written: from `what` and from `one`.
bool http2_client::submit(call& one, const request& what) {
  auto& digits = one.content_length;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), what.body.size()).ptr;
  borrowed_fields fields;
  fields.add(":method", what.method);
  fields.add(":scheme", stream_->encrypted() ? "https" : "http");
  fields.add(":authority", authority_);
  fields.add(":path", what.target);
  fields.add("content-length", {digits.data(), end});
  fields.add(what.headers);
  const nghttp2_data_provider provider{{.ptr = &one.body}, &outgoing_body::read};
  const auto id = nghttp2_submit_request(session_.get(), nullptr, fields.data(), fields.size(),
                                         what.body.empty() ? nullptr : &provider, &one);
  if (id < 0) return false;
  one.id = id;
  return true;
}

asio::awaitable<boost::system::error_code> http2_client::exchange(const request& what,
                                                                  response& into,
                                                                  exchange_options options) {
  if (ended_) co_return client_error::not_processed;
  call one(*this, into, options);
  one.body.rest = what.body;
  if (!submit(one, what)) {
    // Stream ids are used up, or the peer said goodbye: the next connection takes it.
    retired_ = true;
    co_return client_error::not_processed;
  }
  if (one.guarded) guarded_out_ = true;
  one.self = calls_.insert(calls_.end(), &one);
  last_use_ = environment_.watchdog.now();
  look_at(one.time.due());
  if (options_.limits.ping.count() > 0) look_at(last_use_ + options_.limits.ping);
  push_soon();
  if (!one.finished) co_await one.done.wait();
  if (!one.finished) give_up(one, client_error::shut_down);
  co_return one.error;
}

void http2_client::finish(call& one, boost::system::error_code error) {
  one.finished = true;
  one.error = error;
  last_use_ = environment_.watchdog.now();
  calls_.erase(one.self);
  nghttp2_session_set_stream_user_data(session_.get(), one.id, nullptr);
  one.done.set();
}

/// Leaves the rest of the answer. What still comes of it is counted for flow control by nghttp2,
/// and thrown away.
void http2_client::give_up(call& one, boost::system::error_code error) {
  const auto id = one.id;
  finish(one, error);
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  push_soon();
}

/// The upstream lives.
void http2_client::heard() {
  last_heard_ = environment_.watchdog.now();
  if (probed_until_ == core::time_point::max()) return;
  probed_until_ = core::time_point::max();
  look_at(last_heard_ + options_.limits.ping);
  if (std::exchange(suspected_, false)) changed();
}

/// The answer's head came, or a part of its body.
void http2_client::heard(call& one) {
  one.time.heard(environment_.watchdog.now());
  look_at(one.time.due());
}

int http2_client::on_header(const nghttp2_frame& frame, std::string_view name,
                            std::string_view value) {
  auto* one = find(frame.hd.stream_id);
  if (one == nullptr) return 0;
  if (one->into.headers.bytes() + name.size() + value.size() > options_.limits.header_bytes) {
    give_up(*one, client_error::response_too_large);
    return 0;
  }
  if (name == ":status") {
    // An informational answer (1xx) is followed by the real one.
    std::from_chars(value.data(), value.data() + value.size(), one->into.status);
    one->into.headers.clear();
  } else {
    one->into.headers.add(name, value);
  }
  return 0;
}

int http2_client::on_data(std::int32_t id, std::string_view bytes) {
  auto* one = find(id);
  if (one == nullptr) return 0;
  heard(*one);
  if (one->sink != nullptr && one->into.status / 100 == 2) {
    const bool more = one->sink->take(bytes);
    if (!more && !one->finished) give_up(*one, client_error::abandoned);
    return 0;
  }
  if (one->into.body.size() + bytes.size() > one->body_bytes) {
    give_up(*one, client_error::response_too_large);
    return 0;
  }
  one->into.body.append(bytes);
  return 0;
}

int http2_client::on_frame(const nghttp2_frame& frame) {
  switch (frame.hd.type) {
    case NGHTTP2_GOAWAY:
      retired_ = true;  // streams past the last one it took are closed as refused by nghttp2
      if (slots_ == 0) ended_ = true;
      changed();
      break;
    case NGHTTP2_SETTINGS:
      changed();
      break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      if (auto* one = find(frame.hd.stream_id)) {
        if (one->into.status >= 200) heard(*one);
        one->whole = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
      }
      break;
    default:
      break;
  }
  return 0;
}

int http2_client::on_stream_close(std::int32_t id, std::uint32_t code) {
  auto* one = find(id);
  if (one == nullptr) return 0;
  boost::system::error_code error;
  if (code == NGHTTP2_REFUSED_STREAM) {
    error = client_error::not_processed;
  } else if (!one->whole) {
    error = client_error::closed;
  }
  finish(*one, error);
  return 0;
}

/// A request that was not sent yet when the upstream said goodbye has no stream that could be
/// closed.
int http2_client::on_frame_not_sent(const nghttp2_frame& frame) {
  if (frame.hd.type != NGHTTP2_HEADERS) return 0;
  const auto at = std::ranges::find(calls_, frame.hd.stream_id, &call::id);
  if (at != calls_.end()) finish(**at, client_error::not_processed);
  return 0;
}

/// Gives up what is overdue.
void http2_client::expire() {
  const auto now = environment_.watchdog.now();
  const auto& limits = options_.limits;
  next_look_ = core::time_point::max();
  look_at(now + std::min(limits.idle, limits.exchange));
  out_.trim();
  bool overdue = false;
  const auto current = calls_;
  for (auto* one : current) {
    if (one->time.due() > now) {
      look_at(one->time.due());
      continue;
    }
    overdue = true;
    give_up(*one, client_error::timed_out);
  }
  look_for_life(now, overdue);
  if (calls_.empty() && slots_ == 0 && last_use_ + limits.idle <= now) end();
  push();
}

/// Leaves an upstream that seems to be dead.
void http2_client::look_for_life(core::time_point now, bool overdue) {
  const auto& limits = options_.limits;
  const bool silent = last_heard_ + limits.exchange <= now;
  if (calls_.empty()) {
    if (overdue && silent) end();
    return;
  }
  if (probed_until_ <= now) {
    environment_.log.warning("the upstream gives no sign of life; its connection is given up",
                             {{"client", options_.name}, {"host", options_.host}});
    while (!calls_.empty()) finish(*calls_.front(), client_error::timed_out);
    end();
    return;
  }
  if (overdue && silent) {
    suspected_ = true;
    probe(now + std::min(limits.ping_answer, limits.exchange));
  } else if (limits.ping.count() > 0 && last_heard_ + limits.ping <= now) {
    probe(now + limits.ping_answer);
  } else if (limits.ping.count() > 0) {
    look_at(last_heard_ + limits.ping);
  }
}

/// Asks for a sign of life, unless that is under way already.
void http2_client::probe(core::time_point answered_by) {
  if (probed_until_ == core::time_point::max()) {
    nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr);
  }
  probed_until_ = std::min(probed_until_, answered_by);
  look_at(probed_until_);
}

/// True if a part of a guarded request is not framed yet, so that the upstream lacks its end.
bool http2_client::may_still_be_held_back(const call& one) const {
  const bool begun = nghttp2_session_find_stream(session_.get(), one.id) != nullptr;
  return one.guarded && !(begun && one.body.rest.empty());
}

bool http2_client::holds_guarded() const {
  return std::ranges::any_of(calls_, [this](auto* one) { return may_still_be_held_back(*one); });
}

/// Withdraws the guarded requests of which something is still here, once the permit is gone. A
/// stream that is reset before its request is whole is a request that was not made.
void http2_client::hold_back() {
  if (!guarded_out_ || options_.permit->open()) return;
  const auto current = calls_;
  for (auto* one : current) {
    if (may_still_be_held_back(*one)) give_up(*one, client_error::not_permitted);
  }
  // What is gathered already can't be told apart, and half of a TLS record can't be taken back.
  if (!out_.empty()) return drop();
  guarded_out_ = false;
}

void http2_client::drop() {
  if (dropped_) return;
  environment_.log.warning("a connection is dropped, since it holds what may not be sent any more",
                           {{"client", options_.name}, {"host", options_.host}});
  dropped_ = ended_ = true;
}

void http2_client::flush() {
  hold_back();
  if (write_blocked_ || dropped_) return;
  const auto* permit = guarded_out_ ? options_.permit.get() : nullptr;
  const auto put = out_.write(session_.get(), *stream_, permit);
  if (put.error == client_error::not_permitted) {
    hold_back();
    drop();
  } else if (put.error) {
    ended_ = true;
  } else if (put.wants != core::want::nothing) {
    write_blocked_ = true;
    tasks_.spawn(write_when_possible());
  } else if (guarded_out_) {
    guarded_out_ = holds_guarded();
  }
}

asio::awaitable<void> http2_client::write_when_possible() {
  co_await core::ready(stream_->socket(), core::want::write);
  write_blocked_ = false;
  push();
}

}  // namespace

std::shared_ptr<client_connection> make_http2_client_connection(
    const client_options& options, const client_environment& environment,
    asio::any_io_executor executor, std::unique_ptr<core::stream> stream) {
  return std::make_shared<http2_client>(options, environment, std::move(executor),
                                        std::move(stream));
}

}  // namespace rw::http
