#include "rw/core/http/buffers.hpp"
#include "rw/core/http/http1_connection.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <charconv>

namespace rw::http {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kept_output = 16 * 1024;  // larger buffers are not kept for the next one
constexpr std::size_t pipelined_at_most = 16 * 1024;  // behind an answer that is still sent
constexpr unsigned pieces_per_turn = 16;              // then other connections get their turn

/// A body follows these answers, or could; the others end with their header (RFC 9110, section
/// 8.6).
bool has_length(unsigned status) {
  return status >= 200 && status != 204 && status != 304;
}

}  // namespace

void http1_connection::append_response() {
  // A client of HTTP/1.0 knows no chunks: the body ends with the connection.
  const bool chunked = response_.source != nullptr && parser_->version() >= 11;
  if ((response_.source != nullptr && !chunked) || response_.last || shared_->releasing) {
    open_ = false;
  }
  out_ += "HTTP/1.1 ";
  out_ += std::to_string(response_.status);
  out_ += ' ';
  out_ += reason_phrase(response_.status);
  response_.headers.append_lines(out_);
  out_ += "\r\ndate: ";
  out_ += http_date(std::chrono::system_clock::now());
  if (chunked) {
    out_ += "\r\ntransfer-encoding: chunked";
  } else if (response_.source == nullptr && has_length(response_.status)) {
    out_ += "\r\ncontent-length: ";
    out_ += std::to_string(response_.body.size());
  }
  if (!open_) out_ += "\r\nconnection: close";
  out_ += "\r\n\r\n";
  if (request_.method == "HEAD") {
    response_.source.reset();
  } else {
    out_ += response_.body;
  }
}

/// Sends what is gathered, and the answer's source. False: the client did not take it all.
asio::awaitable<bool> http1_connection::respond() {
  if (response_.source == nullptr) {
    const bool flushed = co_await flush();
    co_return flushed;
  }
  source_woken_ = std::make_unique<core::wake>(executor_);
  // Weak: whoever calls it may do so when the connection has gone.
  source_.open(std::move(response_.source), [weak = weak_from_this(), this] {
    const auto self = weak.lock();
    if (!self || !source_) return;
    source_.set_ready();
    if (phase_ == phase::streaming) nudge();
  });
  phase_ = phase::streaming;
  if (shared_->draining) drain_source();
  const bool sent = co_await send_source();
  source_.close();
  source_woken_.reset();
  source_due_ = core::time_point::max();
  co_return sent;
}

asio::awaitable<bool> http1_connection::send_source() {
  const bool chunked = parser_->version() >= 11;
  for (unsigned pieces = 1;; ++pieces) {
    const auto state = gather(chunked);
    if (const auto thrown = source_.failure()) shared_->failed(thrown, request_, nullptr);
    account_->enter(account::phase::handling, shared_->now());
    const bool flushed = co_await flush();
    if (!flushed) co_return false;
    if (state == body_source::state::end) co_return true;
    if (state == body_source::state::broken) dropped_ = true;
    if (dropped_ || !in_time()) co_return false;
    if (pieces % pieces_per_turn == 0) co_await asio::post(executor_, asio::use_awaitable);
    if (source_.ready()) continue;
    const bool on = co_await until_ready();
    if (!on) co_return false;
  }
}

/// Reads the source until there is enough for a write, or nothing more for now.
body_source::state http1_connection::gather(bool chunked) {
  for (;;) {
    text_buffer piece;
    const auto state = source_.read(piece.text, answers_gathered);
    if (!chunked) {
      out_ += piece.text;
    } else if (!piece.text.empty()) {
      char digits[24];
      out_.append(digits, std::to_chars(digits, digits + sizeof digits, piece.text.size(), 16).ptr);
      out_ += "\r\n";
      out_ += piece.text;
      out_ += "\r\n";
    }
    if (chunked && state == body_source::state::end) out_ += "0\r\n\r\n";
    if (state != body_source::state::more || out_.size() >= answers_gathered) return state;
  }
}

/// False if the server drains, and the source has not come to its end in time.
bool http1_connection::in_time() {
  if (!expired_) return true;
  shared_->note(refusal::write_timeout, peer_.address, &request_);
  dropped_ = true;
  return false;
}

/// Waits until there is something to read from the source. False: it is not worth while any more.
asio::awaitable<bool> http1_connection::until_ready() {
  give_back(out_);  // this may take hours
  account_->enter(account::phase::handling, shared_->now());
  while (!source_.ready()) {
    auto wants = core::want::nothing;
    if (!watch_client(wants) || dropped_ || !in_time()) co_return false;
    if (wants == core::want::nothing) {
      const auto cancelled = co_await source_woken_->wait();
      if (cancelled) co_return false;
    } else {
      co_await core::ready(stream_->socket(), wants);
    }
  }
  co_return true;
}

/// Looks whether the client is still there, and keeps what it sends meanwhile, up to a limit.
/// False: it has gone.
bool http1_connection::watch_client(core::want& wants) {
  while (input_.size() - in_begin_ < pipelined_at_most) {
    read_buffer buffer;
    const auto got = stream_->read(buffer.bytes());
    if (got.error) return false;
    wants = got.wants;
    if (wants != core::want::nothing) return true;
    keep({buffer.bytes().data(), got.bytes});
  }
  wants = core::want::nothing;
  return true;
}

/// The source is told, and has until then to come to its end.
void http1_connection::drain_source() {
  source_due_ = shared_->now() + shared_->options.limits.write;
  deadline_.arm(source_due_);
  source_.drain();
  nudge();
}

/// Goes on with what was being done before a write had to wait: its time is not used up by a client
/// that was slow to read.
void http1_connection::resume(phase before) {
  const auto& limits = shared_->options.limits;
  switch (before) {
    case phase::header:
      return enter(before, limits.header);
    case phase::body:
      progress_.begun = shared_->now();
      return enter(before, limits.body_grace);
    case phase::handling:
    case phase::streaming:
      phase_ = before;
      return deadline_.arm(source_due_);
    default:
      return enter(before, limits.idle);
  }
}

/// Hands the socket what is gathered, the answers to all pipelined requests that one read brought,
/// as far as it takes them.
core::io_result http1_connection::put() {
  core::io_result last;
  while (out_begin_ < out_.size() && !last.error && last.wants == core::want::nothing) {
    last = stream_->write({out_.data() + out_begin_, out_.size() - out_begin_});
    out_begin_ += last.bytes;
  }
  if (out_begin_ < out_.size()) return last;
  out_.clear();
  out_begin_ = 0;
  if (out_.capacity() > kept_output) std::string().swap(out_);
  return {};
}

/// Waits until the socket has taken all of it.
asio::awaitable<bool> http1_connection::flush() {
  const auto before = phase_;
  if (refused_ && !out_.empty()) expired_ = false;
  std::size_t waited_at = 0;
  for (;;) {
    const auto last = put();
    if (out_.empty()) break;
    if (!last.error) {
      // A source's pieces are given their time anew, an answer only once.
      const bool progress = before == phase::streaming && out_begin_ > waited_at;
      if (phase_ != phase::write || progress) enter(phase::write, shared_->options.limits.write);
      waited_at = out_begin_;
      account_->enter(account::phase::receiving, shared_->now());
      hold();
      if (may_wait()) {
        const auto [error] = co_await core::ready(stream_->socket(), last.wants);
        if (!error && may_wait()) continue;
      }
    }
    if (!dropped_) {
      if (last.error) shared_->note(refusal::vanished, peer_.address);
      if (!last.error && expired_) shared_->note(refusal::write_timeout, peer_.address, &request_);
    }
    out_.clear();  // nobody will take it
    out_begin_ = 0;
    open_ = refused_ = false;
    co_return false;
  }
  if (phase_ != before) resume(before);
  co_return true;
}

}  // namespace rw::http
