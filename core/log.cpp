#include "rw/core/log.hpp"

#include "rw/core/json_text.hpp"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <ctime>
#include <unistd.h>

namespace rw::core {
namespace {

void write_stderr(std::string_view line) {
  while (!line.empty()) {
    const auto n = ::write(STDERR_FILENO, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // standard error itself is closed
    line.remove_prefix(static_cast<std::size_t>(n));
  }
}

constexpr std::string_view names[] = {"debug", "info", "warning", "error"};

void append_time(std::string& out) {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const auto n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  out.append(text, n);
  out += '.';
  out += static_cast<char>('0' + millis / 100);
  out += static_cast<char>('0' + millis / 10 % 10);
  out += static_cast<char>('0' + millis % 10);
  out += 'Z';
}

struct append_value {
  std::string& out;

  void operator()(std::string_view v) const { append_json_string(out, v); }
  void operator()(bool v) const { out += v ? "true" : "false"; }
  void operator()(double v) const {
    if (std::isfinite(v)) {
      number(v);
    } else {
      out += "null";
    }
  }
  void operator()(std::int64_t v) const { number(v); }
  void operator()(std::uint64_t v) const { number(v); }

  template <class Number>
  void number(Number v) const {
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, v).ptr;
    out.append(text, end);
  }
};

}  // namespace

bool parse_log_level(std::string_view text, log_level& level) noexcept {
  if (text == "warn") text = "warning";
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (text != names[i]) continue;
    level = static_cast<log_level>(i);
    return true;
  }
  return false;
}

bool log_limit::pass(std::uint64_t& suppressed,
                     std::chrono::steady_clock::time_point time) noexcept {
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  auto start = window_start_.load(std::memory_order_relaxed);
  if (now - start >= period_.count() &&
      window_start_.compare_exchange_strong(start, now, std::memory_order_relaxed)) {
    in_window_.store(0, std::memory_order_relaxed);
  }
  if (in_window_.fetch_add(1, std::memory_order_relaxed) >= burst_) {
    suppressed_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  suppressed = suppressed_.exchange(0, std::memory_order_relaxed);
  return true;
}

logger::logger(log_level least) : logger(least, write_stderr) {}
logger::logger(log_level least, sink to) : least_(least), sink_(std::move(to)) {}

void logger::write(log_level level, std::string_view msg, std::initializer_list<log_field> fields,
                   std::uint64_t suppressed) {
  if (!enabled(level)) return;
  std::string line = R"({"time":")";
  append_time(line);
  line += R"(","level":")";
  line += names[static_cast<std::size_t>(level)];
  line += R"(","msg":)";
  append_json_string(line, msg);
  const auto head = line.size();
  for (const auto& field : fields) {
    line += ',';
    append_json_string(line, field.key);
    line += ':';
    std::visit(append_value{line}, field.value);
  }
  if (suppressed > 0) {
    line += R"(,"suppressed":)";
    append_value{line}(suppressed);
  }
  line += "}\n";
  if (level >= log_level::warning) keep(line, head);
  sink_(line);
}

void logger::keep(std::string_view line, std::size_t head) {
  constexpr std::size_t most = 32;
  constexpr std::size_t longest = 2048;
  std::string text(line.substr(0, line.size() - 1));
  if (text.size() > longest) text = text.substr(0, head) + "}";
  const std::lock_guard lock(kept_mutex_);
  if (kept_.size() < most) {
    kept_.push_back(std::move(text));
  } else {
    kept_[next_] = std::move(text);
    next_ = (next_ + 1) % most;
  }
}

std::vector<std::string> logger::latest_warnings() const {
  const std::lock_guard lock(kept_mutex_);
  std::vector<std::string> out(kept_.begin() + static_cast<std::ptrdiff_t>(next_), kept_.end());
  out.insert(out.end(), kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(next_));
  return out;
}

void logger::debug(std::string_view msg, std::initializer_list<log_field> fields) {
  write(log_level::debug, msg, fields, 0);
}
void logger::info(std::string_view msg, std::initializer_list<log_field> fields) {
  write(log_level::info, msg, fields, 0);
}
void logger::warning(std::string_view msg, std::initializer_list<log_field> fields) {
  write(log_level::warning, msg, fields, 0);
}
void logger::error(std::string_view msg, std::initializer_list<log_field> fields) {
  write(log_level::error, msg, fields, 0);
}

void logger::limited(log_limit& limit, log_level level, std::string_view msg,
                     std::initializer_list<log_field> fields) {
  std::uint64_t suppressed = 0;
  if (enabled(level) && limit.pass(suppressed)) write(level, msg, fields, suppressed);
}

}  // namespace rw::core
