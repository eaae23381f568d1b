#include "rw/reactors/dev/terminal.hpp"

#include "rw/core/text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace rw::dev {
namespace {

constexpr std::string_view hide_cursor = "\x1b[?25l";
constexpr std::string_view show_cursor = "\x1b[?25h";

void write_to_descriptor(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const auto n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // it is closed
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string_view environment(const char* name) {
  const auto* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// Returns the columns that a line takes: its bytes without colours.
std::size_t columns_of(std::string_view line) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = std::min(line.find('m', i), line.size());
    } else {
      ++columns;
    }
  }
  return columns;
}

}  // namespace

terminal_options terminal_options::of_process() {
  const auto kind = environment("TERM");
  return {.out = STDOUT_FILENO,
          .err = STDERR_FILENO,
          .movable = ::isatty(STDOUT_FILENO) == 1 && !kind.empty() && kind != "dumb",
          .colours = environment("NO_COLOR").empty()};
}

terminal::~terminal() {
  clear();
}

bool terminal::shows_errors() const {
  return ::isatty(options_.err) == 1;
}

screen_size terminal::size() const {
  winsize size{};
  if (::ioctl(options_.out, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

/// Returns what erases the region. A terminal that became narrower since has wrapped its lines.
std::string terminal::erase() {
  if (region_.empty()) return {};
  const auto columns = size().columns;
  std::size_t rows = 0;
  for (std::size_t at = 0; at <= region_.size();) {
    const auto end = std::min(region_.find('\n', at), region_.size());
    const auto width = columns_of(std::string_view(region_).substr(at, end - at));
    rows += std::max<std::size_t>(1, (width + columns - 1) / columns);
    at = end + 1;
  }
  region_.clear();
  return "\r" + (rows > 1 ? "\x1b[" + std::to_string(rows - 1) + "A" : std::string()) + "\x1b[J";
}

void terminal::draw(std::string_view above, std::string region) {
  const std::lock_guard lock(mutex_);
  auto text = std::string(hide_cursor) + erase();
  text += above;
  text += region;
  text += show_cursor;
  region_ = std::move(region);
  write_to_descriptor(options_.out, text);
}

void terminal::log(std::string_view line) {
  const auto text = shows_errors() ? core::printable(line.substr(0, line.rfind('\n'))) + "\n" : "";
  const std::lock_guard lock(mutex_);
  auto region = region_;
  if (!text.empty()) write_to_descriptor(options_.out, erase());
  write_to_descriptor(options_.err, text.empty() ? line : text);
  if (text.empty() || region.empty()) return;
  write_to_descriptor(options_.out, region);
  region_ = std::move(region);
}

void terminal::clear() {
  const std::lock_guard lock(mutex_);
  if (!region_.empty()) write_to_descriptor(options_.out, erase());
}

}  // namespace rw::dev
