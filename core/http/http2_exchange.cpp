#include "rw/core/http/buffers.hpp"
#include "rw/core/http/http2_connection.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <charconv>

namespace rw::http {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kept_stream_body =
    8 * 1024;                               // larger buffers are not kept for the next exchange
constexpr std::size_t kept_exchanges = 64;  // nor more of them, by a thread

}  // namespace

int http2_connection::flood() {
  shared_->note(refusal::flood, peer_.address);
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

std::list<http2_connection::exchange>& http2_connection::spare() {
  thread_local std::list<exchange> kept;
  return kept;
}

void http2_connection::pin(exchange& exchange, bool pinned) noexcept {
  if (std::exchange(exchange.pinned, pinned) == pinned) return;
  pinned_ += pinned ? 1 : static_cast<std::size_t>(-1);
}

int http2_connection::on_begin_headers(const nghttp2_frame& frame) {
  in_block_ = true;
  if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  if (live_.size() >= 2 * shared_->options.limits.streams) return flood();
  if (spare().empty()) spare().emplace_front();
  live_.splice(live_.end(), spare(), spare().begin());
  auto& added = live_.back();
  added.self = std::prev(live_.end());
  added.id = frame.hd.stream_id;
  added.progress = body_progress(shared_->now());
  added.due = shared_->now() + shared_->options.limits.header;
  look_at(added.due);
  added.from.peer = peer_;
  nghttp2_session_set_stream_user_data(session_.get(), added.id, &added);
  return 0;
}

int http2_connection::on_header(const nghttp2_frame& frame, std::string_view name,
                                std::string_view value) {
  auto* exchange = find(frame.hd.stream_id);
  if (exchange == nullptr || exchange->headers_done) return 0;  // trailers are of no use here
  auto& from = exchange->from;
  const auto limit = shared_->options.limits.header_bytes;
  const auto more = name.size() + value.size();
  if (!exchange->responded && from.headers.bytes() + from.target.size() + more + 32 > limit) {
    refuse(*exchange, 431, "the header is too large", refusal::header_size);
  }
  if (exchange->responded) {
    // The rest is decoded by nghttp2 and thrown away; a header bomb ends the connection.
    exchange->body_limit += more;
    return exchange->body_limit > 16 * limit ? flood() : 0;
  }
  if (name == ":method") {
    if (value.size() > longest_method) {
      refuse(*exchange, 501, "the method is not known here", refusal::malformed);
      return 0;
    }
    from.method = value;
  } else if (name == ":path") {
    from.target = value;
  } else if (name == ":authority") {
    from.headers.add("host", value);
  } else if (name[0] != ':') {
    from.headers.add(name, value);
  }
  charge(*exchange);
  return 0;
}

int http2_connection::on_frame(const nghttp2_frame& frame) {
  auto* exchange = find(frame.hd.stream_id);
  in_block_ = false;
  switch (frame.hd.type) {
    case NGHTTP2_HEADERS:
      if (exchange != nullptr && !exchange->headers_done) on_headers_done(*exchange);
      [[fallthrough]];
    case NGHTTP2_DATA:
      if (exchange != nullptr && (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0)
        on_complete(*exchange);
      break;
    default:
      break;
  }
  return 0;
}

void http2_connection::on_headers_done(exchange& exchange) {
  exchange.headers_done = true;
  exchange.progress.begun = shared_->now();
  exchange.due = exchange.progress.due(0, exchange.progress.begun, shared_->options.limits);
  look_at(exchange.due);
  if (exchange.responded) return;
  exchange.body_limit = shared_->body_limit(exchange.from);
  const auto text = exchange.from.headers.get("content-length");
  std::size_t length = 0;
  std::from_chars(text.data(), text.data() + text.size(), length);
  exchange.expected = length > 0 ? length : exchange.body_limit;
  if (length > exchange.body_limit) {
    refuse(exchange, 413, "the body is larger than this path accepts", refusal::body_size);
  }
}

int http2_connection::on_data(std::int32_t id, std::string_view bytes) {
  auto* exchange = find(id);
  if (exchange == nullptr || exchange->responded) return 0;
  auto& body = exchange->from.body;
  if (body.size() + bytes.size() > exchange->body_limit) {
    refuse(*exchange, 413, "the body is larger than this path accepts", refusal::body_size);
    return 0;
  }
  append_body(body, bytes, exchange->expected);
  exchange->due = exchange->progress.due(body.size(), shared_->now(), shared_->options.limits);
  charge(*exchange);
  return 0;
}

void http2_connection::on_complete(exchange& exchange) {
  exchange.complete = true;
  if (exchange.responded) return;
  last_request_ = shared_->now();
  any_request_ = true;
  append_body(exchange.from.body, {}, 0);
  auto rest = shared_->respond(exchange.from, exchange.into);
  if (rest.valid()) {
    exchange.running = true;
    pin(exchange, true);
    tasks_.spawn(finish(&exchange, std::move(rest)));
    return;
  }
  respond(exchange);
}

/// Runs the part of the handler that waits.
asio::awaitable<void> http2_connection::finish(exchange* exchange, asio::awaitable<void> rest) {
  co_await std::move(rest);
  exchange->running = false;
  pin(*exchange, false);
  if (exchange->closed) {
    recycle(*exchange);
    co_return;
  }
  respond(*exchange);
  // Not from here: this may still be within nghttp2's own call, if the handler did not wait after
  // all.
  co_await asio::post(executor_, asio::use_awaitable);
  push();
}

void http2_connection::refuse(exchange& exchange, unsigned status, std::string_view line,
                              refusal reason) {
  shared_->note(reason, peer_.address, &exchange.from, status, line);
  std::string().swap(exchange.from.body);
  exchange.from.headers.clear();
  exchange.body_limit = 0;
  exchange.into.clear();
  exchange.into.text(status, line);
  if (reason == refusal::memory)
    exchange.into.body.clear();  // so that it does not wait for a window
  respond(exchange);
}

void http2_connection::respond(exchange& current) {
  current.responded = true;
  charge(current);
  current.due = shared_->now() + shared_->options.limits.write;
  look_at(current.due);
  const auto number = [](auto& into, std::size_t value) {
    const auto end = std::to_chars(into.data(), into.data() + into.size(), value).ptr;
    return std::string_view(into.data(), end);
  };
  if (current.into.status == 0) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, current.id,
                              NGHTTP2_INTERNAL_ERROR);
    return;
  }
  if (current.complete) shared_->requests_http2.Increment();
  if (current.into.last || shared_->releasing) {
    const auto latest = nghttp2_session_get_last_proc_stream_id(session_.get());
    nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, std::max(latest, current.id),
                          NGHTTP2_NO_ERROR, nullptr, 0);
  }
  const bool head = current.from.method == "HEAD";
  if (head) current.into.source.reset();
  borrowed_fields fields;
  fields.add(":status", number(current.status, current.into.status));
  if (!current.into.source && current.into.status != 204 && current.into.status != 304) {
    fields.add("content-length", number(current.length, current.into.body.size()));
  }
  current.date = http_date(std::chrono::system_clock::now());
  fields.add("date", current.date);
  fields.add(current.into.headers);
  if (current.into.source) {
    open(current);
    const nghttp2_data_provider provider{
        {.ptr = &current},
        [](nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t room,
           std::uint32_t* flags, nghttp2_data_source* source, void* user) {
          return static_cast<http2_connection*>(user)->read_source(
              *static_cast<exchange*>(source->ptr), {reinterpret_cast<char*>(into), room}, *flags);
        }};
    nghttp2_submit_response(session_.get(), current.id, fields.data(), fields.size(), &provider);
    return;
  }
  current.body.rest = current.into.body;
  const nghttp2_data_provider provider{{.ptr = &current.body}, &outgoing_body::read};
  const bool empty = head || current.into.body.empty();
  nghttp2_submit_response(session_.get(), current.id, fields.data(), fields.size(),
                          empty ? nullptr : &provider);
}

/// What a source calls. Weak, and by the stream's number: that may be when connection or stream
/// have gone.
std::function<void()> http2_connection::waker(std::int32_t id) {
  return [weak = weak_from_this(), this, id] {
    const auto self = weak.lock();
    if (!self || broken_) return;
    auto* const exchange = find(id);
    if (exchange == nullptr || !exchange->source) return;
    exchange->source.set_ready();
    go_on(*exchange);
  };
}

void http2_connection::open(exchange& exchange) {
  pin(exchange, true);
  exchange.source.open(std::move(exchange.into.source), waker(exchange.id));
  if (draining_) drain(exchange);
}

/// The source has something to say. From now on the client has the write limit for each piece.
void http2_connection::go_on(exchange& exchange) {
  const auto limit = std::min(drained_by_, shared_->now() + shared_->options.limits.write);
  if (exchange.due > limit) exchange.due = limit;
  look_at(exchange.due);
  if (!std::exchange(exchange.deferred, false)) return;
  nghttp2_session_resume_data(session_.get(), exchange.id);
  push_soon();
}

void http2_connection::drain(exchange& exchange) {
  if (!exchange.source) return;
  exchange.source.drain();
  exchange.due = std::min(exchange.due, drained_by_);
  look_at(exchange.due);
  if (exchange.source.ready()) go_on(exchange);
}

/// For nghttp2: the next piece of a source's body.
ssize_t http2_connection::read_source(exchange& exchange, std::span<char> into,
                                      std::uint32_t& flags) {
  using state = body_source::state;
  exchange.due = std::min(drained_by_, shared_->now() + shared_->options.limits.write);
  std::size_t given = 0;
  const auto give = [&](std::string_view bytes) {
    const auto n = bytes.copy(into.data() + given, into.size() - given);
    given += n;
    return bytes.substr(n);
  };
  if (!exchange.left.empty()) {
    exchange.left = give(exchange.left);
    if (!exchange.left.empty()) return static_cast<ssize_t>(given);
    exchange.left.shrink_to_fit();
  }
  text_buffer piece;
  const auto now = exchange.source.read(piece.text, into.size() - given);
  if (const auto thrown = exchange.source.failure())
    shared_->failed(thrown, exchange.from, nullptr);
  exchange.left = give(piece.text);
  if (!exchange.left.empty()) return static_cast<ssize_t>(given);
  if (now == state::end) flags |= NGHTTP2_DATA_FLAG_EOF;
  if (now == state::pending) {
    // Nothing that the client has to take: it may last for ever.
    exchange.due = drained_by_;
    if (given == 0) {
      exchange.deferred = true;
      if (exchange.source.ready()) asio::post(executor_, waker(exchange.id));
      return NGHTTP2_ERR_DEFERRED;
    }
  }
  if (now == state::broken && given == 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  return static_cast<ssize_t>(given);
}

int http2_connection::on_frame_sent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR &&
      !over_budget_) {
    // nghttp2 says "internal error" where a client resets streams too fast.
    const bool flooded = frame.goaway.error_code == NGHTTP2_ENHANCE_YOUR_CALM ||
                         frame.goaway.error_code == NGHTTP2_INTERNAL_ERROR;
    shared_->note(flooded ? refusal::flood : refusal::protocol, peer_.address);
  }
  if (frame.hd.type == NGHTTP2_RST_STREAM) {
    // What nghttp2 finds wrong with one stream.
    if (frame.rst_stream.error_code == NGHTTP2_REFUSED_STREAM) {
      shared_->note(refusal::streams, peer_.address);
    } else if (frame.rst_stream.error_code == NGHTTP2_PROTOCOL_ERROR ||
               frame.rst_stream.error_code == NGHTTP2_FLOW_CONTROL_ERROR) {
      shared_->note(refusal::malformed, peer_.address);
    }
    return 0;
  }
  if (frame.hd.type == NGHTTP2_DATA) budget_.sent_data();
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  if (frame.hd.type != NGHTTP2_DATA && frame.hd.type != NGHTTP2_HEADERS) return 0;
  const auto* exchange = find(frame.hd.stream_id);
  if (exchange != nullptr && !exchange->complete) {
    // Answered before the request was whole: tell the client to stop sending it.
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, exchange->id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

int http2_connection::on_stream_close(std::int32_t id, std::uint32_t) {
  auto* exchange = find(id);
  if (exchange == nullptr) return 0;
  exchange->closed = true;
  if (!exchange->running) recycle(*exchange);
  return 0;
}

void http2_connection::recycle(exchange& exchange) {
  const bool large = exchange.from.body.capacity() > kept_stream_body ||
                     exchange.into.body.capacity() > kept_stream_body;
  pin(exchange, false);
  held_ -= std::exchange(exchange.held, 0);
  exchange.source.close();
  if (large || broken_ || spare().size() >= kept_exchanges) {
    live_.erase(exchange.self);
    return;
  }
  exchange.from.clear();
  exchange.into.clear();
  exchange.left.clear();
  exchange.body_limit = 0;
  exchange.headers_done = exchange.responded = exchange.complete = false;
  exchange.running = exchange.closed = exchange.deferred = exchange.evicted = false;
  spare().splice(spare().begin(), live_, exchange.self);
}

}  // namespace rw::http
