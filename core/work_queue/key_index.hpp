#pragma once

#include "core/work_queue/node.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace rw::core::work_queue_detail {

/// Finds slots by their keys' hashes: open addressing with linear probing, at most a quarter full,
/// because a branch that is mispredicted costs more than 16 bytes for each key. Erasing moves what
/// follows back (D. Knuth, The Art of Computer Programming, vol. 3, section 6.4, algorithm R), so
/// there are no tombstones, and nothing is ever rehashed but to grow.
///
/// `Nodes` gives the node of a slot's number.
template <typename Nodes>
class key_index {
 public:
  explicit key_index(const Nodes& nodes) : nodes_(nodes) { allocate(smallest); }

  /// Where to look for a hash first, and after a place that has another.
  std::size_t home(std::uint32_t hash) const noexcept { return hash & mask_; }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask_; }
  /// The slot at a place, or none: then the key is not inside, and may be put here.
  std::uint32_t operator[](std::size_t at) const noexcept { return entries_[at]; }

  /// So many fit before it should grow.
  std::size_t limit() const noexcept { return (mask_ + 1) / 4; }
  bool crowded() const noexcept { return size_ >= limit(); }
  void put(std::size_t at, std::uint32_t number) noexcept {
    entries_[at] = number;
    ++size_;
  }

  /// Makes the table larger; places found before are worth nothing.
  void grow() {
    const auto old = std::move(entries_);
    const auto length = mask_ + 1;
    allocate(2 * length);
    for (std::size_t i = 0; i < length; ++i) {
      if (old[i] != none) entries_[vacancy(nodes_[old[i]].hash)] = old[i];
    }
  }

  /// The place for a key that is not inside.
  std::size_t vacancy(std::uint32_t hash) const noexcept {
    std::size_t at = home(hash);
    while (entries_[at] != none) at = next(at);
    return at;
  }

  /// Takes out a slot that is inside.
  void erase(const node& one) noexcept {
    std::size_t hole = home(one.hash);
    while (entries_[hole] != one.number) hole = next(hole);
    const std::size_t after = next(hole);
    --size_;
    if (entries_[after] == none) [[likely]] {
      entries_[hole] = none;
    } else {
      close(hole, after);
    }
  }

  std::size_t size() const noexcept { return size_; }

 private:
  /// 4 KiB. Smaller ones are slower: where the next key often has the place that was just written,
  /// processors wait for the store.
  static constexpr std::size_t smallest = 1024;

  /// Closes a hole that may lie between a key and its home.
  [[gnu::noinline]] void close(std::size_t hole, std::size_t at) noexcept {
    for (; entries_[at] != none; at = next(at)) {
      // It may go into the hole unless that lies before its own home.
      const std::size_t from_home = (at - home(nodes_[entries_[at]].hash)) & mask_;
      if (from_home < ((at - hole) & mask_)) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole] = none;
  }

  void allocate(std::size_t length) {
    entries_ = std::make_unique_for_overwrite<std::uint32_t[]>(length);
    std::fill_n(entries_.get(), length, none);
    mask_ = length - 1;
  }

  const Nodes& nodes_;
  std::unique_ptr<std::uint32_t[]> entries_;  ///< a power of two
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

/// Spreads a hash that may be the key itself, as std::hash of an integer is (Fibonacci hashing,
/// Knuth, section 6.4), over 32 bits.
inline std::uint32_t spread(std::size_t hash) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{hash} * 0x9E3779B97F4A7C15ULL) >> 32);
}

}  // namespace rw::core::work_queue_detail
