#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/watchdog.hpp"

#include <boost/asio/io_context.hpp>

#include "tests/fuzz/check.hpp"
#include "tests/unit/manual_clock.hpp"
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace rw::fuzz {

/// What a connection needs, on one thread and a clock that stands still: no deadline helps it to
/// an end.
struct surroundings {
  /// Runs all that is ready. An end is a promise: a connection that keeps itself busy without
  /// input is broken.
  void settle() {
    std::size_t steps = 0;
    while (context.poll() > 0) check(++steps < 100'000, "a connection comes to rest");
    context.restart();
  }

  boost::asio::io_context context{1};
  core::manual_clock clock;
  core::watchdog watchdog{clock, context.get_executor()};
  core::logger log{core::log_level::error, [](std::string_view) {}};
  core::metrics metrics;
};

/// The peer's end of a connection: sends bytes in pieces, and throws away what comes.
class fuzzed_peer {
 public:
  explicit fuzzed_peer(int socket) : socket_(socket) {}
  fuzzed_peer(const fuzzed_peer&) = delete;
  fuzzed_peer& operator=(const fuzzed_peer&) = delete;
  ~fuzzed_peer() { ::close(socket_); }

  /// `settle` lets the other end work after each piece of `step` bytes.
  void send(std::string_view bytes, std::size_t step, const std::function<void()>& settle) {
    while (!bytes.empty()) {
      const auto piece = bytes.substr(0, step);
      const auto sent = ::send(socket_, piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;  // the other end has hung up
      bytes.remove_prefix(sent < 0 ? 0 : static_cast<std::size_t>(sent));
      settle();
      receive();
    }
  }
  /// Sends the end, and reads until nothing comes any more.
  void end(const std::function<void()>& settle) {
    ::shutdown(socket_, SHUT_WR);
    do settle();
    while (receive() > 0);
  }

 private:
  std::size_t receive() {
    std::array<char, 65536> thrown_away{};
    std::size_t sum = 0;
    for (;;) {
      const auto got = ::recv(socket_, thrown_away.data(), thrown_away.size(), MSG_DONTWAIT);
      if (got <= 0) return sum;
      sum += static_cast<std::size_t>(got);
    }
  }

  const int socket_;
};

}  // namespace rw::fuzz
