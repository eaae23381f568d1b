// Revisions that a runtime has rejected.

#include "rw/reactors/bootstrapper/direct_sync.hpp"

namespace rw::bootstrapper {

/// What has changed on the runtime, or may have while it was not watched, may be what it rejected a
/// revision for.
void direct_sync::skip_rejected(pass* in) {
  const auto& key = in->to.key;
  auto& state = in->input.state;
  const auto expected = expected_on(key);
  const bool unseen = options_.watch_runtimes && expected.versions.empty();
  const bool may_accept = unseen || drift_.changed(key);
  if (may_accept && !in->is_preview) rejected_.erase(key);
  const auto rejected = may_accept ? rejected_.end() : rejected_.find(key);
  for (std::size_t i = 0; rejected != rejected_.end() && i < state.units.size(); ++i) {
    auto& known = rejected->second[i];
    if (environment_.clock.now() < known.until) state.units[i].skipped = known;
    // A change since the attempt ends it, also one that its watch has yet to tell.
    if (!state.units[i].skipped.digest.empty()) state.left = expected;
  }
}

/// A revision that was rejected is not tried again before the resync, or before something changes
/// on the runtime, since its first writes may have been taken; one of an unknown kind was not
/// written. Returns true if a rejection has ended in this pass.
bool direct_sync::note_rejections(pass* in) {
  auto& known = rejected_[in->to.key];
  // What has changed meanwhile may be the reason; the next pass follows.
  const bool changed = drift_.changed(in->to.key);
  bool any = false;
  bool ended = false;
  for (std::size_t i = 0; !changed && i < known.size(); ++i) {
    const auto& unit = in->input.state.units[i];
    const bool noted = unit.rejected && !unit.desired.empty() &&
                       unit.rejected->cause != rejection::reason::unknown_kind;
    const bool skipped = noted && unit.skipped.digest == unit.desired;
    // What had to be repaired has changed, though its watch has not told of it.
    if (!skipped || unit.changed) known[i] = {};
    if (noted && !skipped) {
      known[i] = {unit.desired, *unit.rejected, environment_.clock.now() + options_.resync_period};
    }
    ended = ended || (skipped && unit.changed);
    any = any || noted;
  }
  if (!any) rejected_.erase(in->to.key);
  return ended;
}

}  // namespace rw::bootstrapper
