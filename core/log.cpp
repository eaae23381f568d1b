#include "rw/core/log.hpp"

#include "rw/core/json_text.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <ctime>
#include <ranges>
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

/// Returns the text of a field; empty if there is none.
std::string_view text_of(std::initializer_list<log_field> fields, std::string_view key) {
  for (const auto& field : fields) {
    const auto* const text = std::get_if<std::string_view>(&field.value);
    if (field.key == key && text != nullptr) return *text;
  }
  return {};
}

std::string cause_key(log_level level, std::string_view msg,
                      std::initializer_list<log_field> fields) {
  constexpr std::size_t longest = 256;
  constexpr std::size_t most_read = 4096;
  const auto name = text_of(fields, "name");
  const auto reason = text_of(fields, "reason");
  std::string cause((reason.empty() ? text_of(fields, "error") : reason).substr(0, most_read));
  const auto ends_word = [&cause](std::size_t at) {
    return at >= cause.size() || std::isalnum(static_cast<unsigned char>(cause[at])) == 0;
  };
  for (std::size_t at = 0; !name.empty() && (at = cause.find(name, at)) != cause.npos;) {
    const bool whole = ends_word(at - 1) && ends_word(at + name.size());  // 0 - 1 is beyond the end
    if (whole) cause.erase(at, name.size());
    if (!whole) at += name.size();
  }
  cause.resize(std::min(cause.size(), longest));
  return std::string(names[static_cast<std::size_t>(level)]).append(msg).append("\n" + cause);
}

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
  if (level >= log_level::warning) {
    constexpr std::size_t longest = 2048;
    keep(cause_key(level, msg, fields), text_of(fields, "name"),
         line.size() > longest ? line.substr(0, head) + "}" : line.substr(0, line.size() - 1),
         suppressed + 1);
  }
  sink_(line);
}

void logger::keep(std::string key, std::string_view name, std::string line, std::uint64_t count) {
  constexpr std::size_t most = 32;
  constexpr std::size_t longest_name = 256;
  const std::lock_guard lock(kept_mutex_);
  auto found = std::ranges::find(kept_, key, &std::pair<std::string, warning_cause>::first);
  if (found == kept_.end()) {
    if (kept_.size() == most) kept_.erase(kept_.begin());
    kept_.emplace_back(std::move(key), warning_cause());
  } else {
    std::rotate(found, found + 1, kept_.end());
  }
  auto& cause = kept_.back().second;
  cause.latest = std::move(line);
  cause.count += count;
  if (name.empty() || name.size() > longest_name) return;
  std::erase(cause.names, name);
  cause.names.emplace_back(name);
  if (cause.names.size() > warning_cause::max_names) cause.names.erase(cause.names.begin());
}

std::vector<warning_cause> logger::latest_warnings() const {
  const std::lock_guard lock(kept_mutex_);
  const auto causes = kept_ | std::views::values;
  return {causes.begin(), causes.end()};
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
