#pragma once

#include <nghttp2/nghttp2.h>

#include <array>
#include <cstddef>

namespace rw::http {

/// Where one nghttp2 session gets its memory.
///
/// A session keeps a buffer for a frame of 16 KiB all its life, though a quiet connection hardly
/// writes a frame. So that buffer comes from pages of its own, which cost memory only once they are
/// written to, and can be given back. Everything else comes from malloc; small blocks, of which
/// each stream takes several, are kept for the next stream.
///
/// Must outlive its session, and stay where it is. Used by one thread at a time.
class frame_memory {
 public:
  frame_memory() noexcept;
  ~frame_memory() { drop_blocks(); }
  frame_memory(const frame_memory&) = delete;
  frame_memory& operator=(const frame_memory&) = delete;

  /// For nghttp2_session_server_new3 and nghttp2_session_client_new3.
  nghttp2_mem* interface() noexcept { return &interface_; }

  /// A frame was taken from the session.
  void used() noexcept { used_ = true; }

  /// Gives back what frames have touched. Only while no frame is half-way out of the session: after
  /// nghttp2_session_mem_send has said that there is nothing to send.
  void trim() noexcept;

 private:
  struct block {
    block* next;
  };
  static constexpr std::size_t step = 64;  ///< bytes from one size to the next
  static constexpr std::size_t sizes = 6;
  static constexpr std::size_t kept_blocks = 16;

  void* take_block(std::size_t size) noexcept;
  void give_block(void* pointer) noexcept;
  void drop_blocks() noexcept;

  nghttp2_mem interface_;
  std::array<block*, sizes> blocks_{};  ///< kept ones, by the size that they have at least
  std::size_t kept_ = 0;
  char* frame_ = nullptr;
  bool used_ = false;

  friend struct frame_memory_functions;
};

}  // namespace rw::http
