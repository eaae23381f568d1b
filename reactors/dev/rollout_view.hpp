#pragma once

#include "rw/core/clock.hpp"
#include "rw/reactors/dev/source_watch.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

namespace rw::dev {

/// A runtime has the current content of a source in KCP.
struct arrival {
  std::string runtime = {};
  source kind = source::config;
  /// Time since KCP's change was observed; none: the runtime had the content before.
  std::optional<core::duration> after = {};
  std::size_t have = 0;  ///< runtimes that have it by now, this one included
  std::size_t of = 0;    ///< number of all runtimes
};

/// Formats the state of a rollout, for people or as JSON, without a newline; empty if phase, reason
/// and content are those of `before`, or no runtime has taken part yet. Both are RuntimeRollouts.
std::string rollout_line(const boost::json::value& before, const boost::json::value& now,
                         std::chrono::system_clock::time_point time, bool json);

/// One line for people, or one of JSON, without a newline. `now`: of the arrival.
std::string line_of(const arrival& arrival, std::chrono::system_clock::time_point now);
std::string json_line_of(const arrival& arrival, std::chrono::system_clock::time_point now);

/// Selects the lines to print for people: none of a runtime that had the content before; of many
/// runtimes the first and the last, each tenth part, and the one that makes it 99 %; of ten or less
/// all.
bool is_milestone(const arrival& arrival);

/// Traces the content of KCP's sources to the runtimes, whichever component writes it: it receives
/// digests of KCP's and of each runtime's copies, and reports each arrival. On one executor.
class rollout_view {
 public:
  rollout_view(core::clock& clock, std::size_t runtimes, std::function<void(const arrival&)> tell);

  /// Sets KCP's digest of a source; empty: there is none.
  void wanted(source source, const std::string& digest);
  /// Sets a runtime's digest of a source.
  void has(const std::string& runtime, source source, const std::string& digest);

 private:
  struct part {
    std::string digest = {};
    core::time_point since = {};
    std::size_t have = 0;
    std::unordered_map<std::string, std::string> held = {};  ///< digests by runtime
  };

  void count(const std::string& runtime, source source, std::optional<core::duration> after);

  core::clock& clock_;
  const std::size_t runtimes_;
  const std::function<void(const arrival&)> tell_;
  std::array<part, all_sources.size()> parts_;
};

}  // namespace rw::dev
