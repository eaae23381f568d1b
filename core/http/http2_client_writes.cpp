// How bytes leave an HTTP/2 connection, and what holds them back: the permit of guarded requests.

#include "rw/core/http/http2_client.hpp"

namespace rw::http {

namespace asio = boost::asio;

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

}  // namespace rw::http
