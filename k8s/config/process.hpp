#pragma once

#include "rw/core/watchdog.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace rw::k8s {

/// A program to run: searched for in PATH unless its name has a slash, with this process's
/// environment and more, without input, in a process group of its own.
struct process_request {
  std::string command = {};
  std::vector<std::string> arguments = {};
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::chrono::milliseconds limit = std::chrono::seconds(60);
  std::size_t output_bytes = 1u << 20;  ///< of standard output
};

struct process_result {
  /// Why there is no status: the program did not start, exceeded the time or output limit, or was
  /// cancelled. Empty if it exited.
  std::string error;
  bool started = false;
  int status = 0;  ///< of exit, or 128 and the signal's number, as in shells
  std::string output;
  std::string errors;  ///< the last 4 KiB of standard error
};

/// Runs a program without blocking the executor, and reaps it. Kills the process group if the
/// program exceeds its time or output limit, or the caller is cancelled. Linux 5.3 or later.
boost::asio::awaitable<process_result> run_process(boost::asio::any_io_executor executor,
                                                   core::watchdog& watchdog,
                                                   process_request request);

}  // namespace rw::k8s
