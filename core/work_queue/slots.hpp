#pragma once

#include "core/work_queue/node.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rw::core::work_queue_detail {

template <typename Key>
struct slot : node {
  Key key{};
};

/// Slots for keys, in chunks that stay where they are. A free slot keeps its last key, so that the
/// next one is written into memory that is there already.
template <typename Key>
class slots {
 public:
  slot<Key>& operator[](std::uint32_t number) const noexcept {
    return chunks_[number / chunk][number % chunk];
  }

  /// False: `grow` must come before `take`.
  bool ready() const noexcept { return free_ != nullptr; }

  slot<Key>& take(const Key& key) {
    auto& first = *free_;
    first.key = key;  // may throw, so it comes first
    free_ = static_cast<slot<Key>*>(first.next);
    return first;
  }

  void give_back(slot<Key>& one) noexcept {
    one.next = free_;
    free_ = &one;
  }

  std::size_t capacity() const noexcept { return chunks_.size() * chunk; }

  void grow() {
    const auto first = chunks_.size() * chunk;
    chunks_.push_back(std::make_unique<slot<Key>[]>(chunk));
    auto* const all = chunks_.back().get();
    for (std::size_t i = chunk; i-- > 0;) {
      all[i].number = static_cast<std::uint32_t>(first + i);
      give_back(all[i]);
    }
  }

 private:
  static constexpr std::size_t chunk = 64;

  std::vector<std::unique_ptr<slot<Key>[]>> chunks_;
  slot<Key>* free_ = nullptr;
};

}  // namespace rw::core::work_queue_detail
