#include "rw/core/http/open_source.hpp"

#include <utility>

namespace rw::http {

/// Calls the source. What it throws must not pass through nghttp2's frames, which are C.
template <class Action>
void open_source::guard(Action action) noexcept {
  try {
    action();
  } catch (...) {
    failure_ = std::current_exception();
    last_ = state::broken;
    ready_ = true;
  }
}

void open_source::open(std::unique_ptr<body_source> source, std::function<void()> ready) {
  source_ = std::move(source);
  last_ = state::more;
  ready_ = true;
  cut_ = false;
  failure_ = nullptr;
  guard([&] { source_->on_ready(std::move(ready)); });
}

void open_source::close() noexcept {
  // Moved out first: what its end sets off may come back here.
  const auto gone = std::move(source_);
  last_ = state::end;
  ready_ = cut_ = false;
}

open_source::state open_source::read(std::string& into, std::size_t room) {
  if (!source_) return last_;
  if (ready_ && last_ != state::broken) {
    const auto before = into.size();
    ready_ = false;
    guard([&] { last_ = source_->read(into, room); });
    if (last_ == state::more) {
      ready_ = true;
      // Nothing yet, but no call to wait for: as if it were pending, and ready at once.
      if (into.size() == before) last_ = state::pending;
    }
  }
  if (last_ == state::pending && cut_ && !ready_) last_ = state::broken;
  if (last_ == state::end || last_ == state::broken) {
    const auto gone = std::move(source_);
    ready_ = false;
  }
  return last_;
}

void open_source::drain() {
  guard([&] { cut_ = cut_ || (source_ && !source_->drain()); });
}

}  // namespace rw::http
