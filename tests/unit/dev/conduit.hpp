#pragma once

#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace rw::test {

/// A pipe, read without waiting.
struct conduit {
  conduit() {
    if (::pipe2(ends, O_NONBLOCK) != 0) throw std::runtime_error("pipe2");
  }
  ~conduit() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  conduit(const conduit&) = delete;
  conduit& operator=(const conduit&) = delete;

  std::string take() const {
    char text[65536];
    const auto n = ::read(ends[0], text, sizeof text);
    return n <= 0 ? std::string() : std::string(text, static_cast<std::size_t>(n));
  }

  int ends[2] = {-1, -1};
};

/// What a terminal writes to draw a text.
inline std::string drawing(const std::string& text) {
  return "\x1b[?25l" + text + "\x1b[?25h";
}

}  // namespace rw::test
