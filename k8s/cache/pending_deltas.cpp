#include "rw/k8s/cache/pending_deltas.hpp"

#include <iterator>
#include <utility>

namespace rw::k8s {

void pending_deltas::note(const object& before, const object& now) {
  const auto found = index_.find(by_name::of(now ? now : before));
  if (found == index_.end()) {
    waiting_.push_back({before, now});
    index_.insert(std::prev(waiting_.end()));
    return;
  }
  const auto position = *found;
  // It came and went unseen, or is again as it was told.
  const bool nothing = position->before ? now && same_state(position->before, now) : !now;
  if (nothing) {
    index_.erase(found);
    waiting_.erase(position);
  } else {
    position->now = now;
  }
}

delta pending_deltas::take() {
  const auto child = waiting_.begin();
  auto& [before, now] = *child;
  if (before && now && before.uid() != now.uid()) {
    // Another object of the same name: the next delta tells of it.
    return {.type = delta::kind::deleted, .before = std::exchange(before, {})};
  }
  index_.erase(child);
  delta next{.before = std::move(before), .now = std::move(now)};
  waiting_.erase(child);
  if (!next.now) {
    next.type = delta::kind::deleted;
  } else if (next.before) {
    next.type = delta::kind::updated;
  }
  return next;
}

}  // namespace rw::k8s
