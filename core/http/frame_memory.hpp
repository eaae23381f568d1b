#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>

namespace rw::http {

/// Where one nghttp2 session gets its memory.
///
/// A session keeps a buffer for a frame of 16 KiB all its life, though a quiet connection never
/// writes more than its first bytes. So that buffer comes from pages of its own, which cost memory
/// only once they are written to, and can be given back; everything else comes from malloc.
///
/// Must outlive its session, and stay where it is. Used by one thread at a time.
class frame_memory {
 public:
  frame_memory() noexcept;
  frame_memory(const frame_memory&) = delete;
  frame_memory& operator=(const frame_memory&) = delete;

  /// For nghttp2_session_server_new3 and nghttp2_session_client_new3.
  nghttp2_mem* interface() noexcept { return &interface_; }

  /// A frame of this size was taken from the session.
  void used(std::size_t frame_bytes) noexcept;

  /// Gives back what a large frame has touched. Only while no frame is half-way out of the session:
  /// after nghttp2_session_mem_send has said that there is nothing to send.
  void trim() noexcept;

 private:
  nghttp2_mem interface_;
  char* frame_ = nullptr;
  bool large_ = false;

  friend struct frame_memory_functions;
};

}  // namespace rw::http
