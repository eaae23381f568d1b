#include "reactors/places.hpp"

namespace rw {

places::places(core::metrics& registry, const std::string& prefix, std::size_t count, call next)
    : count_(count),
      next_(std::move(next)),
      gauge_(core::make_gauge(registry, prefix + "_sick_waiting",
                              "Runtimes that did not answer and wait for their turn to be asked")) {
}

places::place places::claim(const k8s::object_key& key) {
  return kept_.erase(key) > 0 ? place(*this) : place();
}

places::place places::take(const k8s::object_key& key) {
  if (auto kept = claim(key)) return kept;
  if (taken_ < count_) {
    ++taken_;
    return place(*this);
  }
  wait(key);
  return {};
}

void places::want(const k8s::object_key& key) {
  if (kept_.contains(key)) return;
  wait(key);
  if (taken_ == count_) return;
  ++taken_;
  give_back();
}

void places::wait(const k8s::object_key& key) {
  if (!waiting_.insert(key).second) return;
  in_turn_.push_back(key);
  publish();
}

/// To the next one that can come, or to nobody.
void places::give_back() {
  while (!in_turn_.empty()) {
    const auto key = std::move(in_turn_.front());
    in_turn_.pop_front();
    waiting_.erase(key);
    publish();
    kept_.insert(key);
    if (next_(key)) return;
    kept_.erase(key);
  }
  --taken_;
}

}  // namespace rw
