#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <string>

namespace rw::cli {

/// Writes lines to a descriptor that other processes share, and that therefore can't be made
/// non-blocking: it writes only what the descriptor accepts at once, and waits in between. Used on
/// the executor passed to it.
class output {
 public:
  output(const boost::asio::any_io_executor& executor, int descriptor);

  /// Writes all of `lines`; one write at a time. Errors: `operation_aborted`, and those of
  /// write(2).
  boost::asio::awaitable<boost::system::error_code> write(std::string lines);

  /// The first error of any write of this process, but for a reader that has closed the pipe:
  /// errno; 0: none. Thread-safe.
  static int error() noexcept;

  /// Returns the number of lines of the latest write that are not written completely.
  std::size_t unwritten() const;

 private:
  bool writable();

  boost::asio::posix::stream_descriptor descriptor_;  ///< a duplicate
  const std::size_t piece_;  ///< maximum size of a write that does not block a writable descriptor
  std::string lines_;
  std::size_t written_ = 0;
};

}  // namespace rw::cli
