#include "rw/reactors/cli/output.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <climits>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <poll.h>
#include <string_view>
#include <unistd.h>

namespace rw::cli {

namespace asio = boost::asio;

namespace {

std::atomic<int> first_error{0};

}  // namespace

/// A writable pipe accepts PIPE_BUF bytes at once (POSIX, write); a writable terminal accepts at
/// least one.
output::output(const asio::any_io_executor& executor, int descriptor)
    : descriptor_(executor, ::dup(descriptor)), piece_(::isatty(descriptor) == 1 ? 1 : PIPE_BUF) {}

bool output::writable() {
  pollfd asked{descriptor_.native_handle(), POLLOUT, 0};
  return ::poll(&asked, 1, 0) > 0;
}

asio::awaitable<boost::system::error_code> output::write(std::string lines) {
  lines_ = std::move(lines);
  written_ = 0;
  while (written_ < lines_.size()) {
    boost::system::error_code error;
    if (!writable()) {
      co_await descriptor_.async_wait(asio::posix::descriptor_base::wait_write,
                                      asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return error;
      continue;
    }
    const auto piece = std::string_view(lines_).substr(written_, piece_);
    const auto count = ::write(descriptor_.native_handle(), piece.data(), piece.size());
    if (count > 0) written_ += static_cast<std::size_t>(count);
    if (count < 0 && errno != EAGAIN && errno != EINTR) {
      const boost::system::error_code failed(errno, boost::system::system_category());
      int none = 0;
      if (failed.value() != EPIPE) first_error.compare_exchange_strong(none, failed.value());
      co_return failed;
    }
  }
  co_return boost::system::error_code();
}

int output::error() noexcept {
  return first_error.load();
}

std::size_t output::unwritten() const {
  const auto rest = std::string_view(lines_).substr(written_);
  return static_cast<std::size_t>(std::ranges::count(rest, '\n'));
}

}  // namespace rw::cli
