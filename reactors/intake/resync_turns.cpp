#include "rw/reactors/intake/resync_turns.hpp"

#include <algorithm>
#include <utility>

namespace rw::listener {

bool resync_turns::add(const std::string& runtime_id, resync_reason reason, core::time_point now) {
  end_until(now);
  const auto known = runtimes_.find(runtime_id);
  if (known == runtimes_.end()) {
    std::list<entry_map::iterator> turn(1);  // all that may throw comes before what is changed
    turn.front() = runtimes_.emplace(runtime_id, entry{.pending = reason}).first;
    due_.splice(due_.end(), turn);
    ++pending_;
    return true;
  }
  auto& pending = known->second.pending;
  if (pending) {
    pending = std::max(*pending, reason);
    return false;
  }
  pending = reason;
  ++pending_;
  return true;
}

std::optional<resync_turns::resync> resync_turns::take(core::time_point now) {
  end_until(now);
  if (due_.empty()) return {};
  const auto turn = due_.front();
  resync out{turn->first, *turn->second.pending};
  turn->second = {.taken = now};
  resting_.splice(resting_.end(), due_, due_.begin());
  --pending_;
  return out;
}

/// Ends the intervals whose time is up: a runtime is due if it has a resync pending, or else
/// forgotten.
void resync_turns::end_until(core::time_point now) {
  while (next() <= now) {
    const auto turn = resting_.front();
    if (turn->second.pending) {
      due_.splice(due_.end(), resting_, resting_.begin());
    } else {
      runtimes_.erase(turn);
      resting_.pop_front();
    }
  }
}

void resync_turns::end_intervals() {
  end_until(core::time_point::max() - core::duration(1));
}

}  // namespace rw::listener
