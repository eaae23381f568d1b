#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/dev/live_table.hpp"
#include "rw/reactors/dev/settings.hpp"
#include "rw/reactors/dev/terminal.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rw::dev {

/// Returns true if `dev` keeps a table on standard output.
bool shows_table(const dev_settings& settings, const terminal& on);

/// State of the system at one moment.
struct live_state {
  std::optional<startup_progress> progress = {};  ///< nothing: the system is up
  /// Nothing: no manager, and only events are known.
  std::optional<std::vector<runtime_brief>> runtimes = {};
};

/// Keeps the progress of the start, and then the table of the runtimes, on a terminal, below the
/// lines that are printed. Draws at most once in `interval`, and only what has changed: a line that
/// comes sooner after a drawing waits for the next. On one executor.
class live_view {
 public:
  static constexpr core::duration interval = std::chrono::milliseconds(250);

  /// `read` is called before each drawing. All must outlive the view.
  live_view(boost::asio::any_io_executor executor, core::clock& clock, terminal& on,
            std::function<live_state()> read);
  /// Ends it.
  ~live_view();
  live_view(const live_view&) = delete;
  live_view& operator=(const live_view&) = delete;

  /// Takes the end of an event's trace, for the table.
  void add(const event_trace& trace);
  /// Prints complete lines above the table. They are written as they are.
  void print(const std::string& lines);

  /// Draws until cancelled.
  boost::asio::awaitable<void> run();
  /// Writes what waits, and erases the table. Lines are printed at once from then on.
  void end();

 private:
  void poll();

  const boost::asio::any_io_executor executor_;
  core::clock& clock_;
  terminal& terminal_;
  const std::function<live_state()> read_;
  live_table table_;
  std::string pending_;  ///< lines to print
  std::string drawn_;
  screen_size size_ = {};
  core::time_point next_ = {};  ///< the earliest next drawing
  bool ended_ = false;
};

}  // namespace rw::dev
