#include "core/http/parser.hpp"
#include "core/http/server_connection.hpp"
#include "core/ready.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/error.hpp>

#include <algorithm>
#include <charconv>
#include <optional>

namespace rw::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;

constexpr std::size_t read_size = 16 * 1024;    // one TLS record
constexpr std::size_t kept_output = 16 * 1024;  // larger buffers are not kept for the next one
constexpr std::size_t kept_body = 64 * 1024;    // larger buffers are not kept for the next one
constexpr unsigned reads_per_turn = 16;         // then other connections get their turn
constexpr std::size_t discarded_at_most = 256 * 1024;  // of what a refused client still sends

/// An HTTP/1.1 connection: one request at a time, pipelined ones answered in order.
class http1_connection final : public server_connection {
 public:
  http1_connection(std::shared_ptr<server_shared> shared, asio::any_io_executor executor,
                   std::unique_ptr<core::stream> stream, asio::ip::tcp::endpoint from)
      : server_connection(std::move(shared), std::move(executor), std::move(stream),
                          std::move(from)),
        budget_(*shared_),
        deadline_(shared_->environment.watchdog.watch(executor_, [this] { expire(); })) {
    peer_.certificate = stream_->peer_certificate();
    limit_ = [this](const request& head) { return shared_->answers.body_limit(head); };
  }

  asio::awaitable<void> run() override {
    while (open_) {
      const bool complete = co_await read_request();
      if (!complete) break;
      deadline_.disarm();
      bool flushed = true;
      auto rest = shared_->answers.handle(request_, response_);
      if (rest.valid()) {
        flushed = co_await flush();
        co_await std::move(rest);
      }
      shared_->counters.requests_http1.Increment();
      budget_.release();
      if (!flushed) break;
      open_ = parser_->keep_alive() && !shared_->draining;
      append_response();
      if (out_.size() > kept_output) flushed = co_await flush();
      if (!flushed) break;
    }
    co_await flush();
    if (refused_) co_await discard_rest();
    stream_->shutdown();
  }

  void drain() override {
    if (phase_ != phase::idle) return;
    open_ = false;
    core::interrupt(stream_->socket());
  }

 private:
  enum class phase : std::uint8_t { idle, header, body, handling, write, closing };

  void expire() {
    expired_ = true;
    core::interrupt(stream_->socket());
  }

  void enter(phase next, std::chrono::milliseconds limit) {
    phase_ = next;
    deadline_.arm(shared_->now() + limit);
  }

  /// Waits for the socket; false if that failed, came too late, or the connection is to end.
  asio::awaitable<bool> wait(core::want what) {
    if (expired_) co_return false;
    const auto error = co_await core::ready(stream_->socket(), what);
    co_return !error && !expired_;
  }

  asio::awaitable<bool> read_request();
  asio::awaitable<bool> fill();
  bool parse(bool& complete);
  bool begin_body();
  void refuse(unsigned status, std::string_view line, core::counter& reason);
  void refuse(const boost::system::error_code& error);
  void give_up(const boost::system::error_code& error);
  void append_response();
  asio::awaitable<bool> flush();
  asio::awaitable<void> discard_rest();

  body_budget budget_;
  core::deadline deadline_;
  request_parser::limit_source limit_;
  std::optional<request_parser> parser_;
  request request_;
  response response_;
  std::string in_;  ///< bytes read; parsed up to in_begin_, filled up to in_end_
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::string out_;
  std::size_t out_begin_ = 0;
  unsigned reads_in_a_row_ = 0;  ///< without waiting for the socket
  phase phase_ = phase::idle;
  bool any_request_ = false;
  bool open_ = true;
  bool expired_ = false;
  bool refused_ = false;
};

/// Reads more bytes. False: nothing more will come.
asio::awaitable<bool> http1_connection::fill() {
  if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
  if (in_begin_ > 0 && in_.size() - in_end_ < read_size) {
    in_.erase(0, in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  if (in_.size() - in_end_ < read_size) in_.resize(in_end_ + read_size);
  for (;;) {
    const auto got = stream_->read({in_.data() + in_end_, in_.size() - in_end_});
    if (got.error) {
      give_up(got.error);
      co_return false;
    }
    if (got.wants == core::want::nothing) {
      in_end_ += got.bytes;
      // A client that never pauses must not keep the others from their turn.
      if (++reads_in_a_row_ % reads_per_turn == 0) {
        co_await asio::post(executor_, asio::use_awaitable);
      }
      co_return true;
    }
    reads_in_a_row_ = 0;
    if (phase_ == phase::idle && (shared_->draining || !open_)) co_return false;
    const bool on = co_await wait(got.wants);
    if (on) continue;
    if (expired_ && phase_ == phase::header) {
      refuse(408, "the request's header took too long", shared_->counters.header_timeout);
    } else if (expired_ && phase_ == phase::body) {
      refuse(408, "the request's body took too long", shared_->counters.body_timeout);
    }
    co_return false;
  }
}

/// The client went away; worth counting only in the middle of something.
void http1_connection::give_up(const boost::system::error_code&) {
  if (phase_ != phase::idle) shared_->counters.vanished.Increment();
  open_ = false;
}

/// True once a whole request was read.
asio::awaitable<bool> http1_connection::read_request() {
  request_.clear();
  response_.clear();
  if (request_.body.capacity() > kept_body) request_.body.shrink_to_fit();
  request_.peer = peer_;
  parser_.emplace(request_, limit_, shared_->options.limits.header_bytes);
  const auto& limits = shared_->options.limits;
  enter(phase::idle, any_request_ ? limits.idle : std::min(limits.header, limits.idle));
  any_request_ = true;
  for (;;) {
    if (in_begin_ < in_end_) {
      bool complete = false;
      if (!parse(complete)) co_return false;
      if (complete) co_return true;
    }
    const bool flushed = co_await flush();
    if (!flushed) co_return false;
    const bool more = co_await fill();
    if (!more) co_return false;
  }
}

/// Feeds the parser. False: the request was refused.
bool http1_connection::parse(bool& complete) {
  if (phase_ == phase::idle) enter(phase::header, shared_->options.limits.header);
  boost::beast::error_code error;
  in_begin_ += feed(*parser_, {in_.data() + in_begin_, in_end_ - in_begin_}, error);
  complete = parser_->is_done();
  // Beast's parser limits the header, but not a chunk's extensions or the trailers.
  if (!error && !complete && in_end_ - in_begin_ > shared_->options.limits.header_bytes) {
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
    const auto room = length ? static_cast<std::size_t>(*length) : read_size;
    if (!budget_.take(room)) {
      refuse(503, "too many large requests at once", shared_->counters.memory);
      return false;
    }
    request_.body.reserve(room + body_padding);
    if (parser_->expects_continue()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  } else if (parser_->chunked() && request_.body.size() + read_size > held) {
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

void http1_connection::append_response() {
  const auto number = [this](std::size_t n) {
    char digits[24];
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
  };
  out_ += "HTTP/1.1 ";
  number(response_.status);
  out_ += ' ';
  out_ += reason_phrase(response_.status);
  for (std::size_t i = 0; i < response_.headers.size(); ++i) {
    const auto field = response_.headers[i];
    out_ += "\r\n";
    out_ += field.name;
    out_ += ": ";
    out_ += field.value;
  }
  out_ += "\r\ndate: ";
  out_ += http_date(std::chrono::system_clock::now());
  out_ += "\r\ncontent-length: ";
  number(response_.body.size());
  if (!open_) out_ += "\r\nconnection: close";
  out_ += "\r\n\r\n";
  if (request_.method != "HEAD") out_ += response_.body;
}

/// Sends what is gathered: the answers to all pipelined requests that one read brought.
asio::awaitable<bool> http1_connection::flush() {
  if (out_.empty()) co_return true;
  const auto before = phase_;
  if (refused_) expired_ = false;
  while (out_begin_ < out_.size()) {
    const auto put = stream_->write({out_.data() + out_begin_, out_.size() - out_begin_});
    out_begin_ += put.bytes;
    if (!put.error && put.wants == core::want::nothing) continue;
    if (!put.error) {
      if (phase_ != phase::write) enter(phase::write, shared_->options.limits.write);
      const bool on = co_await wait(put.wants);
      if (on) continue;
    }
    if (put.error) shared_->counters.vanished.Increment();
    if (!put.error && expired_) shared_->counters.write_timeout.Increment();
    out_.clear();  // nobody will take it
    out_begin_ = 0;
    open_ = refused_ = false;
    co_return false;
  }
  out_.clear();
  out_begin_ = 0;
  if (out_.capacity() > kept_output) out_.shrink_to_fit();
  if (phase_ != before) {
    // A phase's time is not used up by a client that was slow to read.
    const auto& limits = shared_->options.limits;
    enter(before, before == phase::body     ? limits.body
                  : before == phase::header ? limits.header
                                            : limits.idle);
  }
  co_return true;
}

/// A client that is still sending would lose the answer to a reset connection, so what it sends is
/// thrown away for a while (RFC 9112, section 9.6).
asio::awaitable<void> http1_connection::discard_rest() {
  stream_->shutdown();
  boost::system::error_code ignored;
  stream_->socket().shutdown(asio::socket_base::shutdown_send, ignored);
  expired_ = false;
  enter(phase::closing, std::chrono::seconds(1));
  in_.resize(read_size);
  for (std::size_t discarded = 0; discarded < discarded_at_most;) {
    const auto got = stream_->read({in_.data(), in_.size()});
    if (got.error) break;
    discarded += got.bytes;
    if (got.wants == core::want::nothing) continue;
    const bool on = co_await wait(got.wants);
    if (!on) break;
  }
}

}  // namespace

std::unique_ptr<server_connection> make_http1_connection(std::shared_ptr<server_shared> shared,
                                                         asio::any_io_executor executor,
                                                         std::unique_ptr<core::stream> stream,
                                                         asio::ip::tcp::endpoint from) {
  return std::make_unique<http1_connection>(std::move(shared), std::move(executor),
                                            std::move(stream), std::move(from));
}

}  // namespace rw::http
