#pragma once

#include "core/metrics.hpp"
#include "k8s/names.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>

namespace rw {

/// A few places, and the keys that wait for one, in the order in which they asked. Nobody has to
/// ask again and again: when a place is free it is kept for the key whose turn it is, and that is
/// called; it claims the place when it comes.
///
/// Metric: `<prefix>_sick_waiting`, the keys that wait.
///
/// Not thread-safe.
class places {
 public:
  /// Sees to it that the key comes; false: it can't, and loses its turn.
  using call = std::function<bool(const k8s::object_key&)>;

  places(core::metrics& registry, const std::string& prefix, std::size_t count, call next);
  places(const places&) = delete;
  places& operator=(const places&) = delete;

  /// Given back when it goes; must go before `places` does.
  class place {
   public:
    place() = default;
    place(place&& from) noexcept : from_(std::exchange(from.from_, nullptr)) {}
    place& operator=(place&& from) noexcept {
      auto old = std::exchange(from_, std::exchange(from.from_, nullptr));
      if (old != nullptr) old->give_back();
      return *this;
    }
    ~place() {
      if (from_ != nullptr) from_->give_back();
    }
    explicit operator bool() const noexcept { return from_ != nullptr; }

   private:
    friend class places;
    explicit place(places& from) : from_(&from) {}

    places* from_ = nullptr;
  };

  /// What is kept for the key, which has been called; empty if nothing is. Whoever is called must
  /// claim, even if there is no more use for a place.
  place claim(const k8s::object_key& key);

  /// A free place; empty if there is none: then the key is called in its turn.
  place take(const k8s::object_key& key);

  /// The key is called in its turn, which may be now.
  void want(const k8s::object_key& key);

  std::size_t waiting() const noexcept { return in_turn_.size(); }

 private:
  using keys = std::unordered_set<k8s::object_key, k8s::object_key_hash>;

  void give_back();
  void wait(const k8s::object_key& key);
  void publish() { gauge_.Set(static_cast<double>(in_turn_.size())); }

  const std::size_t count_;
  const call next_;
  core::gauge& gauge_;
  std::size_t taken_ = 0;  ///< the kept ones included
  std::deque<k8s::object_key> in_turn_;
  keys waiting_;  ///< those in turn
  keys kept_;     ///< those that were called
};

}  // namespace rw
