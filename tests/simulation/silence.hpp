#pragma once

#include "rw/reactors/heartbeat/health.hpp"

#include "tests/simulation/history.hpp"
#include <optional>

namespace rw::simulation {

/// Whether heartbeats can come from the runtime to KCP.
enum class way : std::uint8_t {
  intact,
  doubtful,  ///< some may come
  broken,    ///< none can
};

/// Holds what KCP concludes from heartbeats against the state of their way: `reactors/README.md`,
/// "heartbeat".
class silence {
 public:
  silence(environment& in, history& told) : in_(in), history_(told) {}

  /// The way was interrupted for a moment.
  void interrupted() { doubtful_ = in_.now(); }
  /// To be called at each step.
  void inspect(way state, const heartbeats::runtime_health& known);

 private:
  environment& in_;
  history& history_;
  time_point doubtful_ = in_.now();   ///< when it was not intact last
  std::optional<time_point> broken_;  ///< since when it is
};

}  // namespace rw::simulation
