#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rw::http {

// Buffers lent by the thread: a connection that waits holds none, so that thousands of quiet ones
// cost no buffers. Not to be kept over an await. What is called while one is held may borrow
// another.

/// Room to read into.
class read_buffer {
 public:
  static constexpr std::size_t size = 16 * 1024;  ///< one TLS record

  read_buffer();
  ~read_buffer();
  read_buffer(const read_buffer&) = delete;
  read_buffer& operator=(const read_buffer&) = delete;

  std::span<char> bytes() noexcept { return {memory_.get(), size}; }

 private:
  std::unique_ptr<char[]> memory_;
};

/// An empty text to append to, with some capacity.
class text_buffer {
 public:
  text_buffer();
  ~text_buffer();
  text_buffer(const text_buffer&) = delete;
  text_buffer& operator=(const text_buffer&) = delete;

  std::string text;
};

}  // namespace rw::http
