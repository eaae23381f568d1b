#include "rw/core/http/frame_budget.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>

namespace rw::http {
namespace {

constexpr std::uint64_t updates_at_first = 5;
constexpr std::uint64_t updates_for_data = 10;  // frames
constexpr std::uint64_t priorities_for_stream = 100;
constexpr std::uint64_t headers_of_stream = 2;  // and trailers

}  // namespace

frame_budget::frame_budget(peer sender) noexcept
    : sender_(sender), skip_(sender == peer::client ? NGHTTP2_CLIENT_MAGIC_LEN : 0) {}

bool frame_budget::take(std::string_view bytes, core::time_point now) noexcept {
  bool within = true;
  while (!bytes.empty()) {
    const auto skipped = std::min(skip_, bytes.size());
    skip_ -= skipped;
    bytes.remove_prefix(skipped);
    const auto part = std::min(head_size - have_, bytes.size());
    std::copy_n(bytes.data(), part, head_.begin() + static_cast<std::ptrdiff_t>(have_));
    have_ += part;
    bytes.remove_prefix(part);
    if (have_ < head_size) break;
    have_ = 0;
    skip_ = std::size_t{head_[0]} << 16 | std::size_t{head_[1]} << 8 | head_[2];
    within = count(now) && within;
  }
  return within;
}

/// Counts the frame of `head_`, whose length is `skip_`.
bool frame_budget::count(core::time_point now) noexcept {
  const auto ends = (head_[4] & NGHTTP2_FLAG_END_STREAM) != 0;
  const auto stream = std::uint32_t{head_[5] & 0x7fU} << 24 | std::uint32_t{head_[6]} << 16 |
                      std::uint32_t{head_[7]} << 8 | head_[8];
  switch (head_[3]) {
    case NGHTTP2_DATA:
      if (skip_ > 0 || ends) return true;
      break;
    case NGHTTP2_HEADERS:
      if (sender_ == peer::client && stream > latest_stream_) {
        latest_stream_ = stream;
        ++streams_;
      }
      if (++headers_ <= headers_of_stream * streams_) return true;
      break;
    case NGHTTP2_RST_STREAM:
      if (++resets_ <= streams_) return true;
      break;
    case NGHTTP2_PRIORITY:
      return ++priorities_ <= priorities_for_stream * (1 + streams_);
    case NGHTTP2_WINDOW_UPDATE:
      return ++window_updates_ <= updates_at_first + 2 * (streams_ + updates_for_data * data_sent_);
    default:
      break;
  }
  return bucket_.try_take(now);
}

}  // namespace rw::http
