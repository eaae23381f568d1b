#include "rw/core/http/http2_client.hpp"

#include "rw/core/http/buffers.hpp"
#include "rw/core/text.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace rw::http {
namespace {

namespace asio = boost::asio;

// What the upstream may send before it hears from us. What comes is taken at once, so a window
// holds no memory here; one that is too small costs a round trip for each window's length.
constexpr std::uint32_t stream_window = 1u << 20;
constexpr std::int32_t client_window = 8 << 20;
constexpr std::size_t kept_calls = 16;

}  // namespace

http2_client::http2_client(const client_options& options, const client_environment& environment,
                           asio::any_io_executor executor, std::unique_ptr<core::stream> stream)
    : client_connection(options, environment, std::move(executor), std::move(stream)),
      tasks_(executor_),
      deadline_(environment_.watchdog->watch(executor_, [this] { expire(); })),
      authority_(authority(options, stream_->encrypted())),
      last_use_(environment.watchdog->now()),
      last_heard_(last_use_) {
  const auto callbacks = callbacks_of<http2_client>();
  nghttp2_session* raw = nullptr;
  if (nghttp2_session_client_new3(&raw, callbacks.get(), this, nullptr, out_.memory()) != 0)
    throw std::bad_alloc();
  session_.reset(raw);
  const std::array settings{
      nghttp2_settings_entry{NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, options.limits.header_table},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      nghttp2_settings_entry{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window}};
  nghttp2_submit_settings(raw, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
  nghttp2_session_set_local_window_size(raw, NGHTTP2_FLAG_NONE, 0, client_window);
}

asio::awaitable<void> http2_client::run() {
  std::exception_ptr failure;
  try {
    co_await read_responses();
  } catch (...) {
    failure = std::current_exception();
  }
  ended_ = true;
  finish_all(failure != nullptr);
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

asio::awaitable<void> http2_client::read_responses() {
  look_at(environment_.watchdog->now() + options_.limits.exchange);
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
    if (!budget_.take({buffer.bytes().data(), got.bytes}, last_heard_)) {
      got.error = client_error::protocol;
      leave_flood();
      break;
    }
    const auto used = nghttp2_session_mem_recv(
        session_.get(), reinterpret_cast<const std::uint8_t*>(buffer.bytes().data()), got.bytes);
    if (used < 0) got.error = client_error::protocol;
    if (got.drained) got.wants = core::want::read;
    if (used < 0 || got.drained) break;
  }
  return got;
}

void http2_client::leave_flood() {
  environment_.log.warning(
      "the upstream sends too many frames that carry nothing; its connection is given up",
      {{"client", options_.name}, {"host", options_.host}});
  flooded_ = ended_ = true;
  nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
}

/// Not part of the coroutine below, whose frame lives as long as a watch does. The fields are
/// borrowed until they are written: from `request` and from `call`.
bool http2_client::submit(call& call, const request& request) {
  auto& digits = call.content_length;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), request.body.size()).ptr;
  borrowed_fields fields;
  fields.add(":method", request.method);
  fields.add(":scheme", stream_->encrypted() ? "https" : "http");
  fields.add(":authority", authority_);
  fields.add(":path", request.target);
  fields.add("content-length", {digits.data(), end});
  fields.add(request.headers);
  const nghttp2_data_provider provider{{.ptr = &call.body}, &outgoing_body::read};
  const auto id = nghttp2_submit_request(session_.get(), nullptr, fields.data(), fields.size(),
                                         request.body.empty() ? nullptr : &provider, &call);
  if (id < 0) return false;
  call.id = id;
  budget_.opened_stream();
  return true;
}

/// False if the connection does not take it: the next one does.
bool http2_client::start(call& call, const request& request) {
  if (ended_ || calls_.size() >= streams()) return false;
  call.body.rest = request.body;
  if (!submit(call, request)) {
    retired_ = true;  // stream ids are used up, or the peer said goodbye
    return false;
  }
  const bool is_known = std::ranges::find(permits_out_, call.permit) != permits_out_.end();
  if (call.permit && !is_known) permits_out_.push_back(call.permit);
  if (spare_calls_.empty()) spare_calls_.emplace_back();
  call.self = spare_calls_.begin();
  *call.self = &call;
  calls_.splice(calls_.end(), spare_calls_, call.self);
  last_use_ = environment_.watchdog->now();
  look_at(call.time.due());
  if (options_.limits.ping.count() > 0) look_at(last_use_ + options_.limits.ping);
  push_soon();
  return true;
}

asio::awaitable<boost::system::error_code> http2_client::exchange(const request* request,
                                                                  response* into,
                                                                  exchange_options options) {
  call call(*this, *into, options);
  if (!begin_for_coroutine(call, *request)) co_return client_error::not_processed;
  if (!call.finished) co_await call.done->wait();
  if (!call.finished) give_up(call, client_error::shut_down);
  co_return call.error;
}

asio::awaitable<boost::system::error_code> http2_client::open(
    const request* request, response* into, exchange_options options, client_slot* through,
    std::unique_ptr<opened_exchange>* rest) {
  auto made = std::make_unique<opened>(*this, *into, options);
  auto& call = made->pending;
  call.opens = true;
  if (!begin_for_coroutine(call, *request)) co_return client_error::not_processed;
  if (!call.finished) co_await call.done->wait();
  if (call.finished) co_return call.error;
  if (call.opens) co_return client_error::shut_down;  // cancelled
  call.into = nullptr;
  made->slot = std::move(*through);
  *rest = std::move(made);
  co_return boost::system::error_code();
}

std::unique_ptr<opened_exchange> http2_client::begin(const request& request, response& into,
                                                     exchange_options options,
                                                     client_slot::end_handler on_end,
                                                     client_slot& through) {
  auto made = std::make_unique<opened>(*this, into, options);
  made->pending.on_end = std::move(on_end);
  if (!start(made->pending, request)) return nullptr;
  made->slot = std::move(through);
  return made;
}

void http2_client::finish(call& call, boost::system::error_code error) {
  call.finished = true;
  call.error = error;
  last_use_ = environment_.watchdog->now();
  auto& spare = spare_calls_;
  spare.splice(spare.begin(), calls_, call.self);
  if (spare.size() > kept_calls) spare.pop_back();
  nghttp2_session_set_stream_user_data(session_.get(), call.id, nullptr);
  if (call.on_end) return std::exchange(call.on_end, nullptr)(error);  // which may destroy it
  if (call.into != nullptr && call.done) return call.done->set();
  if (call.sink != nullptr) call.sink->end(error);
}

/// The connection is at its end, closed from here or by the peer, and so is all that is under way.
void http2_client::finish_all(bool shut_down) {
  while (!calls_.empty()) {
    auto& call = *calls_.front();
    auto error = flooded_ ? client_error::protocol : client_error::closed;
    if (used_before_ && !call.any_response && !flooded_)
      error = client_error::reused_connection_closed;
    if (!begun(call)) error = client_error::not_processed;
    if (shut_down) error = client_error::shut_down;
    finish(call, error);
  }
}

/// The upstream allows fewer streams than were begun before it said so: what nghttp2 keeps back
/// until others have ended need not wait, another connection can take it.
void http2_client::return_queued() {
  std::size_t before = 0;
  const auto current = calls_;
  for (auto* call : current) {
    if (before++ >= streams() && !begun(*call)) give_up(*call, client_error::not_processed);
  }
}

/// Leaves the rest of the answer. What still comes of it is counted for flow control by nghttp2,
/// and thrown away.
void http2_client::give_up(call& call, boost::system::error_code error) {
  const auto id = call.id;
  finish(call, error);
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
  push_soon();
}

/// The upstream lives.
void http2_client::heard() {
  last_heard_ = environment_.watchdog->now();
  if (probed_until_ == core::time_point::max()) return;
  probed_until_ = core::time_point::max();
  look_at(last_heard_ + options_.limits.ping);
  if (std::exchange(suspected_, false)) changed();
}

/// The answer's head came, or a part of its body.
void http2_client::heard(call& call) {
  call.any_response = true;
  call.time.heard(environment_.watchdog->now());
  look_at(call.time.due());
}

int http2_client::on_header(const nghttp2_frame& frame, std::string_view name,
                            std::string_view value) {
  auto* call = find(frame.hd.stream_id);
  if (call == nullptr || call->into == nullptr) return 0;  // trailers of an opened one
  auto& into = *call->into;
  if (into.headers.bytes() + name.size() + value.size() > options_.limits.header_bytes) {
    give_up(*call, client_error::response_too_large);
    return 0;
  }
  if (name == ":status") {
    // An informational answer (1xx) is followed by the real one.
    into.status = core::parse_number<unsigned>(value).value_or(0);
    into.headers.clear();
    if (!is_status(into.status)) give_up(*call, client_error::protocol);
  } else {
    into.headers.add(name, value);
  }
  return 0;
}

int http2_client::on_data(std::int32_t id, std::string_view bytes) {
  auto* call = find(id);
  if (call == nullptr) return 0;
  heard(*call);
  if (call->streams()) {
    const bool more = call->sink->take(bytes);
    if (!more && !call->finished) give_up(*call, client_error::abandoned);
    return 0;
  }
  if (call->into->body.size() + bytes.size() > call->body_bytes) {
    give_up(*call, client_error::response_too_large);
    return 0;
  }
  call->into->body.append(bytes);
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
      settled_ = true;
      return_queued();
      changed();
      break;
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA:
      if (auto* call = find(frame.hd.stream_id)) {
        const bool begins = !call->any_response && call->streams();
        if (call->into == nullptr || call->into->status >= 200) heard(*call);
        if (begins) call->sink->begin();
        if (begins && std::exchange(call->opens, false)) call->done->set();
        call->whole = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        // An informational answer does not end a stream (RFC 9113, section 8.1).
        if (call->whole && call->into != nullptr && call->into->status < 200) {
          give_up(*call, client_error::protocol);
        }
      }
      break;
    default:
      break;
  }
  return 0;
}

int http2_client::on_stream_close(std::int32_t id, std::uint32_t code) {
  auto* call = find(id);
  if (call == nullptr) return 0;
  boost::system::error_code error;
  if (code == NGHTTP2_REFUSED_STREAM) {
    error = client_error::not_processed;
  } else if (!call->whole) {
    error = client_error::closed;
  } else {
    used_before_ = true;
  }
  finish(*call, error);
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
  const auto now = environment_.watchdog->now();
  const auto& limits = options_.limits;
  next_look_ = core::time_point::max();
  look_at(now + std::min(limits.idle, limits.exchange));
  bool overdue = false;
  const auto current = calls_;
  for (auto* call : current) {
    if (call->time.due() > now) {
      look_at(call->time.due());
      continue;
    }
    overdue = true;
    give_up(*call, client_error::timed_out);
  }
  look_for_life(now, overdue);
  if (calls_.empty() && slots_ == 0 && last_use_ + limits.idle <= now) end();
  push();
  out_.trim();  // after a PING, which may be all that a quiet connection ever sends
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
    end();  // first, so that none begins here meanwhile
    while (!calls_.empty()) finish(*calls_.front(), client_error::timed_out);
    return;
  }
  if (overdue && silent) {
    suspected_ = true;
    probe(now + std::min(limits.ping_response, limits.exchange));
  } else if (limits.ping.count() > 0 && last_heard_ + limits.ping <= now) {
    probe(now + limits.ping_response);
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

std::shared_ptr<client_connection> make_http2_client_connection(
    const client_options& options, const client_environment& environment,
    asio::any_io_executor executor, std::unique_ptr<core::stream> stream) {
  return std::make_shared<http2_client>(options, environment, std::move(executor),
                                        std::move(stream));
}

}  // namespace rw::http
