#include "core/http/open_source.hpp"

#include <utility>

namespace rw::http {

void open_source::open(std::unique_ptr<body_source> source, std::function<void()> ready) {
  source_ = std::move(source);
  last_ = state::more;
  ready_ = true;
  cut_ = false;
  source_->on_ready(std::move(ready));
}

void open_source::close() noexcept {
  // Moved out first: what its end sets off may come back here.
  const auto gone = std::move(source_);
  last_ = state::end;
  ready_ = cut_ = false;
}

open_source::state open_source::read(std::string& into, std::size_t room) {
  if (!source_) return last_;
  if (ready_) {
    const auto before = into.size();
    ready_ = false;
    last_ = source_->read(into, room);
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
  if (source_ && !source_->drain()) cut_ = true;
}

}  // namespace rw::http
