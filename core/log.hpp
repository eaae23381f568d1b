#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rw::core {

enum class log_level : std::uint8_t { debug, info, warning, error };

/// Parses "debug", "info", "warning" (or "warn") and "error". Returns false for anything else.
bool parse_log_level(std::string_view text, log_level& level) noexcept;

/// A value of a log field. Strings are borrowed for the length of the call.
using log_value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

struct log_field {
  std::string_view key;
  log_value value;

  log_field(std::string_view k, std::string_view v) : key(k), value(v) {}
  log_field(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  log_field(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  log_field(std::string_view k, bool v) : key(k), value(v) {}
  log_field(std::string_view k, double v) : key(k), value(v) {}
  template <std::signed_integral T>
  log_field(std::string_view k, T v) : key(k), value(std::int64_t{v}) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  log_field(std::string_view k, T v) : key(k), value(std::uint64_t{v}) {}
};

/// Passes a message at most `burst` times per `period`. The next message that passes carries the
/// number of dropped ones in the field `suppressed`. Each place that logs in a loop or on behalf of
/// an unauthenticated peer has its own. Thread-safe.
class log_limit {
 public:
  explicit log_limit(std::uint32_t burst = 5,
                     std::chrono::seconds period = std::chrono::seconds(10))
      : burst_(burst), period_(period) {}

  /// Returns true if the message may pass, and sets `suppressed` to the number dropped before it.
  bool pass(std::uint64_t& suppressed) noexcept {
    return pass(suppressed, std::chrono::steady_clock::now());
  }

  /// The same at a given time.
  bool pass(std::uint64_t& suppressed, std::chrono::steady_clock::time_point time) noexcept;

 private:
  const std::uint32_t burst_;
  const std::chrono::seconds period_;
  std::atomic<std::int64_t> window_start_{std::numeric_limits<std::int64_t>::min() / 2};
  std::atomic<std::uint32_t> in_window_{0};
  std::atomic<std::uint64_t> suppressed_{0};
};

/// The warnings and errors of one cause: they have the level and the message in common, and the
/// first 256 bytes of their field `reason`, or `error` if that is empty, apart from the value of
/// `name`.
struct warning_cause {
  static constexpr std::size_t max_names = 5;

  std::string latest = {};  ///< JSON object, as it was logged; over 2 KiB: without its fields
  std::uint64_t count = 0;  ///< with the lines that a log_limit dropped
  std::vector<std::string> names = {};  ///< the last values of their field `name`, each once
};

/// Writes one JSON object per line: `time` (RFC 3339, UTC, milliseconds), `level`, `msg`, then the
/// fields. Messages are constant; the fields hold what varies. Thread-safe: the sink receives each
/// line as a whole.
///
/// Keeps the causes of the latest warnings and errors for status pages, at most 128 KiB.
class logger {
 public:
  /// Takes a finished line, with its newline.
  using sink = std::function<void(std::string_view line)>;

  /// Logs to standard error.
  explicit logger(log_level least = log_level::info);
  logger(log_level least, sink to);

  void debug(std::string_view msg, std::initializer_list<log_field> fields = {});
  void info(std::string_view msg, std::initializer_list<log_field> fields = {});
  void warning(std::string_view msg, std::initializer_list<log_field> fields = {});
  void error(std::string_view msg, std::initializer_list<log_field> fields = {});

  /// Logs, at most as often as `limit` allows.
  void limited(log_limit& limit, log_level level, std::string_view msg,
               std::initializer_list<log_field> fields = {});

  bool enabled(log_level level) const noexcept { return level >= least_; }
  /// The minimum level that is logged.
  log_level least() const noexcept { return least_; }

  /// Returns the 32 causes of warnings and errors that were logged last, the latest one last.
  std::vector<warning_cause> latest_warnings() const;

 private:
  void write(log_level level, std::string_view msg, std::initializer_list<log_field> fields,
             std::uint64_t suppressed);
  void keep(std::string key, std::string_view name, std::string line, std::uint64_t count);

  const log_level least_;
  const sink sink_;
  mutable std::mutex kept_mutex_;
  std::vector<std::pair<std::string, warning_cause>> kept_;  ///< by key, the latest one last
};

}  // namespace rw::core
