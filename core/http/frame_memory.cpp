#include "rw/core/http/frame_memory.hpp"

#include "rw/core/recycled.hpp"

#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace rw::http {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t room = 5 * page;  // a frame and its header

}  // namespace

struct frame_memory_functions {
  static void* allocate(std::size_t size, void* user) {
    auto& owner = *static_cast<frame_memory*>(user);
    if (size <= frame_memory::sizes * frame_memory::step) return owner.take_block(size);
    if (size < 4 * page || size > room || owner.frame_ != nullptr) return std::malloc(size);
    auto* const found =
        ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return std::malloc(size);
    owner.frame_ = static_cast<char*>(found);
    return found;
  }

  static void release(void* pointer, void* user) {
    auto& owner = *static_cast<frame_memory*>(user);
    if (pointer == nullptr) return;
    if (pointer != owner.frame_) return owner.give_block(pointer);
    owner.frame_ = nullptr;
    ::munmap(pointer, room);
  }

  static void* allocate_zeroed(std::size_t count, std::size_t size, void*) {
    return std::calloc(count, size);
  }

  static void* reallocate(void* pointer, std::size_t size, void* user) {
    if (pointer == nullptr) return allocate(size, user);
    if (pointer != static_cast<frame_memory*>(user)->frame_) return std::realloc(pointer, size);
    if (size <= room) return pointer;
    auto* const moved = std::malloc(size);
    if (moved == nullptr) return nullptr;
    std::memcpy(moved, pointer, room);
    release(pointer, user);
    return moved;
  }
};

/// A kept block, or a new one.
void* frame_memory::take_block(std::size_t size) noexcept {
  const auto at = size == 0 ? 0 : (size - 1) / step;
  auto* const found = blocks_[at];
  if (found == nullptr) return std::malloc((at + 1) * step);
  blocks_[at] = found->next;
  --kept_;
  return found;
}

void frame_memory::give_block(void* pointer) noexcept {
  const auto steps = core::recycles ? ::malloc_usable_size(pointer) / step : 0;
  if (steps == 0 || steps > sizes || kept_ == kept_blocks) return std::free(pointer);
  auto*& first = blocks_[steps - 1];
  first = ::new (pointer) block{first};
  ++kept_;
}

void frame_memory::drop_blocks() noexcept {
  for (auto& first : blocks_) {
    while (first != nullptr) std::free(std::exchange(first, first->next));
  }
  kept_ = 0;
}

frame_memory::frame_memory() noexcept
    : interface_{this, frame_memory_functions::allocate, frame_memory_functions::release,
                 frame_memory_functions::allocate_zeroed, frame_memory_functions::reallocate} {}

void frame_memory::trim() noexcept {
  drop_blocks();
  if (!used_ || frame_ == nullptr) return;
  used_ = false;
  ::madvise(frame_, room, MADV_DONTNEED);
}

}  // namespace rw::http
