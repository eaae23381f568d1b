#pragma once

#include "rw/core/channel/index_ring.hpp"
#include "rw/core/channel/wait_list.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace rw::core {

namespace channel_detail {

/// The part of a channel that its suspended operations share: slots, their order, the two wait
/// lists.
///
/// Exactly one place holds a slot's number at any time: the pool, the ring, or an operation under
/// way, which alone touches the slot then. Pool and ring order these owners. The bound is the
/// ring's. There are `spare` more slots than it admits, for operations under way to hold. Only if
/// more threads than that are inside at once may a send return "full" while there is room.
template <typename T>
class state {
 public:
  explicit state(std::size_t capacity)
      : capacity_(checked(capacity)),
        slots_(std::make_unique_for_overwrite<slot[]>(capacity + spare)),
        vacant_(capacity + spare),
        filled_(capacity, capacity + spare) {}

  state(const state&) = delete;
  state& operator=(const state&) = delete;

  ~state() {
    while (try_receive([](T&&) noexcept {}) == receive_status::received) {
    }
  }

  /// Moves from `value` only if it returns `sent`.
  send_status try_send(T& value) noexcept {
    if (filled_.is_closed()) return send_status::closed;
    send_status status = filled_.ask();
    if (status != send_status::sent) return status;
    const std::size_t at = vacant_.take();
    if (at == slot_pool::none) return send_status::full;
    T* const item = ::new (slots_[at].bytes) T(std::move(value));
    status = filled_.put(at);
    if (status == send_status::sent) {
      receivers_.notify(1);
      return status;
    }
    // Since ask(), another send took the room, or the channel closed.
    value.~T();  // NOLINT(bugprone-use-after-move): the empty shell is replaced by what it held
    ::new (std::addressof(value)) T(std::move(*item));
    std::destroy_at(item);
    vacant_.give({&at, 1});
    if (status == send_status::full) senders_.notify(1);  // for a sender that found the pool empty
    return status;
  }

  /// Calls `consume(T&&)` with the oldest item, if there is one. `consume` must not throw.
  template <typename Consume>
  receive_status try_receive(Consume&& consume) noexcept {
    std::size_t at = 0;
    std::size_t taken = 0;
    const receive_status status = filled_.take({&at, 1}, taken);
    if (status != receive_status::received) return status;
    T* const item = slots_[at].item();
    consume(std::move(*item));
    std::destroy_at(item);
    vacant_.give({&at, 1});
    senders_.notify(1);
    return status;
  }

  /// Appends up to `max` items to `into` and sets `taken` to their number. Reserves room in the
  /// vector before it takes an item, so that nothing is lost if that throws.
  receive_status try_receive_some(std::vector<T>& into, std::size_t max, std::size_t& taken) {
    taken = 0;
    receive_status status = receive_status::received;
    while (taken < max) {
      std::size_t numbers[batch];
      const std::size_t want = std::min({max - taken, batch, std::max<std::size_t>(size(), 1)});
      if (into.capacity() - into.size() < want) {
        into.reserve(std::max(into.size() + want, into.size() + into.size() / 2));
      }
      std::size_t count = 0;
      status = filled_.take({numbers, want}, count);
      if (status != receive_status::received) break;
      for (std::size_t i = 0; i < count; ++i) {
        T* const item = slots_[numbers[i]].item();
        into.push_back(std::move(*item));
        std::destroy_at(item);
      }
      vacant_.give({numbers, count});
      senders_.notify(count);
      taken += count;
    }
    return taken != 0 ? receive_status::received : status;
  }

  void close() noexcept {
    if (!filled_.close()) return;
    // After the mark is set: a waiter that this call misses finds the mark at its second check.
    receivers_.notify_all();
    senders_.notify_all();
  }

  bool is_closed() const noexcept { return filled_.is_closed(); }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t size() const noexcept { return filled_.size(); }

  /// The second check of a waiter: false only if its condition does not hold, or if the operation
  /// that makes it true has yet to check for waiters.
  bool may_send() const noexcept {
    return filled_.is_closed() || (filled_.may_put() && !vacant_.empty());
  }
  bool may_receive() const noexcept { return filled_.may_take(); }

  wait_list& senders() noexcept { return senders_; }
  wait_list& receivers() noexcept { return receivers_; }

 private:
  static constexpr std::size_t spare = 256;
  static constexpr std::size_t batch = 32;

  struct slot {
    alignas(T) std::byte bytes[sizeof(T)];

    T* item() noexcept { return std::launder(reinterpret_cast<T*>(bytes)); }
  };

  static std::size_t checked(std::size_t capacity) {
    if (capacity == 0 || capacity > (std::size_t{1} << 30)) {
      throw std::invalid_argument("a channel's capacity must be between 1 and 2^30");
    }
    return capacity;
  }

  const std::size_t capacity_;
  const std::unique_ptr<slot[]> slots_;
  slot_pool vacant_;
  index_ring filled_;  ///< numbers of the slots that hold an item, in the order of sending
  wait_list senders_;
  wait_list receivers_;
};

}  // namespace channel_detail
}  // namespace rw::core
