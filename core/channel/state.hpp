#pragma once

#include "core/channel/index_ring.hpp"
#include "core/channel/wait_list.hpp"

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

/// What became of a send that does not wait.
enum class send_status : std::uint8_t { sent, full, closed };

/// What became of a receive that does not wait. `closed`: and nothing is left, nor ever will be.
enum class receive_status : std::uint8_t { received, empty, closed };

namespace channel_detail {

/// The part of a channel that its suspended operations share: slots, the two rings, the two wait
/// lists.
///
/// A slot's number is always in exactly one place: in `free_`, in `filled_`, or in the hands of one
/// operation under way, which alone touches the slot then. The rings order those hands: the entry
/// is written after the slot and read before it.
template <typename T>
class state {
 public:
  explicit state(std::size_t capacity)
      : capacity_(checked(capacity)), slots_(capacity), free_(capacity), filled_(capacity) {
    for (std::size_t i = 0; i < capacity; ++i) free_.put(i);
  }

  state(const state&) = delete;
  state& operator=(const state&) = delete;

  ~state() {
    for (std::size_t at = filled_.take(); at != index_ring::none; at = filled_.take()) {
      std::destroy_at(slots_[at].item());
    }
  }

  /// Moves from `value` only if the answer is `sent`.
  send_status try_send(T& value) noexcept {
    if (filled_.is_closed()) return send_status::closed;
    const std::size_t at = free_.take();
    if (at == index_ring::none)
      return filled_.is_closed() ? send_status::closed : send_status::full;
    T* const item = ::new (slots_[at].place()) T(std::move(value));
    if (!filled_.put(at)) {
      value.~T();
      ::new (std::addressof(value)) T(std::move(*item));
      std::destroy_at(item);
      free_.put(at);
      return send_status::closed;
    }
    receivers_.notify(1);
    return send_status::sent;
  }

  /// Calls `consume(T&&)` with the oldest item, if there is one. It must not throw.
  template <typename Consume>
  receive_status try_receive(Consume&& consume) noexcept {
    const receive_status status = take_one(consume);
    if (status == receive_status::received) senders_.notify(1);
    return status;
  }

  /// Appends up to `max` items to `into`; `taken` says how many. Room in the vector is made before
  /// an item is taken, so that nothing is lost if that throws.
  receive_status try_receive_some(std::vector<T>& into, std::size_t max, std::size_t& taken) {
    struct notifier {  // also on the way out of an exception
      state& self;
      std::size_t& count;
      ~notifier() {
        if (count != 0) self.senders_.notify(count);
      }
    };
    taken = 0;
    if (max == 0) return receive_status::received;
    const notifier at_end{*this, taken};
    const auto append = [&into](T&& item) noexcept { into.push_back(std::move(item)); };
    receive_status status = receive_status::received;
    while (taken < max) {
      if (into.size() == into.capacity()) {
        const std::size_t expected = std::clamp<std::size_t>(size(), 1, max - taken);
        into.reserve(std::max(into.size() + expected, into.size() + into.size() / 2));
      }
      status = take_one(append);
      if (status != receive_status::received) break;
      ++taken;
    }
    return taken != 0 ? receive_status::received : status;
  }

  void close() noexcept {
    if (!filled_.close()) return;
    // Wakes after the bit is set: whoever is not seen by this looks at the bit after having pushed.
    receivers_.notify_all();
    senders_.notify_all();
  }

  bool is_closed() const noexcept { return filled_.is_closed(); }
  std::size_t capacity() const noexcept { return capacity_; }
  std::size_t size() const noexcept { return std::min(filled_.distance(), capacity_); }

  /// The second look of a waiter: false only if its condition does not hold, or comes true by an
  /// operation that has still to look for waiters.
  bool may_send() const noexcept { return !free_.looks_empty() || filled_.is_closed(); }
  bool may_receive() const noexcept { return !filled_.looks_empty() || filled_.is_closed(); }

  wait_list& senders() noexcept { return senders_; }
  wait_list& receivers() noexcept { return receivers_; }

 private:
  struct slot {
    alignas(T) std::byte bytes[sizeof(T)];

    void* place() noexcept { return bytes; }
    T* item() noexcept { return std::launder(reinterpret_cast<T*>(bytes)); }
  };

  static std::size_t checked(std::size_t capacity) {
    if (capacity == 0 || capacity > (std::size_t{1} << 30)) {
      throw std::invalid_argument("a channel's capacity must be between 1 and 2^30");
    }
    return capacity;
  }

  template <typename Consume>
  receive_status take_one(Consume&& consume) noexcept {
    const bool closed = filled_.is_closed();  // before the take: only then is "none" final
    const std::size_t at = filled_.take();
    if (at == index_ring::none) return closed ? receive_status::closed : receive_status::empty;
    T* const item = slots_[at].item();
    consume(std::move(*item));
    std::destroy_at(item);
    free_.put(at);
    return receive_status::received;
  }

  const std::size_t capacity_;
  std::vector<slot> slots_;
  index_ring free_;    ///< numbers of the slots that are vacant; never closed
  index_ring filled_;  ///< numbers of the slots that hold an item, in the order of sending
  wait_list senders_;
  wait_list receivers_;
};

}  // namespace channel_detail
}  // namespace rw::core
