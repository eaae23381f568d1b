#include "core/http/client_connection.hpp"
#include "core/http/http2_session.hpp"
#include "core/ready.hpp"
#include "core/wake.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <list>

namespace rw::http {
namespace {

namespace asio = boost::asio;

constexpr std::size_t read_size = 16 * 1024;

/// An HTTP/2 connection that all exchanges share.
class http2_client final : public client_connection,
                           public std::enable_shared_from_this<http2_client> {
 public:
  http2_client(const client_options& options, const client_environment& environment,
               asio::any_io_executor executor, std::unique_ptr<core::stream> stream);

  asio::awaitable<void> run() override;
  asio::awaitable<boost::system::error_code> exchange(const request& what, response& into) override;

  std::size_t capacity() const noexcept override {
    if (ended_ || retired_) return 0;
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
  /// One exchange, in the frame of its coroutine.
  struct call {
    call(const asio::any_io_executor& executor, response& answer) : done(executor), into(answer) {}

    core::wake done;
    response& into;
    outgoing_body body;
    core::time_point due;
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
  void finish(call& one, boost::system::error_code error);
  void give_up(call& one, boost::system::error_code error);
  void end() {
    ended_ = true;
    core::interrupt(stream_->socket());
  }
  asio::awaitable<void> read_answers();
  void expire();
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

  nghttp2_session_ptr session_;
  core::task_group tasks_;
  core::deadline deadline_;
  std::list<call*> calls_;
  std::string in_;
  frame_output out_;
  std::string authority_;
  core::time_point last_use_;
  core::time_point last_heard_;
  bool push_pending_ = false;
  bool write_blocked_ = false;
  bool retired_ = false;
  bool ended_ = false;
};

http2_client::http2_client(const client_options& options, const client_environment& environment,
                           asio::any_io_executor executor, std::unique_ptr<core::stream> stream)
    : client_connection(options, environment, std::move(executor), std::move(stream)),
      tasks_(executor_),
      deadline_(environment_.watchdog.watch(executor_, [this] { expire(); })),
      authority_(authority(options)),
      last_use_(environment.watchdog.now()),
      last_heard_(last_use_) {
  const auto callbacks = callbacks_of<http2_client>();
  nghttp2_session* raw = nullptr;
  if (nghttp2_session_client_new(&raw, callbacks.get(), this) != 0) throw std::bad_alloc();
  session_.reset(raw);
  const std::array settings{nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
  nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
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
  stream_->shutdown();
  tasks_.cancel();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await tasks_.join();
  boost::system::error_code ignored;
  stream_->socket().close(ignored);
  if (failure) std::rethrow_exception(failure);
}

asio::awaitable<void> http2_client::read_answers() {
  deadline_.arm(environment_.watchdog.now() + options_.limits.exchange);
  in_.resize(read_size);
  flush();
  while (!ended_) {
    const auto got = stream_->read({in_.data(), in_.size()});
    if (got.error) break;
    if (got.bytes > 0) {
      last_heard_ = environment_.watchdog.now();
      const auto used = nghttp2_session_mem_recv(
          session_.get(), reinterpret_cast<const std::uint8_t*>(in_.data()), got.bytes);
      if (used < 0) break;
      continue;
    }
    flush();
    if (nghttp2_session_want_read(session_.get()) == 0 &&
        nghttp2_session_want_write(session_.get()) == 0) {
      break;
    }
    if (ended_) break;
    co_await core::ready(stream_->socket(), got.wants);
  }
}

asio::awaitable<boost::system::error_code> http2_client::exchange(const request& what,
                                                                  response& into) {
  if (ended_) co_return client_error::not_processed;
  call one(executor_, into);
  one.body.rest = what.body;
  one.due = environment_.watchdog.now() + options_.limits.exchange;
  std::array<char, 24> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), what.body.size()).ptr;
  std::array<nghttp2_nv, 16> nv;
  std::size_t n = 0;
  nv[n++] = borrow_field(":method", what.method);
  nv[n++] = borrow_field(":scheme", "https");
  nv[n++] = borrow_field(":authority", authority_);
  nv[n++] = borrow_field(":path", what.target);
  nv[n++] = borrow_field("content-length", {digits.data(), end});
  for (std::size_t i = 0; i < what.headers.size() && n < nv.size(); ++i) {
    const auto field = what.headers[i];
    nv[n++] = borrow_field(field.name, field.value);
  }
  const nghttp2_data_provider provider{{.ptr = &one.body}, &outgoing_body::read};
  one.id = nghttp2_submit_request(session_.get(), nullptr, nv.data(), n,
                                  what.body.empty() ? nullptr : &provider, &one);
  if (one.id < 0) {
    // Stream ids are used up, or the peer said goodbye: the next connection takes it.
    retired_ = true;
    co_return client_error::not_processed;
  }
  one.self = calls_.insert(calls_.end(), &one);
  last_use_ = environment_.watchdog.now();
  push_soon();
  if (!one.finished) co_await one.done.wait();
  if (!one.finished) give_up(one, client_error::shut_down);
  co_return one.error;
}

void http2_client::finish(call& one, boost::system::error_code error) {
  one.finished = true;
  one.error = error;
  calls_.erase(one.self);
  nghttp2_session_set_stream_user_data(session_.get(), one.id, nullptr);
  one.done.set();
}

void http2_client::give_up(call& one, boost::system::error_code error) {
  const auto id = one.id;
  finish(one, error);
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
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
  if (one->into.body.size() + bytes.size() > options_.limits.body_bytes) {
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
      if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) break;
      if (auto* one = find(frame.hd.stream_id)) one->whole = true;
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

/// Gives up what is overdue. An upstream that was silent all that time is left.
void http2_client::expire() {
  const auto now = environment_.watchdog.now();
  const auto& limits = options_.limits;
  bool overdue = false;
  auto next = now + limits.idle;
  const auto current = calls_;
  for (auto* one : current) {
    if (one->due > now) {
      next = std::min(next, one->due);
      continue;
    }
    overdue = true;
    give_up(*one, client_error::timed_out);
  }
  if (overdue && last_heard_ + limits.exchange <= now) end();
  if (calls_.empty() && slots_ == 0 && last_use_ + limits.idle <= now) end();
  deadline_.arm(std::min(next, now + limits.exchange));
  push();
}

void http2_client::flush() {
  if (write_blocked_) return;
  const auto put = out_.write(session_.get(), *stream_);
  if (put.error) {
    ended_ = true;
  } else if (put.wants != core::want::nothing) {
    write_blocked_ = true;
    tasks_.spawn(write_when_possible());
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
