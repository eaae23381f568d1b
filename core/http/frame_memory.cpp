#include "rw/core/http/frame_memory.hpp"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace rw::http {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t room = 5 * page;  // a frame and its header

}  // namespace

struct frame_memory_functions {
  static void* allocate(std::size_t size, void* user) {
    auto& owner = *static_cast<frame_memory*>(user);
    if (size < 4 * page || size > room || owner.frame_ != nullptr) return std::malloc(size);
    auto* const found =
        ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return std::malloc(size);
    owner.frame_ = static_cast<char*>(found);
    return found;
  }

  static void release(void* pointer, void* user) {
    auto& owner = *static_cast<frame_memory*>(user);
    if (pointer == nullptr || pointer != owner.frame_) return std::free(pointer);
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

frame_memory::frame_memory() noexcept
    : interface_{this, frame_memory_functions::allocate, frame_memory_functions::release,
                 frame_memory_functions::allocate_zeroed, frame_memory_functions::reallocate} {}

void frame_memory::trim() noexcept {
  if (!used_ || frame_ == nullptr) return;
  used_ = false;
  ::madvise(frame_, room, MADV_DONTNEED);
}

}  // namespace rw::http
