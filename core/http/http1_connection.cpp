#include "core/http/http1_connection.hpp"

#include "core/http/buffers.hpp"
#include "core/ready.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>

namespace rw::http {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;

namespace {

constexpr std::size_t first_room = 16 * 1024;  // for a body of unknown length
constexpr std::size_t kept_body = 16 * 1024;   // larger buffers are not kept for the next one
constexpr std::size_t kept_idle = 1024;        // nor these while the connection is idle
constexpr unsigned reads_per_turn = 16;        // then other connections get their turn

}  // namespace

http1_connection::http1_connection(std::shared_ptr<server_shared> shared,
                                   asio::any_io_executor executor,
                                   std::unique_ptr<core::stream> stream,
                                   asio::ip::tcp::endpoint from)
    : server_connection(std::move(shared), std::move(executor), std::move(stream), std::move(from)),
      budget_(*shared_),
      deadline_(shared_->environment.watchdog.watch(executor_, [this] { expire(); })) {
  peer_.certificate = stream_->peer_certificate();
  limit_ = [this](const request& head) { return shared_->answers.body_limit(head); };
}

asio::awaitable<void> http1_connection::run() {
  while (open_) {
    const bool complete = co_await read_request();
    if (!complete) break;
    deadline_.disarm();
    auto rest = shared_->answers.handle(request_, response_);
    if (rest.valid()) {
      const bool flushed = co_await flush();
      co_await std::move(rest);
      if (!flushed) open_ = false;
    }
    budget_.release();
    if (dropped_ || !open_) break;
    if (response_.status == 0) {
      dropped_ = true;
      break;
    }
    shared_->counters.requests_http1.Increment();
    open_ = parser_->keep_alive() && !shared_->draining;
    append_response();
    if (response_.source == nullptr && out_.size() <= answers_gathered) continue;
    const bool answered = co_await answer();
    if (!answered) break;
  }
  source_.close();
  if (!dropped_ || !out_.empty()) co_await flush();
  if (dropped_) co_return;
  if (refused_) co_await discard_rest();
  stream_->shutdown();
}

void http1_connection::drain() {
  if (source_) drain_source();
  if (phase_ != phase::idle) return;
  open_ = false;
  core::interrupt(stream_->socket());
}

void http1_connection::drop() {
  dropped_ = true;
  open_ = false;
  out_.clear();
  out_begin_ = 0;
  // Not closed: its number could be another's by the time `run` comes to its end.
  boost::system::error_code ignored;
  stream_->socket().shutdown(asio::socket_base::shutdown_both, ignored);
  nudge();
}

asio::awaitable<bool> http1_connection::wait(core::want what) {
  if (expired_ || dropped_) co_return false;
  const auto error = co_await core::ready(stream_->socket(), what);
  co_return !error && !expired_ && !dropped_;
}

/// True once a whole request was read.
asio::awaitable<bool> http1_connection::read_request() {
  request_.clear();
  response_.clear();
  if (request_.body.capacity() > kept_body) std::string().swap(request_.body);
  if (response_.body.capacity() > kept_body) std::string().swap(response_.body);
  request_.peer = peer_;
  parser_.emplace(request_, limit_, shared_->options.limits.header_bytes);
  const auto& limits = shared_->options.limits;
  enter(phase::idle, any_request_ ? limits.idle : std::min(limits.header, limits.idle));
  any_request_ = true;
  bool complete = false;
  bool good = in_begin_ == in_.size() || parse({}, complete);
  while (good && !complete) {
    if (!out_.empty()) good = co_await flush();
    if (good) good = co_await receive(&complete);
  }
  co_return good;
}

/// Reads and parses what comes next. False: nothing more will come, or it was refused.
asio::awaitable<bool> http1_connection::receive(bool* complete) {
  for (;;) {
    core::io_result got;
    {
      read_buffer buffer;
      got = stream_->read(buffer.bytes());
      if (got.bytes > 0 && !parse({buffer.bytes().data(), got.bytes}, *complete)) co_return false;
    }
    if (got.error) {
      // The client went away; worth counting only in the middle of something.
      if (phase_ != phase::idle && !dropped_) shared_->counters.vanished.Increment();
      open_ = false;
      co_return false;
    }
    if (got.wants == core::want::nothing) {
      // A client that never pauses must not keep the others from their turn.
      if (++reads_in_a_row_ % reads_per_turn == 0) {
        co_await asio::post(executor_, asio::use_awaitable);
      }
      co_return true;
    }
    reads_in_a_row_ = 0;
    if (phase_ == phase::idle) {
      if (shared_->draining || !open_) co_return false;
      if (out_.capacity() > kept_idle) std::string().swap(out_);
      if (in_.capacity() > kept_idle) std::string().swap(in_);
    }
    const bool on = co_await wait(got.wants);
    if (!on) co_return refuse_late();
  }
}

/// The wait for more is over: by the deadline, or otherwise.
bool http1_connection::refuse_late() {
  if (expired_ && phase_ == phase::header) {
    refuse(408, "the request's header took too long", shared_->counters.header_timeout);
  } else if (expired_ && phase_ == phase::body) {
    refuse(408, "the request's body took too long", shared_->counters.body_timeout);
  }
  return false;
}

/// Keeps what the parser has left, which is all of `rest`, or the rest of `in_`.
void http1_connection::keep(std::string_view rest) {
  if (in_begin_ > 0 && in_begin_ == in_.size()) {
    in_.clear();
    in_begin_ = 0;
  }
  in_.append(rest);
}

/// Feeds the parser with what is left of earlier reads and `bytes` behind it. False: the request
/// was refused.
bool http1_connection::parse(std::string_view bytes, bool& complete) {
  if (phase_ == phase::idle) enter(phase::header, shared_->options.limits.header);
  boost::beast::error_code error;
  if (in_begin_ == in_.size()) {
    keep(bytes.substr(feed(*parser_, bytes, error)));
  } else {
    if (in_begin_ > 0 && !bytes.empty()) {
      in_.erase(0, in_begin_);
      in_begin_ = 0;
    }
    in_.append(bytes);
    in_begin_ += feed(*parser_, std::string_view(in_).substr(in_begin_), error);
    keep({});
  }
  complete = parser_->is_done();
  // Beast's parser limits the header, but not a chunk's extensions or the trailers.
  if (!error && !complete && in_.size() - in_begin_ > shared_->options.limits.header_bytes) {
    error = beast_http::error::header_limit;
  }
  if (error) {
    refuse(error);
    return false;
  }
  if (complete) phase_ = phase::handling;
  if (!complete && parser_->is_header_done()) return begin_body();
  return true;
}

/// The header is there and the body is not yet: asks for it, and finds room for it.
bool http1_connection::begin_body() {
  const auto held = request_.body.capacity();
  if (phase_ == phase::header) {
    enter(phase::body, shared_->options.limits.body);
    const auto length = parser_->content_length();
    const auto room = length ? static_cast<std::size_t>(*length) : first_room;
    if (!budget_.take(room)) {
      refuse(503, "too many large requests at once", shared_->counters.memory);
      return false;
    }
    request_.body.reserve(room + body_padding);
    if (parser_->expects_continue()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  } else if (parser_->chunked() && request_.body.size() + read_buffer::size > held) {
    // Growing: double it, as the string itself would.
    if (!budget_.take(held)) {
      refuse(503, "too many large requests at once", shared_->counters.memory);
      return false;
    }
    request_.body.reserve(2 * held);
  }
  return true;
}

void http1_connection::refuse(const boost::system::error_code& error) {
  if (error == beast_http::error::body_limit) {
    refuse(413, "the body is larger than this path accepts", shared_->counters.body_size);
  } else if (error == beast_http::error::header_limit) {
    refuse(431, "the header is too large", shared_->counters.header_size);
  } else if (error == beast_http::error::bad_version) {
    refuse(505, "only HTTP/1.1 and HTTP/1.0 are spoken here", shared_->counters.malformed);
  } else {
    refuse(400, "not an HTTP request: " + error.message(), shared_->counters.malformed);
  }
}

void http1_connection::refuse(unsigned status, std::string_view line, core::counter& reason) {
  reason.Increment();
  shared_->answers.refused(status);
  budget_.release();
  response_.clear();
  response_.text(status, line);
  open_ = false;
  refused_ = true;
  append_response();
}

std::unique_ptr<server_connection> make_http1_connection(std::shared_ptr<server_shared> shared,
                                                         asio::any_io_executor executor,
                                                         std::unique_ptr<core::stream> stream,
                                                         asio::ip::tcp::endpoint from) {
  return std::make_unique<http1_connection>(std::move(shared), std::move(executor),
                                            std::move(stream), std::move(from));
}

}  // namespace rw::http
