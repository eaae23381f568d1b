#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/token_bucket.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace rw::http {

/// Bounds how many frames a peer of an HTTP/2 connection (RFC 9113) may send beside requests,
/// answers and what these carry: 13 bytes of WINDOW_UPDATE cost the receiver as much as a whole
/// event.
///
/// WINDOW_UPDATE and PRIORITY are bounded over the connection's life, as Envoy bounds them
/// (source/common/http/http2, `ProtocolConstraints`); PING, SETTINGS, GOAWAY, frames of unknown
/// types, and DATA frames without data by a rate; DATA frames that carry next to nothing by a
/// higher one. It reads the frames' heads from the received bytes itself, since nghttp2 tells
/// nothing of a frame that it ignores, such as DATA of a stream that has ended. Not thread-safe.
class frame_budget {
 public:
  enum class peer { client, server };

  static constexpr double rate = 100;       ///< a second
  static constexpr unsigned burst = 1'000;  ///< frames at once
  /// Likewise of DATA frames that carry less than `small`, or padding.
  static constexpr double small_rate = 10'000;
  static constexpr unsigned small_burst = 20'000;
  static constexpr std::size_t small = 64;  ///< bytes

  explicit frame_budget(peer sender) noexcept;

  /// Counts the frames that begin in `bytes`, the next that were received. False: the peer has sent
  /// more than it may.
  [[nodiscard]] bool take(std::string_view bytes, core::time_point now) noexcept;

  /// A stream was opened from here. Those that the peer opens are seen in its frames.
  void opened_stream() noexcept { ++streams_; }
  /// A DATA frame was sent, which the peer may answer.
  void sent_data() noexcept { ++data_sent_; }

 private:
  bool count(const unsigned char* head, core::time_point now) noexcept;

  static constexpr std::size_t head_size = 9;  // RFC 9113, section 4.1

  const peer sender_;
  core::token_bucket bucket_{rate, burst};
  core::token_bucket small_data_{small_rate, small_burst};
  std::uint64_t streams_ = 0;
  std::uint64_t data_sent_ = 0;
  std::uint64_t headers_ = 0;
  std::uint64_t ends_ = 0;
  std::uint64_t resets_ = 0;
  std::uint64_t priorities_ = 0;
  std::uint64_t window_updates_ = 0;
  std::size_t skip_;  ///< bytes up to the next head
  std::size_t have_ = 0;
  std::array<unsigned char, head_size> head_{};
  std::uint32_t latest_stream_ = 0;  ///< of the client's
};

}  // namespace rw::http
