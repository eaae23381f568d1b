#include "reactors/cli/output.hpp"

#include <boost/asio/post.hpp>
#include <climits>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <poll.h>
#include <string_view>
#include <thread>
#include <unistd.h>

namespace rw::cli {

namespace asio = boost::asio;

/// What the thread shares with its owner, and keeps alive if it is left behind.
struct output::state {
  state(asio::any_io_executor ex, int to)
      : executor(ex), descriptor(to), done(std::make_shared<core::wake>(ex)) {}

  const asio::any_io_executor executor;
  const int descriptor;
  std::mutex guard;
  std::condition_variable changed;
  std::string lines;  ///< changed while `written` is at its end only
  std::size_t written = 0;
  bool writing = false;  ///< the thread is in a system call
  bool closed = false;
  boost::system::error_code error;
  std::shared_ptr<core::wake> done;  ///< the owner's: gone when it has gone
  std::thread thread;

  void run();
  void write_some(std::unique_lock<std::mutex>& lock);
};

/// One piece of at most PIPE_BUF bytes: a pipe takes it whole or not at all (POSIX, write), so that
/// what was written is known while the next piece is stuck.
void output::state::write_some(std::unique_lock<std::mutex>& lock) {
  const auto piece = std::string_view(lines).substr(written, PIPE_BUF);
  writing = true;
  lock.unlock();
  const auto count = ::write(descriptor, piece.data(), piece.size());
  const int reason = errno;
  if (count < 0 && reason == EAGAIN) {  // somebody else made it non-blocking
    pollfd writable{descriptor, POLLOUT, 0};
    ::poll(&writable, 1, -1);
  }
  lock.lock();
  writing = false;
  if (count > 0) written += static_cast<std::size_t>(count);
  if (count < 0 && reason != EAGAIN && reason != EINTR) {
    error.assign(reason, boost::system::system_category());
  }
}

void output::state::run() {
  std::unique_lock lock(guard);
  for (;;) {
    changed.wait(lock, [this] { return closed || (!error && written < lines.size()); });
    if (closed) return;
    write_some(lock);
    if (closed || (!error && written < lines.size())) continue;
    asio::post(executor, [waiter = std::weak_ptr(done)] {
      if (const auto alive = waiter.lock()) alive->set();
    });
  }
}

output::output(asio::any_io_executor executor, int descriptor)
    : state_(std::make_shared<state>(std::move(executor), descriptor)) {
  state_->thread = std::thread([kept = state_] { kept->run(); });
}

output::~output() {
  close();
  std::unique_lock lock(state_->guard);
  state_->done.reset();
  auto thread = std::move(state_->thread);
  const bool stuck = state_->writing;
  lock.unlock();
  if (stuck) {
    thread.detach();
  } else {
    thread.join();
  }
}

asio::awaitable<boost::system::error_code> output::write(std::string lines) {
  {
    const std::lock_guard lock(state_->guard);
    state_->lines = std::move(lines);
    state_->written = 0;
  }
  state_->changed.notify_one();
  const auto aborted = co_await state_->done->wait();
  const std::lock_guard lock(state_->guard);
  co_return aborted ? aborted : state_->error;
}

std::size_t output::close() {
  const std::lock_guard lock(state_->guard);
  state_->closed = true;
  state_->changed.notify_one();
  const auto rest = std::string_view(state_->lines).substr(state_->written);
  return static_cast<std::size_t>(std::ranges::count(rest, '\n'));
}

}  // namespace rw::cli
