#pragma once

#include "rw/k8s/objects/delta.hpp"
#include "rw/k8s/objects/object_set.hpp"

#include <boost/unordered/unordered_flat_set.hpp>

#include <cstddef>
#include <list>

namespace rw::k8s {

/// What a subscriber has still to be told: for each object that changed since, what it was told
/// last, and what is. In the order in which they changed first. Not thread-safe.
class pending_deltas {
 public:
  /// An object went from `before` (empty: there was none, or it is the same to the subscriber) to
  /// `now` (empty: there is none). Not both empty.
  void note(const object& before, const object& now);

  bool empty() const noexcept { return waiting_.empty(); }
  std::size_t size() const noexcept { return waiting_.size(); }

  /// The next delta; counts as told. There must be one.
  delta take();

 private:
  struct change {
    object before;
    object now;

    const object& latest() const noexcept { return now ? now : before; }
  };
  using place = std::list<change>::iterator;

  /// By the name of the object that a change is about.
  struct by_subject : by_name {
    static object_name of(const place& from) noexcept { return by_name::of(from->latest()); }
    using by_name::of;
    using is_transparent = void;

    template <typename T>
    std::size_t operator()(const T& from) const noexcept {
      return by_name::operator()(of(from));
    }
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const noexcept {
      return by_name::operator()(of(a), of(b));
    }
  };

  std::list<change> waiting_;
  boost::unordered_flat_set<place, by_subject, by_subject> index_;
};

}  // namespace rw::k8s
