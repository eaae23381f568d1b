#include "rw/core/http/http1_connection.hpp"

#include "rw/core/http/buffers.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>

namespace rw::http {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;

namespace {

constexpr std::size_t kept_body = 16 * 1024;  // larger buffers are not kept for the next one

}  // namespace

http1_connection::http1_connection(accepted parts)
    : server_connection(std::move(parts)),
      deadline_(shared_->environment.watchdog->watch(executor_, [this] { expire(); })) {
  limit_ = [this](const request& head) { return shared_->body_limit(head); };
}

asio::awaitable<void> http1_connection::run() {
  while (open_) {
    const bool complete = co_await read_request();
    if (!complete) break;
    deadline_.disarm();
    auto rest = shared_->respond(request_, response_);
    if (rest.valid()) {
      account_->enter(account::phase::handling, shared_->now());
      // What the handler has begun is not thrown away because the server is cancelled meanwhile.
      co_await asio::this_coro::throw_if_cancelled(false);
      const bool flushed = co_await flush();
      co_await std::move(rest);
      co_await asio::this_coro::throw_if_cancelled(true);
      if (!flushed) open_ = false;
    }
    if (dropped_) break;
    if (response_.status == 0) {
      dropped_ = true;
      break;
    }
    shared_->requests_http1.Increment();
    open_ = open_ && parser_->keep_alive() && !shared_->draining;
    append_response();
    if (response_.source == nullptr && out_.size() <= answers_gathered) continue;
    const bool answered = co_await respond();
    if (!answered) break;
  }
  source_.close();
  if (!dropped_ || !out_.empty()) co_await flush();
  if (dropped_) co_return;
  phase_ = phase::closing;
  deadline_.disarm();
  co_await linger(refused_);
}

void http1_connection::drain() {
  if (source_) drain_source();
  if (phase_ != phase::idle) return;
  open_ = false;
  core::interrupt(stream_->socket());
}

void http1_connection::drop() {
  cut_off();
  open_ = false;
  out_.clear();
  out_begin_ = 0;
  nudge();
}

void http1_connection::evict(std::size_t bytes) {
  const bool unfinished = phase_ == phase::header || phase_ == phase::body;
  if (bytes > 0 && unfinished) {
    refuse(503, "too many large requests at once", refusal::memory);
    nudge();
    return;
  }
  evicted_ = bytes == 0;
  shared_->note(bytes > 0 ? refusal::memory : refusal::connections, peer_.address,
                phase_ == phase::idle ? nullptr : &request_);
  open_ = false;
  if (phase_ == phase::handling) return;  // its answer is its last
  if (phase_ != phase::idle) return drop();
  drain();
}

/// True once a whole request was read.
asio::awaitable<bool> http1_connection::read_request() {
  request_.clear();
  response_.clear();
  if (request_.body.capacity() > kept_body) give_back(request_.body);
  if (response_.body.capacity() > kept_body) give_back(response_.body);
  request_.peer = peer_;
  parser_.emplace(request_, limit_, shared_->options.limits.header_bytes);
  const auto& limits = shared_->options.limits;
  enter(phase::idle, any_request_ ? limits.idle : std::min(limits.header, limits.idle));
  any_request_ = true;
  bool complete = false;
  bool good = in_begin_ == input_.size() || parse({}, complete);
  while (good && !complete) {
    put();
    if (!out_.empty()) good = co_await flush();
    if (good) good = co_await receive(&complete);
  }
  co_return good;
}

/// Reads and parses what comes next. False: nothing more will come, or it was refused.
asio::awaitable<bool> http1_connection::receive(bool* complete) {
  for (;;) {
    core::io_result got{.wants = core::want::read};
    if (!std::exchange(drained_, false)) {
      read_buffer buffer;
      got = stream_->read(buffer.bytes());
      drained_ = got.drained && got.bytes > 0;
      if (got.bytes > 0 && !parse({buffer.bytes().data(), got.bytes}, *complete)) co_return false;
    }
    if (got.error) {
      // The client went away; worth counting only in the middle of something.
      if (phase_ != phase::idle && !dropped_ && !refused_) {
        shared_->note(refusal::vanished, peer_.address);
      }
      open_ = false;
      co_return false;
    }
    if (got.wants == core::want::nothing) {
      // A client that never pauses must not keep the others from their turn.
      if (++reads_in_a_row_ % reads_per_turn == 0) {
        co_await asio::post(executor_, asio::use_awaitable);
      }
      co_return !refused_;
    }
    reads_in_a_row_ = 0;
    if (phase_ == phase::idle) {
      if (shared_->draining || !open_) co_return false;
      rest();
    }
    if (!may_wait()) co_return refuse_late();
    const auto [error] = co_await core::ready(stream_->socket(), got.wants);
    if (error || !may_wait() || refused_) co_return refuse_late();
  }
}

/// The wait for more is over: by the deadline, or otherwise.
bool http1_connection::refuse_late() {
  if (refused_ || !expired_) return false;
  if (phase_ == phase::header) {
    refuse(408, "the request's header took too long", refusal::header_timeout);
  } else if (phase_ == phase::body) {
    refuse(408, "the request's body took too long", refusal::body_timeout);
  }
  return false;
}

/// The connection is idle, and holds no buffers.
void http1_connection::rest() {
  for (auto* const text : {&request_.body, &response_.body, &input_, &out_}) give_back(*text);
  in_begin_ = 0;
  account_->hold(0, shared_->now());
  account_->enter(account::phase::idle, shared_->now());
}

/// Keeps what the parser has left, which is all of `rest`, or the rest of `in_`.
void http1_connection::keep(std::string_view rest) {
  if (in_begin_ > 0 && in_begin_ == input_.size()) {
    input_.clear();
    in_begin_ = 0;
  }
  input_.append(rest);
}

/// Feeds the parser with what is left of earlier reads and `bytes` behind it. False: the request
/// was refused.
bool http1_connection::parse(std::string_view bytes, bool& complete) {
  if (phase_ == phase::idle) {
    // Empty lines before a request are passed over (RFC 9112, section 2.2), and begin none.
    const auto is_empty_line = [](char c) { return c == '\r' || c == '\n'; };
    while (in_begin_ < input_.size() && is_empty_line(input_[in_begin_])) ++in_begin_;
    if (in_begin_ == input_.size()) {
      while (!bytes.empty() && is_empty_line(bytes.front())) bytes.remove_prefix(1);
      if (bytes.empty()) return true;
    }
    enter(phase::header, shared_->options.limits.header);
    progress_ = body_progress(shared_->now());
    for (auto* const text : {&request_.body, &response_.body, &out_}) {
      if (text->capacity() < body_padding) *text = borrow_text();
    }
  }
  boost::beast::error_code error;
  if (in_begin_ == input_.size()) {
    keep(bytes.substr(feed(*parser_, bytes, error)));
  } else {
    if (in_begin_ > 0 && !bytes.empty()) {
      input_.erase(0, in_begin_);
      in_begin_ = 0;
    }
    input_.append(bytes);
    in_begin_ += feed(*parser_, std::string_view(input_).substr(in_begin_), error);
    keep({});
  }
  complete = parser_->is_done();
  // Beast's parser limits the header, but not a chunk's extensions or the trailers.
  if (!error && !complete && input_.size() - in_begin_ > shared_->options.limits.header_bytes) {
    error = beast_http::error::header_limit;
  }
  if (error) {
    refuse(error);
    return false;
  }
  if (complete) phase_ = phase::handling;
  return complete || wait_for_more();
}

/// Gives the rest of the request its time, asks for the body, and accounts for what is there. False
/// if that was too much.
bool http1_connection::wait_for_more() {
  const auto& limits = shared_->options.limits;
  if (parser_->is_header_done()) {
    if (phase_ == phase::header) {
      progress_.begun = shared_->now();
      if (parser_->expects_continue()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    }
    phase_ = phase::body;
    deadline_.arm(progress_.due(request_.body.size(), shared_->now(), limits));
  }
  account_->enter(account::phase::receiving, progress_.since);
  hold();
  return !refused_;
}

void http1_connection::hold() {
  account_->hold(input_.capacity() + out_.capacity() + request_.target.capacity() +
                     request_.headers.bytes() + request_.body.capacity() +
                     response_.body.capacity(),
                 shared_->now());
}

void http1_connection::refuse(const boost::system::error_code& error) {
  if (const auto status = parser_->refused_status(); status != 0) {
    refuse(status, parser_->refused_because(), refusal::malformed);
  } else if (error == beast_http::error::body_limit) {
    refuse(413, "the body is larger than this path accepts", refusal::body_size);
  } else if (error == beast_http::error::header_limit) {
    refuse(431, "the header is too large", refusal::header_size);
  } else if (error == beast_http::error::bad_version) {
    refuse(505, "only HTTP/1.1 and HTTP/1.0 are spoken here", refusal::malformed);
  } else {
    refuse(400, "not an HTTP request: " + error.message(), refusal::malformed);
  }
}

void http1_connection::refuse(unsigned status, std::string_view line, refusal reason) {
  open_ = false;
  refused_ = true;
  shared_->note(reason, peer_.address, &request_, status, line);
  response_.clear();
  response_.text(status, line);
  append_response();
  std::string().swap(request_.body);
  std::string().swap(input_);
  in_begin_ = 0;
  hold();
}

std::unique_ptr<server_connection> make_http1_connection(accepted parts) {
  return std::make_unique<http1_connection>(std::move(parts));
}

}  // namespace rw::http
