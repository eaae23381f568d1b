#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace rw::dev {

struct screen_size {
  std::size_t rows = 24;
  std::size_t columns = 80;
  friend bool operator==(const screen_size&, const screen_size&) = default;
};

/// Descriptors, and what their terminal can show.
struct terminal_options {
  int out = -1;
  int err = -1;
  bool movable = false;  ///< `out` is a terminal that can move its cursor
  bool colours = false;  ///< it may be given colours (NO_COLOR, https://no-color.org)

  /// Returns those of this process: standard output, standard error, TERM and NO_COLOR.
  static terminal_options of_process();
};

/// A region of lines at the bottom of a terminal, which is redrawn in place, below lines that
/// scroll. Uses no alternate screen.
///
/// Each drawing is one write that ends with a visible cursor, so that a process that is killed
/// leaves a usable terminal behind. Writes block, as those to a terminal do. Thread-safe.
class terminal {
 public:
  explicit terminal(terminal_options options) : options_(options) {}
  /// Erases the region.
  ~terminal();
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;

  const terminal_options& options() const noexcept { return options_; }
  /// Returns true if lines on standard error appear on a terminal.
  bool shows_errors() const;
  /// Returns the present size; 24 rows of 80 columns if it is unknown.
  screen_size size() const;

  /// Writes `above`, empty or complete lines, and replaces the region by `region`, lines without a
  /// final newline that fit into the terminal. Only `above` may be wrapped.
  void draw(std::string_view above, std::string region);

  /// Writes a complete line to standard error, above the region; without control characters if that
  /// is a terminal.
  void log(std::string_view line);

  /// Erases the region.
  void clear();

 private:
  std::string erase();

  const terminal_options options_;
  std::mutex mutex_;
  std::string region_;  ///< as it is on the screen; empty: none
};

}  // namespace rw::dev
