#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace rw::http {

/// Reads in a row from one connection; then the others on its executor get their turn.
inline constexpr unsigned reads_per_turn = 16;

// Buffers lent by the thread: a connection that waits holds none, so that thousands of quiet ones
// cost no buffers. What is called while one is held may borrow another.

/// Room to read into. Not to be kept over an await.
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

/// An empty text with some capacity, unless the thread has none to lend.
std::string borrow_text() noexcept;

/// Takes a text's memory, for the next who borrows one; `text` is empty and has none afterwards.
void give_back(std::string& text) noexcept;

/// An empty text to append to. Not to be kept over an await.
class text_buffer {
 public:
  text_buffer() noexcept : text(borrow_text()) {}
  ~text_buffer() { give_back(text); }
  text_buffer(const text_buffer&) = delete;
  text_buffer& operator=(const text_buffer&) = delete;

  std::string text;
};

}  // namespace rw::http
