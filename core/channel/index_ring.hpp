#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace rw::core {

/// Result of a send that does not wait.
enum class send_status : std::uint8_t { sent, full, closed };

/// Result of a receive that does not wait. `closed`: and no item is left, nor ever will be.
enum class receive_status : std::uint8_t { received, empty, closed };

namespace channel_detail {

/// Separates data that different threads write: two cache lines, since x86 fetches them in pairs.
inline constexpr std::size_t line_pair = 128;

/// A lock-free, linearizable, bounded FIFO of small integers, which can be closed: the circular
/// queue NCQ of R. Nikolaev, "A Scalable, Portable, and Memory-Efficient Lock-Free FIFO Queue"
/// (DISC 2019, arXiv:1908.04511, section on the naive circular queue), with a bound, a close and a
/// take of several. The paper's SCQ draws tickets by fetch-and-add, which scales to many
/// processors, but costs three more atomic read-modify-writes for each item; measured on two
/// processors that is half of the speed.
///
/// **Algorithm.** Each entry of the ring is one word {cycle, index}. Position p (head or tail,
/// which only grow) names entry p mod size and cycle p / size. A put fills the entry at the tail by
/// compare-and-swap, replacing the previous cycle, and then advances the tail. A thread that finds
/// the entry at the tail filled advances the tail for the thread that filled it. A take reads the
/// entry at the head and advances the head by compare-and-swap. Closing puts a mark that neither
/// tail nor head ever passes.
///
/// **Linearization points.** A put and a close: the swap of the entry. A take: the swap of the
/// head. "Empty": the read of an unfilled entry while the head named it. "Full": the read of the
/// unfilled entry at the tail, while the tail named it and the head was `capacity` positions before
/// it.
///
/// **Ordering.** Everything is seq_cst unless marked. The entry must be ordered after the tail or
/// head that named it, and both must be read again after it. The wait lists need put, take, close
/// and the two `may_` queries in one total order with their own counters. On x86 seq_cst loads are
/// free, and there are no stores but swaps.
class index_ring {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  /// For up to `capacity` indices, each below `indices`.
  index_ring(std::size_t capacity, std::size_t indices)
      : capacity_(static_cast<std::int64_t>(capacity)),
        order_(
            static_cast<unsigned>(std::bit_width(capacity))),  // one entry more than fits, at least
        index_bits_(static_cast<unsigned>(std::bit_width(indices))),
        mark_((std::uint64_t{1} << index_bits_) - 1),
        // Value-initialised: cycle 0, where positions start with cycle 1.
        entries_(std::make_unique<std::atomic<std::uint64_t>[]>(std::size_t{1} << order_)),
        tail_(std::uint64_t{1} << order_),
        head_seen_(std::uint64_t{1} << order_),
        head_(std::uint64_t{1} << order_) {}

  /// Appends `index`. Lock-free.
  send_status put(std::size_t index) noexcept {
    for (;;) {
      const std::uint64_t tail = tail_.load();
      std::optional<send_status> seen = look(tail);
      if (seen == send_status::sent) seen = fill(tail, index);
      if (seen) return *seen;
    }
  }

  /// Returns what put would return. `sent` says only that a put is worth trying.
  send_status ask() noexcept {
    for (;;) {
      const std::optional<send_status> seen = look(tail_.load());
      if (seen) return *seen;
    }
  }

  /// Removes the oldest indices, as many as there are and fit, into `into`, which must not be
  /// empty, and sets `taken`. All of them at one instant. Lock-free.
  receive_status take(std::span<std::size_t> into, std::size_t& taken) noexcept {
    for (;;) {
      const std::uint64_t head = head_.load();
      std::size_t count = 0;
      while (count < into.size()) {
        const std::uint64_t entry = entry_at(head + count).load();
        if (cycle_of(entry) != cycle(head + count)) break;
        if ((entry & mark_) == mark_) {
          if (count == 0) return receive_status::closed;  // the head never moves past the mark
          break;
        }
        into[count++] = static_cast<std::size_t>(entry & mark_);
      }
      if (count == 0) {
        if (head_.load() == head) return receive_status::empty;
        continue;
      }
      // An unmoved head proves that no take removed any of these, so that no put has refilled their
      // entries.
      std::uint64_t expected = head;
      if (head_.compare_exchange_strong(expected, head + count)) {
        taken = count;
        return receive_status::received;
      }
    }
  }

  /// Closes the ring: every later put returns `closed`, and take too once nothing is left. Returns
  /// true for the call that closed it. Lock-free.
  bool close() noexcept {
    bool first = false;
    for (;;) {
      const std::uint64_t tail = tail_.load();
      const std::uint64_t entry = entry_at(tail).load();
      if (cycle_of(entry) == cycle(tail)) {
        if ((entry & mark_) == mark_) break;
        advance_tail(tail);
        continue;
      }
      std::uint64_t expected = entry;
      first = cycle_of(entry) + 1 == cycle(tail) &&
              entry_at(tail).compare_exchange_strong(expected, word(tail, mark_));
      if (first) break;
    }
    closed_.store(true);
    return first;
  }

  bool is_closed() const noexcept { return closed_.load(); }

  /// Returns false only if a take would return `empty`, or if the put of its entry has not taken
  /// effect.
  bool may_take() const noexcept {
    const std::uint64_t head = head_.load();
    return cycle_of(entry_at(head).load()) >= cycle(head);
  }

  /// Returns false only if a put would return `full`.
  bool may_put() const noexcept {
    const std::uint64_t tail = tail_.load();
    return distance(tail, head_.load()) < capacity_ || is_closed();
  }

  std::size_t size() const noexcept {
    const std::uint64_t head = head_.load();
    const std::int64_t between = distance(tail_.load(), head);
    if (between <= 0) return 0;
    return static_cast<std::size_t>(between < capacity_ ? between : capacity_);
  }

 private:
  std::atomic<std::uint64_t>& entry_at(std::uint64_t position) const noexcept {
    return entries_[position & ((std::uint64_t{1} << order_) - 1)];
  }
  std::uint64_t cycle(std::uint64_t position) const noexcept { return position >> order_; }
  std::uint64_t cycle_of(std::uint64_t entry) const noexcept { return entry >> index_bits_; }
  std::uint64_t word(std::uint64_t position, std::uint64_t index) const noexcept {
    return (cycle(position) << index_bits_) | index;
  }
  /// Negative for a moment, if a filled entry is taken before the tail advances.
  static std::int64_t distance(std::uint64_t tail, std::uint64_t head) noexcept {
    return static_cast<std::int64_t>(tail - head);
  }

  void advance_tail(std::uint64_t tail) noexcept { tail_.compare_exchange_strong(tail, tail + 1); }

  /// Decides what a put at `tail` may do; nothing if that is no longer the tail. Reads the head, a
  /// contended cache line, only if the last observed head does not prove that there is room.
  std::optional<send_status> look(std::uint64_t tail) noexcept {
    // Relaxed: any head ever read is a lower bound of the head.
    if (distance(tail, head_seen_.load(std::memory_order_relaxed)) < capacity_) {
      return send_status::sent;
    }
    const std::uint64_t entry = entry_at(tail).load();
    if (cycle_of(entry) == cycle(tail)) {
      if ((entry & mark_) == mark_) return send_status::closed;
      advance_tail(tail);
      return std::nullopt;
    }
    const std::uint64_t head = head_.load();
    if (distance(tail, head) < capacity_) {
      head_seen_.store(head, std::memory_order_relaxed);
      return send_status::sent;
    }
    return tail_.load() == tail ? std::optional(send_status::full) : std::nullopt;
  }

  /// Called with room at `tail`. Returns nothing if that is no longer the tail.
  std::optional<send_status> fill(std::uint64_t tail, std::size_t index) noexcept {
    std::uint64_t entry = entry_at(tail).load();
    if (cycle_of(entry) + 1 == cycle(tail) &&
        entry_at(tail).compare_exchange_strong(entry, word(tail, index))) {
      advance_tail(tail);
      return send_status::sent;
    }
    if (cycle_of(entry) == cycle(tail)) {  // filled by another thread
      if ((entry & mark_) == mark_) return send_status::closed;
      advance_tail(tail);
    }
    return std::nullopt;
  }

  const std::int64_t capacity_;
  const unsigned order_;  ///< the ring has 2^order_ entries
  const unsigned index_bits_;
  const std::uint64_t mark_;  ///< in place of an index: closed
  const std::unique_ptr<std::atomic<std::uint64_t>[]> entries_;
  std::atomic<bool> closed_{false};
  alignas(line_pair) std::atomic<std::uint64_t> tail_;
  std::atomic<std::uint64_t> head_seen_;
  alignas(line_pair) std::atomic<std::uint64_t> head_;
};

/// A lock-free set of free slot numbers: a stack (R. K. Treiber, 1986) linked by number. Last in,
/// first out, so that the memory in use is what the caches hold. The top word holds the top number
/// and, against ABA, a count of takes in all remaining bits: at least 33, 53 for a capacity of
/// 1024.
class slot_pool {
 public:
  static constexpr std::size_t none = index_ring::none;

  /// Holds the numbers below `slots`.
  explicit slot_pool(std::size_t slots)
      : number_bits_(static_cast<unsigned>(std::bit_width(slots))),
        number_mask_((std::uint64_t{1} << number_bits_) - 1),
        next_(std::make_unique<std::atomic<std::uint32_t>[]>(slots)),
        top_(0) {
    for (std::size_t i = 0; i < slots; ++i) {
      next_[i].store(static_cast<std::uint32_t>(i + 1 < slots ? i + 1 : number_mask_));
    }
  }

  /// Returns `none` if the pool is empty. Lock-free.
  std::size_t take() noexcept {
    std::uint64_t top = top_.load();
    for (;;) {
      const std::uint64_t number = top & number_mask_;
      if (number == number_mask_) return none;
      // Relaxed: what a give stored is visible through `top_`; a later value makes the swap fail.
      const std::uint64_t next = next_[number].load(std::memory_order_relaxed);
      const std::uint64_t takes = (top >> number_bits_) + 1;
      if (top_.compare_exchange_weak(top, (takes << number_bits_) | next)) {
        return static_cast<std::size_t>(number);
      }
    }
  }

  /// Returns several numbers to the pool at one instant. Lock-free.
  void give(std::span<const std::size_t> numbers) noexcept {
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) link(numbers[i], numbers[i + 1]);
    std::uint64_t top = top_.load();
    do {
      link(numbers.back(), top & number_mask_);
    } while (!top_.compare_exchange_weak(top, (top & ~number_mask_) | numbers.front()));
  }

  bool empty() const noexcept { return (top_.load() & number_mask_) == number_mask_; }

 private:
  void link(std::size_t from, std::uint64_t to) noexcept {
    next_[from].store(static_cast<std::uint32_t>(to), std::memory_order_relaxed);
  }

  const unsigned number_bits_;
  const std::uint64_t number_mask_;  ///< as a number: none
  const std::unique_ptr<std::atomic<std::uint32_t>[]> next_;
  alignas(line_pair) std::atomic<std::uint64_t> top_;
};

}  // namespace channel_detail
}  // namespace rw::core
