#include "rw/core/http/handshake_queue.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace rw::http {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds long_step(2);
constexpr std::chrono::milliseconds longest_rest(50);

}  // namespace

asio::awaitable<void> handshake_queue::place::turn() {
  queue_->enter(entry_);
  co_await entry_->granted.wait();
}

void handshake_queue::enter(std::shared_ptr<entry> waiting) {
  const std::lock_guard lock(guard_);
  auto at = std::ranges::find(lines_, waiting->from, &line::from);
  if (at == lines_.end()) at = lines_.insert(at, {waiting->from, {}});
  at->waiting.push_back(std::move(waiting));
  if (!current_) pass_on();
}

void handshake_queue::leave(const std::shared_ptr<entry>& gone) {
  const std::lock_guard lock(guard_);
  if (current_ != gone) {
    const auto at = std::ranges::find(lines_, gone->from, &line::from);
    if (at == lines_.end()) return;
    at->waiting.remove(gone);
    if (at->waiting.empty()) lines_.erase(at);
    return;
  }
  current_ = nullptr;
  const auto took = clock_.now() - since_;
  const auto answered = responded_();
  const bool busy = std::exchange(responded_before_, answered) != answered;
  if (!busy || took < long_step || std::exchange(passing_on_, true)) return pass_on();
  rest_.expires_after(std::min<core::duration>(took, longest_rest));
  rest_.async_wait([self = shared_from_this()](boost::system::error_code) { self->grant(); });
}

/// The next turn begins after what is ready now: Asio runs in order what is posted, and looks for
/// sockets that are ready between two rounds. The step itself is posted once more by its wake, so
/// that what this look finds goes first, too.
void handshake_queue::pass_on() {
  if (std::exchange(passing_on_, true)) return;
  asio::post(executor_, [self = shared_from_this()] { self->grant(); });
}

void handshake_queue::grant() {
  const std::lock_guard lock(guard_);
  passing_on_ = false;
  if (current_ || lines_.empty()) return;
  auto& next = lines_.front().waiting;
  current_ = std::move(next.front());
  next.pop_front();
  since_ = clock_.now();
  if (next.empty()) {
    lines_.pop_front();
  } else {
    lines_.splice(lines_.end(), lines_, lines_.begin());
  }
  asio::post(current_->executor, [granted = current_] { granted->granted.set(); });
}

}  // namespace rw::http
