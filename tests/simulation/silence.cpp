#include "tests/simulation/silence.hpp"

#include "rw/reactors/events/heartbeat_sender.hpp"

namespace rw::simulation {
namespace {

using heartbeats::liveness;

constexpr auto poll = seconds(1);  ///< how often time goes by at least

/// From the end of a disturbance to the first heartbeat: one may just have failed, or wait for its
/// limits; where there was no receiver, heartbeats are sent after pauses that double.
duration recovery() {
  const heartbeats::sender_options sender;
  return sender.interval + 2 * sender.timeout + 2 * sender.retry_base + poll;
}

}  // namespace

void silence::inspect(way state, const heartbeats::runtime_health& known) {
  const auto now = in_.now();
  if (state != way::intact) doubtful_ = now;
  if (state != way::broken) {
    broken_.reset();
  } else if (!broken_) {
    broken_ = now;
  }
  const bool silent = known.state == liveness::silent;
  if (silent && now > doubtful_ + recovery()) {
    history_.violate("the runtime is silent, though its heartbeats can come");
  }
  if (!silent && broken_ && now > *broken_ + heartbeats::health_options().timeout + poll) {
    history_.violate("no heartbeat can come, and that is not noticed");
  }
}

}  // namespace rw::simulation
