#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <string>

namespace rw::cli {

/// Writes lines to a descriptor that belongs to other processes, too, and so can't be made
/// non-blocking: only what it takes at once is given to it, and between the coroutine waits. To be
/// used on the executor that it is given.
class output {
 public:
  output(const boost::asio::any_io_executor& executor, int descriptor);

  /// Writes all of `lines`; one write at a time. Errors: `operation_aborted`, and those of
  /// write(2).
  boost::asio::awaitable<boost::system::error_code> write(std::string lines);

  /// How many lines of the latest write are not written whole.
  std::size_t unwritten() const;

 private:
  bool writable();

  boost::asio::posix::stream_descriptor descriptor_;  ///< a duplicate
  const std::size_t piece_;  ///< bytes that do not block a descriptor that is writable
  std::string lines_;
  std::size_t written_ = 0;
};

}  // namespace rw::cli
