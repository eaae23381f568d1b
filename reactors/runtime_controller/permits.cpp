#include "rw/reactors/runtime_controller/permits.hpp"

namespace rw {

permits::permits(core::metrics& registry, const std::string& prefix, std::size_t count,
                 enqueue next)
    : count_(count),
      next_(std::move(next)),
      gauge_(core::make_gauge(registry, prefix + "_unhealthy_waiting",
                              "Number of unhealthy runtimes that wait for their turn")) {}

permits::permit permits::claim(const k8s::object_key& key) {
  return reserved_.erase(key) > 0 ? permit(*this) : permit();
}

permits::permit permits::acquire(const k8s::object_key& key) {
  if (auto reserved = claim(key)) return reserved;
  if (used_ < count_) {
    ++used_;
    return permit(*this);
  }
  join_queue(key);
  return {};
}

void permits::request(const k8s::object_key& key) {
  if (reserved_.contains(key)) return;
  join_queue(key);
  if (used_ == count_) return;
  ++used_;
  release();
}

void permits::join_queue(const k8s::object_key& key) {
  if (!queued_.insert(key).second) return;
  queue_.push_back(key);
  publish();
}

/// Passes the permit to the first key that can be enqueued, or frees it.
void permits::release() {
  while (!queue_.empty()) {
    const auto key = std::move(queue_.front());
    queue_.pop_front();
    queued_.erase(key);
    publish();
    reserved_.insert(key);
    if (next_(key)) return;
    reserved_.erase(key);
  }
  --used_;
}

}  // namespace rw
