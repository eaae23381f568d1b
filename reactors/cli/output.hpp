#pragma once

#include "core/wake.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace rw::cli {

/// Writes lines to a descriptor from a thread of its own, so that a reader that stalls holds up
/// nothing but the writing: descriptors such as a terminal's or a file's, which belong to other
/// processes too, can't be made non-blocking. To be used on one executor.
class output {
 public:
  output(boost::asio::any_io_executor executor, int descriptor);
  /// A write that is stuck is left alone: its thread ends with the process.
  ~output();
  output(const output&) = delete;
  output& operator=(const output&) = delete;

  /// Writes all of `lines`; one write at a time. Cancelled, it returns `operation_aborted`, and the
  /// write goes on.
  boost::asio::awaitable<boost::system::error_code> write(std::string lines);

  /// Ends writing, once what goes to the descriptor at this moment (up to PIPE_BUF bytes) is there.
  /// Returns how many lines were not written whole.
  std::size_t close();

 private:
  struct state;
  const std::shared_ptr<state> state_;
};

}  // namespace rw::cli
