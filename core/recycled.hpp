#pragma once

#include <array>
#include <cstddef>
#include <new>

namespace rw::core {

// Memory of what comes and goes with each message. A thread keeps the memory of some objects of a
// size for the next ones, whichever thread made them. Thread-safe.

/// How many objects' memory a thread keeps, unless another number is said.
inline constexpr std::size_t usually_kept = 8;

/// False with AddressSanitizer: a use of what was freed is to be found.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool recycles = false;
#elif defined(__has_feature)
inline constexpr bool recycles = !__has_feature(address_sanitizer);
#else
inline constexpr bool recycles = true;
#endif

namespace recycled_detail {

/// Blocks of one size that this thread keeps.
template <std::size_t Bytes, std::size_t Kept>
class kept_blocks {
 public:
  kept_blocks() = default;
  kept_blocks(const kept_blocks&) = delete;
  kept_blocks& operator=(const kept_blocks&) = delete;
  /// What is freed later, by destructors of other objects of the thread, is not kept.
  ~kept_blocks() {
    ended = true;
    while (count_ > 0) ::operator delete(blocks_[--count_]);
  }

  void* take() { return count_ > 0 ? blocks_[--count_] : ::operator new(Bytes); }
  void give(void* block) noexcept {
    if (count_ == blocks_.size()) return ::operator delete(block);
    blocks_[count_++] = block;
  }

  static thread_local bool ended;
  static thread_local kept_blocks here;

 private:
  std::array<void*, Kept> blocks_{};
  std::size_t count_ = 0;
};

template <std::size_t Bytes, std::size_t Kept>
thread_local bool kept_blocks<Bytes, Kept>::ended = false;
template <std::size_t Bytes, std::size_t Kept>
thread_local kept_blocks<Bytes, Kept> kept_blocks<Bytes, Kept>::here;

template <std::size_t Bytes, std::size_t Kept = usually_kept>
void* take() {
  using kept = kept_blocks<Bytes, Kept>;
  return recycles && !kept::ended ? kept::here.take() : ::operator new(Bytes);
}

template <std::size_t Bytes, std::size_t Kept = usually_kept>
void give(void* block) noexcept {
  using kept = kept_blocks<Bytes, Kept>;
  if (!recycles || kept::ended) return ::operator delete(block);
  kept::here.give(block);
}

}  // namespace recycled_detail

/// Base of a class whose objects reuse memory. No other class may derive from `Object`.
template <class Object, std::size_t Kept = usually_kept>
struct recycled {
  static void* operator new(std::size_t) { return recycled_detail::take<sizeof(Object), Kept>(); }
  static void operator delete(void* block) noexcept {
    recycled_detail::give<sizeof(Object), Kept>(block);
  }
};

/// Allocator of single objects that reuse memory.
template <class T>
struct recycled_allocator {
  using value_type = T;

  recycled_allocator() noexcept = default;
  template <class Other>
  recycled_allocator(const recycled_allocator<Other>&) noexcept {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__, "T must not be over-aligned");
    auto* const block =
        count == 1 ? recycled_detail::take<sizeof(T)>() : ::operator new(count * sizeof(T));
    return static_cast<T*>(block);
  }
  void deallocate(T* block, std::size_t count) noexcept {
    if (count == 1) return recycled_detail::give<sizeof(T)>(block);
    ::operator delete(block);
  }

  friend bool operator==(const recycled_allocator&, const recycled_allocator&) = default;
};
template <>
struct recycled_allocator<void> {
  using value_type = void;
  friend bool operator==(const recycled_allocator&, const recycled_allocator&) = default;
};

}  // namespace rw::core
