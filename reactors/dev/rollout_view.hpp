#pragma once

#include "core/clock.hpp"
#include "reactors/dev/source_watch.hpp"

#include <boost/json/value.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>

namespace rw::dev {

/// A runtime has got what KCP holds.
struct arrival {
  std::string runtime = {};
  source what = source::config;
  core::duration after{};  ///< the moment at which KCP's change was noticed
  std::size_t have = 0;    ///< runtimes that have it by now, this one included
  std::size_t of = 0;      ///< runtimes that there are
};

/// The state of a roll-out, for people or as JSON, without a newline; empty if its phase is the one
/// of `before`. Both are RuntimeRollouts.
std::string rollout_line(const boost::json::value& before, const boost::json::value& now,
                         std::chrono::system_clock::time_point time, bool json);

/// One line for people, or one of JSON, without a newline. `now`: of the arrival.
std::string line_of(const arrival& what, std::chrono::system_clock::time_point now);
std::string json_line_of(const arrival& what, std::chrono::system_clock::time_point now);

/// Of many runtimes not each one is worth a line: true for the first and the last, each tenth part,
/// and the one that makes it 99 %. With ten runtimes or less, always.
bool is_milestone(const arrival& what);

/// Follows the content of KCP's sources to the runtimes, whoever writes it there: told what KCP
/// holds and what each runtime holds, it tells of each arrival. On one executor.
class rollout_view {
 public:
  rollout_view(core::clock& clock, std::size_t runtimes, std::function<void(const arrival&)> tell);

  /// KCP holds this (a digest of it) from now on; empty: nothing.
  void wanted(source which, const std::string& digest);
  /// A runtime holds this from now on.
  void has(const std::string& runtime, source which, const std::string& digest);

 private:
  struct part {
    std::string digest = {};
    core::time_point since = {};
    std::size_t have = 0;
    std::unordered_map<std::string, std::string> held = {};  ///< digests by runtime
  };

  void count(const std::string& runtime, source which);

  core::clock& clock_;
  const std::size_t runtimes_;
  const std::function<void(const arrival&)> tell_;
  std::array<part, all_sources.size()> parts_;
};

}  // namespace rw::dev
