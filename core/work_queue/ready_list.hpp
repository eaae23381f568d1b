#pragma once

#include "core/work_queue/node.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace rw::core::work_queue_detail {

/// A queue in a ring that grows. Each node knows its position, so that it may be taken out of the
/// middle; its place is passed over later.
class ring {
 public:
  ring() : places_(std::make_unique<node*[]>(initial)), mask_(initial - 1) {}

  /// False: `grow` must come before `push`.
  bool ready() const noexcept { return tail_ - head_ <= mask_; }
  void grow();

  void push(node& one) noexcept {
    one.position = tail_;
    places_[tail_++ & mask_] = &one;
  }
  /// The oldest, unless it was taken out: then null.
  node* front() const noexcept { return places_[head_ & mask_]; }
  void pop() noexcept { ++head_; }
  void take_out(const node& one) noexcept {
    places_[one.position & mask_] = nullptr;
    while (head_ != tail_ && front() == nullptr) pop();
  }

 private:
  static constexpr std::size_t initial = 16;

  std::unique_ptr<node*[]> places_;  ///< a power of two
  std::size_t mask_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

/// The keys that may be taken: one queue for each priority. The highest goes first, but a level
/// that was passed over `turns` times in a row while it had keys is next, the lowest of several
/// before the others.
class ready_list {
 public:
  static constexpr std::uint32_t turns = 8;

  bool empty() const noexcept { return size_ == 0; }
  /// True if a key of normal priority can be pushed without further memory.
  bool ready() const noexcept { return rings_[index(priority::normal)].ready(); }
  void push_simply(node& one) noexcept {
    rings_[index(priority::normal)].push(one);
    one.level = priority::normal;
    one.where = place::queued;
    ++size_;
  }

  std::size_t size() const noexcept { return size_; }
  std::size_t size(priority level) const noexcept {
    return level == priority::normal ? size_ - special() : sizes_[index(level)];
  }

  void push(node& one, priority level);

  void remove(node& one) noexcept {
    rings_[index(one.level)].take_out(one);
    --size_;
    if (one.level != priority::normal) --sizes_[index(one.level)];
  }

  /// The next one where that is easily told: there are no keys but of normal priority, and the
  /// oldest was not taken out. Otherwise null.
  node* simple() const noexcept {
    return special() == 0 ? rings_[index(priority::normal)].front() : nullptr;
  }
  void take_simple() noexcept {
    rings_[index(priority::normal)].pop();
    --size_;
  }

  /// Takes the next one. There must be one.
  node& take() noexcept;

 private:
  static constexpr std::size_t index(priority level) noexcept {
    return static_cast<std::size_t>(level);
  }
  /// Keys whose priority is not the normal one.
  std::size_t special() const noexcept {
    return sizes_[index(priority::high)] + sizes_[index(priority::low)];
  }

  /// The level to take from.
  priority choose() noexcept;

  std::array<ring, levels> rings_;
  std::array<std::size_t, levels> sizes_{};  ///< but for the normal level
  std::size_t size_ = 0;
  std::array<std::uint32_t, levels> passed_over_{};  ///< since its last turn, while it had keys
};

/// What is being processed, in no order.
class in_process {
 public:
  std::size_t size() const noexcept { return size_; }
  void add(node& one) noexcept {
    one.position = size_;
    all_[size_++] = &one;
  }
  void remove(const node& one) noexcept {
    node* const last = all_[--size_];
    all_[one.position] = last;
    last->position = one.position;
  }

  const node* const* begin() const noexcept { return all_.get(); }
  const node* const* end() const noexcept { return all_.get() + size_; }

  /// Makes room for so many; to be called before there may be more.
  void reserve(std::size_t capacity);

 private:
  std::unique_ptr<node*[]> all_;
  std::size_t size_ = 0;
};

}  // namespace rw::core::work_queue_detail
