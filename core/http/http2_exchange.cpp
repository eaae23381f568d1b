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
constexpr unsigned idle_frames = 10'000;    // PING, SETTINGS and the like between two requests

}  // namespace

int http2_connection::flood() {
  shared_->note(refusal::flood, peer_.address);
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

std::list<http2_connection::exchange>& http2_connection::spare() {
  thread_local std::list<exchange> kept;
  return kept;
}

void http2_connection::pin(exchange& one, bool pinned) noexcept {
  if (std::exchange(one.pinned, pinned) == pinned) return;
  pinned_ += pinned ? 1 : static_cast<std::size_t>(-1);
}

int http2_connection::on_begin_headers(const nghttp2_frame& frame) {
  in_block_ = true;
  if (frame.hd.type != NGHTTP2_HEADERS || frame.headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
  if (live_.size() >= 2 * shared_->options.limits.streams) return flood();
  if (spare().empty()) spare().emplace_front();
  live_.splice(live_.end(), spare(), spare().begin());
  auto& one = live_.back();
  one.self = std::prev(live_.end());
  one.id = frame.hd.stream_id;
  one.progress = body_progress(shared_->now());
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
  const auto more = name.size() + value.size();
  if (!one->answered && from.headers.bytes() + from.target.size() + more + 32 > limit) {
    refuse(*one, 431, "the header is too large", refusal::header_size);
  }
  if (one->answered) {
    // The rest is decoded by nghttp2 and thrown away; a header bomb ends the connection.
    one->body_limit += more;
    return one->body_limit > 16 * limit ? flood() : 0;
  }
  if (name == ":method") {
    if (value.size() > longest_method) {
      refuse(*one, 501, "the method is not known here", refusal::malformed);
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
  charge(*one);
  return 0;
}

int http2_connection::on_frame(const nghttp2_frame& frame) {
  auto* one = find(frame.hd.stream_id);
  in_block_ = false;
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
  one.progress.begun = shared_->now();
  one.due = one.progress.due(0, one.progress.begun, shared_->options.limits);
  look_at(one.due);
  if (one.answered) return;
  one.body_limit = shared_->body_limit(one.from);
  const auto text = one.from.headers.get("content-length");
  std::size_t length = 0;
  std::from_chars(text.data(), text.data() + text.size(), length);
  one.expected = length > 0 ? length : one.body_limit;
  if (length > one.body_limit) {
    refuse(one, 413, "the body is larger than this path accepts", refusal::body_size);
  }
}

int http2_connection::on_data(std::int32_t id, std::string_view bytes) {
  auto* one = find(id);
  if (one == nullptr || one->answered) return 0;
  auto& body = one->from.body;
  if (body.size() + bytes.size() > one->body_limit) {
    refuse(*one, 413, "the body is larger than this path accepts", refusal::body_size);
    return 0;
  }
  append_body(body, bytes, one->expected);
  one->due = one->progress.due(body.size(), shared_->now(), shared_->options.limits);
  charge(*one);
  return 0;
}

void http2_connection::on_complete(exchange& one) {
  one.complete = true;
  if (one.answered) return;
  frames_since_request_ = 0;
  last_request_ = shared_->now();
  any_request_ = true;
  append_body(one.from.body, {}, 0);
  auto rest = shared_->answer(one.from, one.into);
  if (rest.valid()) {
    one.running = true;
    pin(one, true);
    tasks_.spawn(finish(&one, std::move(rest)));
    return;
  }
  answer(one);
}

/// Runs the part of the handler that waits.
asio::awaitable<void> http2_connection::finish(exchange* one, asio::awaitable<void> rest) {
  co_await std::move(rest);
  one->running = false;
  pin(*one, false);
  if (one->closed) {
    recycle(*one);
    co_return;
  }
  answer(*one);
  // Not from here: this may still be within nghttp2's own call, if the handler did not wait after
  // all.
  co_await asio::post(executor_, asio::use_awaitable);
  push();
}

void http2_connection::refuse(exchange& one, unsigned status, std::string_view line,
                              refusal reason) {
  shared_->note(reason, peer_.address, &one.from, status, line);
  std::string().swap(one.from.body);
  one.from.headers.clear();
  one.body_limit = 0;
  one.into.clear();
  one.into.text(status, line);
  if (reason == refusal::memory) one.into.body.clear();  // so that it does not wait for a window
  answer(one);
}

void http2_connection::answer(exchange& one) {
  one.answered = true;
  charge(one);
  one.due = shared_->now() + shared_->options.limits.write;
  look_at(one.due);
  const auto number = [](auto& into, std::size_t value) {
    const auto end = std::to_chars(into.data(), into.data() + into.size(), value).ptr;
    return std::string_view(into.data(), end);
  };
  if (one.into.status == 0) {
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, one.id, NGHTTP2_INTERNAL_ERROR);
    return;
  }
  if (one.complete) shared_->requests_http2.Increment();
  if (one.into.last) {
    const auto latest = nghttp2_session_get_last_proc_stream_id(session_.get());
    nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, std::max(latest, one.id),
                          NGHTTP2_NO_ERROR, nullptr, 0);
  }
  const bool head = one.from.method == "HEAD";
  if (head) one.into.source.reset();
  borrowed_fields fields;
  fields.add(":status", number(one.status, one.into.status));
  if (!one.into.source && one.into.status != 204 && one.into.status != 304) {
    fields.add("content-length", number(one.length, one.into.body.size()));
  }
  one.date = http_date(std::chrono::system_clock::now());
  fields.add("date", one.date);
  fields.add(one.into.headers);
  if (one.into.source) {
    open(one);
    const nghttp2_data_provider provider{
        {.ptr = &one},
        [](nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t room,
           std::uint32_t* flags, nghttp2_data_source* source, void* user) {
          return static_cast<http2_connection*>(user)->read_source(
              *static_cast<exchange*>(source->ptr), {reinterpret_cast<char*>(into), room}, *flags);
        }};
    nghttp2_submit_response(session_.get(), one.id, fields.data(), fields.size(), &provider);
    return;
  }
  one.body.rest = one.into.body;
  const nghttp2_data_provider provider{{.ptr = &one.body}, &outgoing_body::read};
  const bool empty = head || one.into.body.empty();
  nghttp2_submit_response(session_.get(), one.id, fields.data(), fields.size(),
                          empty ? nullptr : &provider);
}

/// What a source calls. Weak, and by the stream's number: that may be when connection or stream
/// have gone.
std::function<void()> http2_connection::waker(std::int32_t id) {
  return [weak = weak_from_this(), this, id] {
    const auto self = weak.lock();
    if (!self || broken_) return;
    auto* const one = find(id);
    if (one == nullptr || !one->source) return;
    one->source.set_ready();
    go_on(*one);
  };
}

void http2_connection::open(exchange& one) {
  pin(one, true);
  one.source.open(std::move(one.into.source), waker(one.id));
  if (draining_) drain(one);
}

/// The source has something to say. From now on the client has the write limit for each piece.
void http2_connection::go_on(exchange& one) {
  const auto limit = std::min(drained_by_, shared_->now() + shared_->options.limits.write);
  if (one.due > limit) one.due = limit;
  look_at(one.due);
  if (!std::exchange(one.deferred, false)) return;
  nghttp2_session_resume_data(session_.get(), one.id);
  push_soon();
}

void http2_connection::drain(exchange& one) {
  if (!one.source) return;
  one.source.drain();
  one.due = std::min(one.due, drained_by_);
  look_at(one.due);
  if (one.source.ready()) go_on(one);
}

/// For nghttp2: the next piece of a source's body.
ssize_t http2_connection::read_source(exchange& one, std::span<char> into, std::uint32_t& flags) {
  using state = body_source::state;
  one.due = std::min(drained_by_, shared_->now() + shared_->options.limits.write);
  std::size_t given = 0;
  const auto give = [&](std::string_view bytes) {
    const auto n = bytes.copy(into.data() + given, into.size() - given);
    given += n;
    return bytes.substr(n);
  };
  if (!one.left.empty()) {
    one.left = give(one.left);
    if (!one.left.empty()) return static_cast<ssize_t>(given);
    one.left.shrink_to_fit();
  }
  text_buffer piece;
  const auto now = one.source.read(piece.text, into.size() - given);
  if (const auto thrown = one.source.failure()) shared_->failed(thrown, one.from, nullptr);
  one.left = give(piece.text);
  if (!one.left.empty()) return static_cast<ssize_t>(given);
  if (now == state::end) flags |= NGHTTP2_DATA_FLAG_EOF;
  if (now == state::pending) {
    // Nothing that the client has to take: it may last for ever.
    one.due = drained_by_;
    if (given == 0) {
      one.deferred = true;
      if (one.source.ready()) asio::post(executor_, waker(one.id));
      return NGHTTP2_ERR_DEFERRED;
    }
  }
  if (now == state::broken && given == 0) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  return static_cast<ssize_t>(given);
}

int http2_connection::on_frame_sent(const nghttp2_frame& frame) {
  if (frame.hd.type == NGHTTP2_GOAWAY && frame.goaway.error_code != NGHTTP2_NO_ERROR) {
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
  // A client may answer each of these by two WINDOW_UPDATE frames.
  if (frame.hd.type == NGHTTP2_DATA) frames_since_request_ -= std::min(frames_since_request_, 2u);
  if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
  if (frame.hd.type != NGHTTP2_DATA && frame.hd.type != NGHTTP2_HEADERS) return 0;
  const auto* one = find(frame.hd.stream_id);
  if (one != nullptr && !one->complete) {
    // Answered before the request was whole: tell the client to stop sending it.
    nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, one->id, NGHTTP2_NO_ERROR);
  }
  return 0;
}

int http2_connection::on_stream_close(std::int32_t id, std::uint32_t) {
  auto* one = find(id);
  if (one == nullptr) return 0;
  one->closed = true;
  if (!one->running) recycle(*one);
  return 0;
}

void http2_connection::recycle(exchange& one) {
  const bool large =
      one.from.body.capacity() > kept_stream_body || one.into.body.capacity() > kept_stream_body;
  pin(one, false);
  held_ -= std::exchange(one.held, 0);
  one.source.close();
  if (large || broken_ || spare().size() >= kept_exchanges) {
    live_.erase(one.self);
    return;
  }
  one.from.clear();
  one.into.clear();
  one.left.clear();
  one.body_limit = 0;
  one.headers_done = one.answered = one.complete = false;
  one.running = one.closed = one.deferred = one.evicted = false;
  spare().splice(spare().begin(), live_, one.self);
}

}  // namespace rw::http
