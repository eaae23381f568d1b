#include "k8s/objects/rfc3339.hpp"

#include <cstdint>

namespace rw::k8s {
namespace {

class scanner {
 public:
  explicit scanner(std::string_view text) : text_(text) {}

  /// Reads exactly `count` digits; -1 if there are fewer.
  int digits(std::size_t count) {
    int value = 0;
    if (text_.size() < count) return -1;
    for (std::size_t i = 0; i < count; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return -1;
      value = value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(count);
    return value;
  }

  bool take(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool at_digit() const { return !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; }
  bool at_end() const { return text_.empty(); }

 private:
  std::string_view text_;
};

/// Reads digits after the point, as microseconds; -1 if there are none.
std::int64_t fraction(scanner& from) {
  if (!from.at_digit()) return -1;
  std::int64_t micros = 0;
  for (std::int64_t unit = 100'000; from.at_digit(); unit /= 10) micros += unit * from.digits(1);
  return micros;
}

/// Reads "Z" or an offset such as "+01:00".
std::optional<std::chrono::minutes> offset(scanner& from) {
  if (from.take('Z') || from.take('z')) return std::chrono::minutes(0);
  const bool east = from.take('+');
  if (!east && !from.take('-')) return std::nullopt;
  const auto hours = from.digits(2);
  if (!from.take(':')) return std::nullopt;
  const auto minutes = from.digits(2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
  const auto size = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return east ? size : -size;
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> parse_rfc3339(std::string_view text) {
  using namespace std::chrono;
  scanner from(text);
  const auto y = from.digits(4);
  if (!from.take('-')) return std::nullopt;
  const auto m = from.digits(2);
  if (!from.take('-')) return std::nullopt;
  const auto d = from.digits(2);
  if (!from.take('T') && !from.take('t') && !from.take(' ')) return std::nullopt;
  const auto hour = from.digits(2);
  if (!from.take(':')) return std::nullopt;
  const auto minute = from.digits(2);
  if (!from.take(':')) return std::nullopt;
  const auto second = from.digits(2);
  const auto micros = from.take('.') ? fraction(from) : 0;
  const auto zone = offset(from);
  const year_month_day date{year(y), month(static_cast<unsigned>(m)),
                            day(static_cast<unsigned>(d))};
  // 60 is a leap second.
  const bool good = y >= 1970 && y <= 2200 && m > 0 && d > 0 && date.ok() && hour >= 0 &&
                    hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60 &&
                    micros >= 0 && zone && from.at_end();
  if (!good) return std::nullopt;
  return sys_days(date) + hours(hour) + minutes(minute) + std::chrono::seconds(second) +
         microseconds(micros) - *zone;
}

}  // namespace rw::k8s
