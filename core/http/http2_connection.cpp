#include "rw/core/http/http2_connection.hpp"

#include "rw/core/http/buffers.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <functional>
#include <vector>

namespace rw::http {

namespace asio = boost::asio;

namespace {

constexpr std::size_t reads_per_flush = 8;  // a client that never pauses still gets answers
constexpr std::uint32_t connection_window = 1u << 20;
constexpr std::size_t acks_at_once = 100;          // that a client does not take
constexpr std::size_t uncharged = 16 * 1024;       // at most, within a turn
constexpr std::size_t largest_block = 128 * 1024;  // what nghttp2 keeps of one at most
constexpr std::size_t cost_of_stream = 1024;       // here and in nghttp2
constexpr std::size_t oldest_looked_at = 8;

}  // namespace

http2_connection::http2_connection(accepted parts)
    : server_connection(std::move(parts)),
      tasks_(executor_, [this](std::exception_ptr failure) { fail(failure); }),
      deadline_(shared_->environment.watchdog->watch(executor_, [this] { expire(); })),
      last_request_(shared_->now()) {
  const auto callbacks = callbacks_of<http2_connection>();
  const auto option = make_nghttp2_option();
  nghttp2_option_set_no_closed_streams(option.get(), 1);
  nghttp2_option_set_max_outbound_ack(option.get(), acks_at_once);
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
  const bool is_first = !std::exchange(broken_, true);
  // Whatever the handlers' tasks still do, nobody waits for these any more.
  for (auto& exchange : live_) exchange.source.close();
  tasks_.cancel();
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await tasks_.join();
  if (!failure) failure = failure_;
  if (!failure && is_first && !dropped_) co_await linger(false);
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
    settle();
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
    if (got.error && !live_.empty() && !dropped_) {
      shared_->note(refusal::vanished, peer_.address);
    }
    if (got.error || got.wants != core::want::nothing) break;
    if (!feed({buffer.bytes().data(), got.bytes})) {
      flush();  // why
      got.error = asio::error::invalid_argument;
      break;
    }
    if (!got.drained) continue;
    got.wants = core::want::read;
    break;
  }
  return got;
}

/// False: the connection is beyond repair.
bool http2_connection::feed(std::string_view bytes) {
  if (!budget_.take(bytes, shared_->now())) {
    over_budget_ = true;
    shared_->note(refusal::flood, peer_.address);
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM);
    return false;
  }
  const auto used = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  block_ = in_block_ ? std::min(block_ + bytes.size(), largest_block) : 0;
  if (used >= 0) return true;
  if (used == NGHTTP2_ERR_FLOODED || used == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS) {
    shared_->note(refusal::flood, peer_.address);
  } else if (used != NGHTTP2_ERR_CALLBACK_FAILURE) {
    shared_->note(refusal::protocol, peer_.address);
  }
  return false;
}

/// Writes what nghttp2 has to say, as far as the socket takes it.
void http2_connection::flush() {
  if (write_blocked_ || broken_) return;
  const auto put = out_.write(session_.get(), *stream_);
  if (put.error) {
    shared_->note(refusal::vanished, peer_.address);
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
  for (auto& exchange : live_) drain(exchange);
  // First a notice that leaves room for requests on their way, then at the next look the real end
  // (RFC 9113, section 6.8).
  nghttp2_submit_shutdown_notice(session_.get());
  look_at(shared_->now());
  push();
}

void http2_connection::drop() {
  cut_off();
  stop();
}

/// Sets what the exchange holds; in large steps also what the memory policy knows of it.
void http2_connection::charge(exchange& exchange) {
  const auto held = cost_of_stream + exchange.from.headers.bytes() + exchange.from.target.size() +
                    exchange.from.body.capacity() + exchange.into.body.capacity() +
                    exchange.left.capacity();
  held_ += held - std::exchange(exchange.held, held);
  if (held_ > account_->held() + uncharged) settle();
}

/// Tells the memory policy what the connection is at, and holds.
void http2_connection::settle() {
  using phase = account::phase;
  auto since = last_request_;
  for (std::size_t looked = 0; const auto& exchange : live_) {
    if (!exchange.pinned) since = exchange.progress.since;
    if (!exchange.pinned || ++looked == oldest_looked_at) break;
  }
  const bool receiving = pinned_ < live_.size();
  account_->enter(receiving       ? phase::receiving
                  : live_.empty() ? phase::idle
                                  : phase::handling,
                  since);
  account_->hold(held_ + block_ + out_.held(), shared_->now());
}

void http2_connection::evict(std::size_t bytes) {
  evicted_ = bytes == 0;
  if (bytes == 0) shared_->note(refusal::connections, peer_.address);
  if (broken_ || (bytes == 0 && write_blocked_)) return drop();
  push_soon();
  if (bytes == 0) {
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
    return;
  }
  std::vector<std::pair<double, exchange*>> candidates;
  const auto now = shared_->now() + std::chrono::milliseconds(1);
  for (auto& exchange : live_) {
    const auto still = (now - exchange.progress.since).count();
    if (!exchange.pinned)
      candidates.emplace_back(static_cast<double>(exchange.held) * still, &exchange);
  }
  std::ranges::sort(candidates, std::greater());
  for (std::size_t freed = 0; const auto& [score, candidate] : candidates) {
    if (freed >= bytes) return;
    if (std::exchange(candidate->evicted, true)) {
      if (write_blocked_) return drop();  // it does not even take the refusal
      continue;
    }
    freed += candidate->held;
    if (!candidate->responded) {
      refuse(*candidate, 503, "too many large requests at once", refusal::memory);
    } else {
      shared_->note(refusal::memory, peer_.address, &candidate->from);
      nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, candidate->id, NGHTTP2_CANCEL);
    }
  }
}

/// Looks at what is overdue.
void http2_connection::expire() {
  const auto now = shared_->now();
  const auto& limits = shared_->options.limits;
  next_look_ = core::time_point::max();
  if (write_blocked_ && blocked_since_ + limits.write <= now) {
    shared_->note(refusal::write_timeout, peer_.address);
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
  if (live_.empty()) expire_idle(now);
  for (auto& exchange : live_) {
    if (exchange.running) continue;  // the handler bounds its own time
    if (exchange.due > now) {
      look_at(exchange.due);
    } else {
      expire(exchange);
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
  if (!any_request_) shared_->note(refusal::header_timeout, peer_.address);
  nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
}

void http2_connection::expire(exchange& exchange) {
  exchange.due = core::time_point::max();
  if (!exchange.headers_done) {
    // Nothing else can come before the rest of the header, so the whole connection is stuck.
    shared_->note(refusal::header_timeout, peer_.address, &exchange.from);
    nghttp2_session_terminate_session(session_.get(), NGHTTP2_NO_ERROR);
    return;
  }
  shared_->note(exchange.responded ? refusal::write_timeout : refusal::body_timeout, peer_.address,
                &exchange.from);
  nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, exchange.id, NGHTTP2_CANCEL);
}

std::unique_ptr<server_connection> make_http2_connection(accepted parts) {
  return std::make_unique<http2_connection>(std::move(parts));
}

}  // namespace rw::http
