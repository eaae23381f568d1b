#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/client_error.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/cache/watch_decoder.hpp"
#include "rw/k8s/client/client.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/system/error_code.hpp>

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace rw::k8s {

/// A watch that is under way: has what comes decoded, and knows how long it has lasted.
struct watch_attempt final : watch_sink {
  watch_attempt(boost::asio::any_io_executor executor, core::clock& time, watch_decoder with,
                std::function<void()> first, std::function<void()> after)
      : clock(time),
        decoder(std::move(with)),
        at_head(std::move(first)),
        after_bytes(std::move(after)),
        over(executor) {}

  void begin() override {
    if (began) return;
    began = clock.now();
    at_head();
  }
  bool take(std::string_view bytes) override {
    if (given_up) return false;
    begin();
    const bool go_on = decoder.feed(bytes);
    after_bytes();
    return go_on && !given_up;
  }
  void end(boost::system::error_code ended_by) override {
    if (ended_by != http::client_error::abandoned) error = ended_by;  // it had enough
    over.set();
  }
  /// Since its answer's head came: the time until then says nothing good of the server.
  std::optional<core::duration> lasted() const {
    return began ? std::optional(clock.now() - *began) : std::nullopt;
  }

  core::clock& clock;
  watch_decoder decoder;
  const std::function<void()> at_head;
  const std::function<void()> after_bytes;
  std::optional<core::time_point> began;
  boost::system::error_code error;  ///< that an opened one ended with
  core::wake over;                  ///< set when an opened one has ended, or is to be ended
  bool given_up = false;            ///< by `list_again`, or stalled
};

/// Makes an attempt known while it lasts.
struct watch_guard {
  watch_guard(watch_attempt*& to, watch_attempt& attempt) : current(to) { to = &attempt; }
  ~watch_guard() { current = nullptr; }
  watch_guard(const watch_guard&) = delete;
  watch_guard& operator=(const watch_guard&) = delete;

  watch_attempt*& current;
};

}  // namespace rw::k8s
