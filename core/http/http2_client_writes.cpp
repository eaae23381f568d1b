// How bytes leave an HTTP/2 connection, and what holds them back: permits of requests.

#include "rw/core/http/http2_client.hpp"

namespace rw::http {

namespace asio = boost::asio;

/// True if a part of the request is not framed yet, so that the upstream lacks its end.
bool http2_client::may_still_be_held_back(const call& call) const {
  const bool begun = nghttp2_session_find_stream(session_.get(), call.id) != nullptr;
  return !(begun && call.body.rest.empty());
}

/// Withdraws the requests of which something is still here, once their permit is gone. A stream
/// that is reset before its request is whole is a request that was not made.
void http2_client::hold_back() {
  if (all_open(permits_out_)) return;
  const auto current = calls_;
  for (auto* call : current) {
    const bool is_shut = call->permit && !call->permit->open();
    if (is_shut && may_still_be_held_back(*call)) give_up(*call, client_error::not_permitted);
  }
  // What is gathered already can't be told apart, and half of a TLS record can't be taken back.
  if (!out_.empty()) return drop();
  std::erase_if(permits_out_, [](const auto& permit) { return !permit->open(); });
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
  const auto put = out_.write(session_.get(), *stream_, permits_out_);
  if (put.error == client_error::not_permitted) {
    hold_back();
    drop();
  } else if (put.error) {
    ended_ = true;
  } else if (put.wants != core::want::nothing) {
    write_blocked_ = true;
    tasks_.spawn(write_when_possible());
  } else {
    std::erase_if(permits_out_, [this](const auto& permit) {
      return std::ranges::none_of(calls_, [&](auto* call) {
        return call->permit == permit && may_still_be_held_back(*call);
      });
    });
  }
}

asio::awaitable<void> http2_client::write_when_possible() {
  co_await core::ready(stream_->socket(), core::want::write);
  write_blocked_ = false;
  push();
}

}  // namespace rw::http
