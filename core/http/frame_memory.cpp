#include "core/http/frame_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace rw::http {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t slot = 5 * page;               // a frame and its header
constexpr std::size_t smallest = 4 * page;           // what is worth a slot
constexpr std::size_t step = 64 * slot;              // slots are made usable this many at a time
constexpr std::size_t reserved = step * (1u << 12);  // addresses for 262,144 sessions, no memory

/// Slots in one range of addresses, so that a pointer tells where it comes from. Never unmapped.
class slots {
 public:
  static slots& get() {
    static auto* const one = new slots;  // outlives whatever static object still holds a session
    return *one;
  }

  /// Null if there is none left.
  char* take() noexcept {
    const std::lock_guard lock(guard_);
    if (!free_.empty()) {
      auto* const found = free_.back();
      free_.pop_back();
      return found;
    }
    if (used_ + slot > usable_ && !grow()) return nullptr;
    used_ += slot;
    return base_ + used_ - slot;
  }

  void give(char* which) noexcept {
    ::madvise(which, slot, MADV_DONTNEED);
    const std::lock_guard lock(guard_);
    free_.push_back(which);
  }

  bool holds(const void* pointer) const noexcept {
    const auto* const p = static_cast<const char*>(pointer);
    return base_ != nullptr && p >= base_ && p < base_ + reserved;
  }

 private:
  slots() {
    if (::sysconf(_SC_PAGESIZE) != page) return;  // larger pages would cost more than malloc does
    auto* const found =
        ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) return;
    ::madvise(found, reserved, MADV_NOHUGEPAGE);
    base_ = static_cast<char*>(found);
  }

  bool grow() noexcept {
    if (base_ == nullptr || usable_ == reserved) return false;
    if (::mprotect(base_ + usable_, step, PROT_READ | PROT_WRITE) != 0) return false;
    usable_ += step;
    try {
      free_.reserve(usable_ / slot);  // so that `give` never has to allocate
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  char* base_ = nullptr;
  std::mutex guard_;
  std::size_t usable_ = 0;
  std::size_t used_ = 0;
  std::vector<char*> free_;
};

}  // namespace

struct frame_memory_functions {
  static void* allocate(std::size_t size, void* user) {
    auto& owner = *static_cast<frame_memory*>(user);
    if (size >= smallest && size <= slot && owner.frame_ == nullptr) {
      owner.frame_ = slots::get().take();
      if (owner.frame_ != nullptr) return owner.frame_;
    }
    return std::malloc(size);
  }

  static void release(void* pointer, void* user) {
    if (!slots::get().holds(pointer)) return std::free(pointer);
    static_cast<frame_memory*>(user)->frame_ = nullptr;
    slots::get().give(static_cast<char*>(pointer));
  }

  static void* allocate_zeroed(std::size_t count, std::size_t size, void*) {
    return std::calloc(count, size);
  }

  static void* reallocate(void* pointer, std::size_t size, void* user) {
    if (pointer == nullptr) return allocate(size, user);
    if (!slots::get().holds(pointer)) return std::realloc(pointer, size);
    if (size <= slot) return pointer;
    auto* const moved = std::malloc(size);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, pointer, slot);
    release(pointer, user);
    return moved;
  }
};

frame_memory::frame_memory() noexcept
    : interface_{this, frame_memory_functions::allocate, frame_memory_functions::release,
                 frame_memory_functions::allocate_zeroed, frame_memory_functions::reallocate} {}

void frame_memory::used(std::size_t frame_bytes) noexcept {
  if (frame_bytes > page) large_ = true;
}

void frame_memory::trim() noexcept {
  if (!large_ || frame_ == nullptr) return;
  large_ = false;
  ::madvise(frame_ + page, slot - page, MADV_DONTNEED);
}

}  // namespace rw::http
