#include "reactors/dispatch/verdict.hpp"

#include <algorithm>
#include <charconv>

namespace rw::dispatch {

verdict judge(unsigned status) noexcept {
  if (status >= 200 && status < 300) return verdict::delivered;
  switch (status) {
    case 401:
    case 403:
    case 404:
    case 408:
    case 429:
      return verdict::retry;
    default:
      return status >= 400 && status < 500 ? verdict::rejected : verdict::retry;
  }
}

std::chrono::seconds retry_after(std::string_view header) noexcept {
  unsigned seconds = 0;
  const auto end = header.data() + header.size();
  const auto parsed = std::from_chars(header.data(), end, seconds);
  if (parsed.ec == std::errc::result_out_of_range) return std::chrono::minutes(5);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return std::min(std::chrono::seconds(seconds), std::chrono::seconds(300));
}

}  // namespace rw::dispatch
