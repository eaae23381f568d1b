#include "rw/core/http/frame_budget.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <utility>

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
  while (bytes.size() > skip_) {
    bytes.remove_prefix(std::exchange(skip_, 0));
    const auto* head = reinterpret_cast<const unsigned char*>(bytes.data());
    auto part = head_size;
    if (have_ > 0 || bytes.size() < head_size) {
      part = std::min(head_size - have_, bytes.size());
      std::copy_n(head, part, head_.begin() + static_cast<std::ptrdiff_t>(have_));
      have_ += part;
      if (have_ < head_size) return within;
      have_ = 0;
      head = head_.data();
    }
    bytes.remove_prefix(part);
    skip_ = std::size_t{head[0]} << 16 | std::size_t{head[1]} << 8 | head[2];
    within = count(head, now) && within;
  }
  skip_ -= bytes.size();
  return within;
}

/// Counts the frame of this head, whose length is `skip_`.
bool frame_budget::count(const unsigned char* head, core::time_point now) noexcept {
  switch (head[3]) {
    case NGHTTP2_DATA:
      if (skip_ >= small && (head[4] & NGHTTP2_FLAG_PADDED) == 0) return true;
      if ((head[4] & NGHTTP2_FLAG_END_STREAM) != 0 && ++ends_ <= streams_) return true;
      if (skip_ > 0) return small_data_.try_take(now);
      break;
    case NGHTTP2_HEADERS: {
      const auto stream = std::uint32_t{head[5] & 0x7fU} << 24 | std::uint32_t{head[6]} << 16 |
                          std::uint32_t{head[7]} << 8 | head[8];
      if (sender_ == peer::client && stream > latest_stream_) {
        latest_stream_ = stream;
        ++streams_;
      }
      if (++headers_ <= headers_of_stream * streams_) return true;
      break;
    }
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
