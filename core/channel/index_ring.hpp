#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace rw::core::channel_detail {

/// Keeps apart what different threads write: two cache lines, since x86 fetches them in pairs.
inline constexpr std::size_t line_pair = 128;

/// A lock-free, linearizable FIFO of small integers, any number of which up to `slots` may be
/// inside at once. This is the queue SCQ of R. Nikolaev, "A Scalable, Portable, and
/// Memory-Efficient Lock-Free FIFO Queue" (DISC 2019, arXiv:1908.04511), with two additions: it can
/// be closed, and a take looks before it moves the head.
///
/// How it works. `2 * slots` entries form a ring; a put draws a ticket from `tail_`, a take from
/// `head_`, and the ticket names an entry (its low bits) and a cycle (the rest). An entry is one
/// word {cycle, safe, index}. A put stores its index if the entry is of an earlier cycle, vacant
/// and safe; otherwise it draws again. A take that comes before its put makes the entry unusable
/// for that put: a vacant one gets the take's cycle, an occupied one (its take is late) loses its
/// safe bit. A put trusts an unsafe entry only if no take has drawn its ticket yet. `threshold_`
/// bounds how far takes may chase the tail: with at most `slots` indices inside a ring of twice the
/// size, the last one is never more than `3 * slots - 1` failed takes away, so once that many
/// failed the ring was empty.
///
/// Ordering: every access is seq_cst. The published proof is for sequential consistency, it needs
/// store-load order in two places (entry against head in put, threshold against entry in take), and
/// the wait list above relies on put, take and `looks_empty` being in one total order with its own
/// counter. On x86 only the rare store to the threshold pays for it.
///
/// Limit: at most `slots` threads may be inside at once (the bound of the proof); hence
/// `least_slots`.
class index_ring {
 public:
  static constexpr std::size_t none = ~std::size_t{0};
  /// Lower bound of `slots`, and so the number of threads that any ring can serve at once.
  static constexpr std::size_t least_slots = 256;

  /// Room for at least `indices` indices, each of which must be smaller than `indices`. Empty.
  explicit index_ring(std::size_t indices)
      : order_(
            static_cast<unsigned>(std::countr_zero(std::bit_ceil(std::max(indices, least_slots)))) +
            1),
        vacant_((std::uint64_t{1} << order_) - 1),
        limit_(static_cast<std::int64_t>(3 * (std::uint64_t{1} << (order_ - 1)) - 1)),
        entries_(std::make_unique<std::atomic<std::uint64_t>[]>(std::size_t{1} << order_)),
        tail_(std::uint64_t{1} << order_),
        head_(std::uint64_t{1} << order_),
        threshold_(-1) {
    for (std::size_t i = 0; i <= vacant_; ++i) entries_[i].store(word(0, vacant_));
  }

  /// Appends `index`, which the caller owns. False if the ring is closed: then nothing happened.
  /// Lock-free.
  bool put(std::size_t index) noexcept {
    for (;;) {
      const std::uint64_t ticket = tail_.fetch_add(1);
      if ((ticket & closed_bit) != 0) return false;
      const std::uint64_t cycle = ticket >> order_;
      std::atomic<std::uint64_t>& entry = entries_[place(ticket)];
      std::uint64_t seen = entry.load();
      while (cycle_of(seen) < cycle && (seen & vacant_) == vacant_ &&
             ((seen & safe_bit()) != 0 || head_.load() <= ticket)) {
        if (entry.compare_exchange_weak(seen, word(cycle, index))) {
          if (threshold_.load() != limit_) threshold_.store(limit_);
          return true;
        }
      }
    }
  }

  /// Removes the oldest index; `none` if there is none. If the ring was closed before the call,
  /// `none` is final: no put can succeed any more whose index is not already with another take.
  /// Lock-free.
  std::size_t take() noexcept {
    const bool final = is_closed();
    // The threshold speaks of puts that are done; after close also those under way must be outrun,
    // which takes drawing every ticket up to the tail.
    if (!final && threshold_.load() < 0) return none;
    if (nothing_ahead()) return none;
    for (;;) {
      const std::uint64_t ticket = head_.fetch_add(1);
      const std::uint64_t cycle = ticket >> order_;
      std::atomic<std::uint64_t>& entry = entries_[place(ticket)];
      std::uint64_t seen = entry.load();
      for (;;) {
        const std::uint64_t seen_cycle = cycle_of(seen);
        if (seen_cycle == cycle) {
          // Nobody but us may empty it; a later take may clear the safe bit meanwhile, hence `or`.
          entry.fetch_or(vacant_);
          return static_cast<std::size_t>(seen & vacant_);
        }
        if (seen_cycle > cycle) break;
        const bool empty = (seen & vacant_) == vacant_;
        const std::uint64_t outrun =
            empty ? (cycle << (order_ + 1)) | (seen & safe_bit()) | vacant_ : seen & ~safe_bit();
        if (entry.compare_exchange_weak(seen, outrun)) break;
      }
      const std::uint64_t tail = tail_.load();
      if ((tail & ~closed_bit) <= ticket + 1) {
        if ((tail & closed_bit) == 0) catch_up(tail, ticket + 1);
        threshold_.fetch_sub(1);
        return none;
      }
      if (threshold_.fetch_sub(1) <= 0 && !final) return none;
    }
  }

  /// Makes every put from now on fail. True for the first call.
  bool close() noexcept { return (tail_.fetch_or(closed_bit) & closed_bit) == 0; }

  bool is_closed() const noexcept { return (tail_.load() & closed_bit) != 0; }

  /// False if an index is inside whose put is done and which no take has begun to remove. May also
  /// be false for a moment when there is none; a take that finds none makes it true.
  bool looks_empty() const noexcept {
    if (threshold_.load() < 0) return true;
    const std::uint64_t head = head_.load();
    return (tail_.load() & ~closed_bit) <= head;
  }

  /// Number of tickets between head and tail: an estimate of how many indices are inside.
  std::size_t distance() const noexcept {
    const std::uint64_t head = head_.load();
    const std::uint64_t tail = tail_.load() & ~closed_bit;
    return tail > head ? static_cast<std::size_t>(tail - head) : 0;
  }

 private:
  static constexpr std::uint64_t closed_bit = std::uint64_t{1} << 63;

  std::uint64_t safe_bit() const noexcept { return vacant_ + 1; }
  std::uint64_t cycle_of(std::uint64_t entry) const noexcept { return entry >> (order_ + 1); }
  std::uint64_t word(std::uint64_t cycle, std::uint64_t index) const noexcept {
    return (cycle << (order_ + 1)) | safe_bit() | index;
  }

  /// Neighbouring tickets go to different cache lines (8 entries each).
  std::size_t place(std::uint64_t ticket) const noexcept {
    const std::uint64_t at = ticket & vacant_;
    return static_cast<std::size_t>(((at << 3) & vacant_) | (at >> (order_ - 3)));
  }

  /// True if every ticket that a put has drawn was drawn by a take too: the same evidence as in
  /// take, without moving the head away from the tail. The tail, which puts keep busy, is only read
  /// where the entry at the head holds nothing. Head before tail: the head only grows, so it is
  /// still at or beyond the tail when the tail is read.
  bool nothing_ahead() const noexcept {
    const std::uint64_t head = head_.load();
    if (cycle_of(entries_[place(head)].load()) == head >> order_) return false;
    return (tail_.load() & ~closed_bit) <= head;
  }

  /// Takes have overtaken the tail: brings it up, so that puts need not try each entry between.
  void catch_up(std::uint64_t tail, std::uint64_t head) noexcept {
    while (!tail_.compare_exchange_weak(tail, head)) {
      if ((tail & closed_bit) != 0) return;
      head = head_.load();
      tail = tail_.load();
      if ((tail & closed_bit) != 0 || tail >= head) return;
    }
  }

  const unsigned order_;        ///< the ring has 2^order_ entries
  const std::uint64_t vacant_;  ///< the index that means "none": all ones
  const std::int64_t limit_;
  const std::unique_ptr<std::atomic<std::uint64_t>[]> entries_;
  alignas(line_pair) std::atomic<std::uint64_t> tail_;
  alignas(line_pair) std::atomic<std::uint64_t> head_;
  alignas(line_pair) std::atomic<std::int64_t> threshold_;
};

}  // namespace rw::core::channel_detail
