#pragma once

#include "core/work_queue/node.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rw::core::work_queue_detail {

/// The keys that wait for a time, the next due first: a binary heap in which each knows its place,
/// so that it may be moved forward or taken out.
class delays {
 public:
  bool empty() const noexcept { return heap_.empty(); }
  std::size_t size() const noexcept { return heap_.size(); }
  node& next() const noexcept { return *heap_.front().who; }
  duration::rep next_due() const noexcept { return heap_.front().due; }

  void push(node& one, duration::rep due) {
    heap_.push_back({due, &one});
    rise(heap_.size() - 1);
  }

  /// Makes an entry due earlier. False: it is due as early already.
  bool advance(node& one, duration::rep due) noexcept {
    const std::size_t at = one.delay_place - 1;
    if (due >= heap_[at].due) return false;
    heap_[at].due = due;
    rise(at);
    return true;
  }

  void remove(node& one) noexcept {
    const std::size_t hole = one.delay_place - 1;
    one.delay_place = 0;
    const entry last = heap_.back();
    heap_.pop_back();
    if (last.who == &one) return;
    put(hole, last);
    rise(hole);
    sink(last.who->delay_place - 1);
  }

 private:
  struct entry {
    duration::rep due;
    node* who;
  };

  void put(std::size_t at, entry what) noexcept {
    heap_[at] = what;
    what.who->delay_place = static_cast<std::uint32_t>(at + 1);
  }

  void rise(std::size_t at) noexcept {
    const entry what = heap_[at];
    while (at > 0 && what.due < heap_[(at - 1) / 2].due) {
      put(at, heap_[(at - 1) / 2]);
      at = (at - 1) / 2;
    }
    put(at, what);
  }

  void sink(std::size_t at) noexcept {
    const entry what = heap_[at];
    for (;;) {
      std::size_t child = 2 * at + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && heap_[child + 1].due < heap_[child].due) ++child;
      if (what.due <= heap_[child].due) break;
      put(at, heap_[child]);
      at = child;
    }
    put(at, what);
  }

  std::vector<entry> heap_;
};

}  // namespace rw::core::work_queue_detail
