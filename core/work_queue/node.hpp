#pragma once

#include "core/clock.hpp"

#include <cstddef>
#include <cstdint>

namespace rw::core {

/// How urgent a key is.
enum class priority : std::uint8_t { high, normal, low };

namespace work_queue_detail {

inline constexpr std::size_t levels = 3;
inline constexpr std::uint32_t none = ~std::uint32_t{0};

/// A place in a circular list whose ends are its head.
struct links {
  links* previous;
  links* next;
};

/// A list through its elements' own links: taking out from anywhere costs two stores. An element is
/// in one list at a time.
class list {
 public:
  list() noexcept { clear(); }
  list(const list&) = delete;
  list& operator=(const list&) = delete;

  bool empty() const noexcept { return ends_.next == &ends_; }
  links& front() noexcept { return *ends_.next; }
  void clear() noexcept { ends_.previous = ends_.next = &ends_; }

  void push_back(links& one) noexcept {
    links* const last = ends_.previous;
    one.previous = last;
    one.next = &ends_;
    last->next = &one;
    ends_.previous = &one;
  }
  static void remove(links& one) noexcept {
    one.previous->next = one.next;
    one.next->previous = one.previous;
  }

 private:
  links ends_;
};

enum class place : std::uint8_t {
  nowhere,     ///< delayed, or only remembered for its failures, or a free slot
  queued,      ///< in the list of its level
  processing,  ///< taken and not done
};

/// What the queue knows of a key, but for the key. The links are for when it is neither queued nor
/// processed.
struct node : links {
  duration::rep added = 0;    ///< when it was added that waits to be taken
  duration::rep started = 0;  ///< when it was taken
  std::size_t position = 0;   ///< in the ring of its level, or among what is processed
  std::uint32_t hash = 0;
  std::uint32_t number = 0;       ///< of its slot
  std::uint32_t delay_place = 0;  ///< in the heap of delays, from 1; 0: not delayed
  std::uint32_t failures = 0;     ///< rate-limited additions since the last `forget`
  place where = place::nowhere;
  priority level = priority::normal;        ///< of its place in the queue, or of how it was taken
  priority again_level = priority::normal;  ///< if `again`
  priority delayed_level = priority::normal;
  bool again = false;       ///< added while it was processed: is queued when that is done
  bool remembered = false;  ///< in the list of those that are kept for their failures

  bool delayed() const noexcept { return delay_place != 0; }
};

}  // namespace work_queue_detail
}  // namespace rw::core
