#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/dev/event_view.hpp"
#include "rw/reactors/dev/terminal.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rw::dev {

/// What the manager knows of one runtime.
struct runtime_brief {
  std::string name = {};
  std::string_view state = "unknown";      ///< of the installation; of static storage
  std::string_view heartbeat = "unknown";  ///< likewise
  std::string reason = {};                 ///< of a state that is an error; may be empty
};

/// Which parts of the system are up.
struct startup_progress {
  bool issuer = false;
  bool manager = false;
  bool gateway = false;
  bool without_manager = false;  ///< none is part of the process, and nothing waits for one
  std::size_t prepared = 0;      ///< runtimes that have their objects
  std::size_t runtimes = 0;
};

/// A compact table of the runtimes, those with an error and the most recently active ones first, as
/// text for a terminal of any size. Knows neither a terminal nor a clock.
///
/// What comes from runtimes is shown as printable ASCII. Memory: a row for each runtime, and the
/// latest 16,384 latencies of the last minute. Not thread-safe.
class live_table {
 public:
  static constexpr std::size_t most_rows = 12;
  static constexpr std::size_t most_latencies = 16384;
  static constexpr core::duration latency_window = std::chrono::minutes(1);
  static constexpr std::chrono::seconds rate_window{10};

  explicit live_table(bool colours) : colours_(colours) {}

  /// Takes the end of an event's trace.
  void add(const event_trace& trace, core::time_point now,
           std::chrono::system_clock::time_point wall);
  /// Takes the state of all runtimes that the manager knows; the others lose their rows.
  void set_runtimes(const std::vector<runtime_brief>& all);

  /// Returns lines without a final newline, each within the columns and all within the rows.
  std::string render(screen_size size, core::time_point now) const;
  /// Returns one line while the system starts: the parts that are up, then how many runtimes.
  std::string render(screen_size size, const startup_progress& progress) const;

 private:
  struct row {
    std::string name = {};
    std::string_view state = {};      ///< empty: no manager
    std::string_view heartbeat = {};  ///< likewise
    std::string reason = {};
    std::string latest = {};
    std::optional<core::duration> latency = {};
    std::size_t events = 0;
    core::time_point at = {};  ///< of the latest event
    std::size_t seen_in = 0;   ///< the latest `set_runtimes` that named it
  };

  row& use(const std::string& name);
  static int severity(const row& of);
  static bool precedes(const row* a, const row* b);
  std::vector<const row*> sorted() const;
  std::string rest(std::vector<const row*>::const_iterator from,
                   std::vector<const row*>::const_iterator to) const;
  std::string totals(core::time_point now) const;
  std::string line_for(const row& of, std::size_t name_width) const;
  std::string finish(const std::string& line, std::size_t columns, std::string_view colour) const;

  const bool colours_;
  bool has_manager_ = false;
  std::size_t round_ = 0;
  std::unordered_map<std::string, row> rows_;
  std::deque<std::pair<core::time_point, core::duration>> latencies_;
  std::deque<std::pair<core::time_point, std::size_t>> seconds_;  ///< events in each second
};

}  // namespace rw::dev
