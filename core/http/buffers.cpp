#include "rw/core/http/buffers.hpp"

#include <array>
#include <utility>

namespace rw::http {
namespace {

constexpr std::size_t kept_text = 64 * 1024;  // larger ones are not kept

/// What this thread has to lend.
template <class T>
struct stock {
  std::array<T, 8> all;
  std::size_t size = 0;

  T take() noexcept { return size > 0 ? std::move(all[--size]) : T(); }
  void give(T&& buffer) noexcept {
    if (size < all.size()) all[size++] = std::move(buffer);
  }
};

thread_local stock<std::unique_ptr<char[]>> rooms;
thread_local stock<std::string> texts;

}  // namespace

read_buffer::read_buffer() : memory_(rooms.take()) {
  if (!memory_) memory_ = std::make_unique_for_overwrite<char[]>(size);
}

read_buffer::~read_buffer() {
  rooms.give(std::move(memory_));
}

std::string borrow_text() noexcept {
  return texts.take();
}

void give_back(std::string& text) noexcept {
  std::string gone;
  gone.swap(text);
  gone.clear();
  constexpr std::size_t within = 15;  // the text's own memory is not worth a place
  if (gone.capacity() > within && gone.capacity() <= kept_text) texts.give(std::move(gone));
}

}  // namespace rw::http
