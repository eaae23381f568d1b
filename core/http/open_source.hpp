#pragma once

#include "rw/core/http/message.hpp"

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace rw::http {

/// An answer's source while it is being sent: knows whether it is worth reading, and lets it go as
/// soon as it has ended.
class open_source {
 public:
  using state = body_source::state;

  /// `ready` is called whenever there is something to read after `pending`.
  void open(std::unique_ptr<body_source> source, std::function<void()> ready);
  void close() noexcept;

  /// Reads about `room` bytes. `pending` while there is nothing to read, and at a server that
  /// drains `broken` instead, unless the source has promised to end by itself.
  state read(std::string& into, std::size_t room);

  /// There is something to read; to be called by what was given as `ready`.
  void set_ready() noexcept { ready_ = true; }

  /// What the source threw, which was its end; null if it has not.
  std::exception_ptr failure() const noexcept { return failure_; }

  /// True if a read makes sense.
  bool ready() const noexcept { return ready_ || cut_; }

  /// The server drains.
  void drain();

  explicit operator bool() const noexcept { return source_ != nullptr; }

 private:
  template <class Action>
  void guard(Action action) noexcept;

  std::unique_ptr<body_source> source_;
  std::exception_ptr failure_;
  state last_ = state::end;
  bool ready_ = false;
  bool cut_ = false;
};

}  // namespace rw::http
