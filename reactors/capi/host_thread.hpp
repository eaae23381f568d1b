#pragma once

#include "rw/core/log.hpp"
#include "rw/reactors/capi/rw.h"
#include "rw/reactors/cli/app.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace CLI {
class App;
}

namespace rw::capi {

/// Parses flags as the command `name` does, and --log-level, which it returns; `describe` adds its
/// options. Throws `cli::setting_error`.
core::log_level parse_flags(const char* name, const char* const* flags,
                            const std::function<void(CLI::App&)>& describe,
                            const std::function<void(CLI::App&)>& check);

/// Writes a message into a C caller's buffer; cuts it off if it is too long.
void write_error(const std::string& message, char* error, std::size_t size) noexcept;

/// A thread with an io_context, in a process that belongs to somebody else: it handles no signals,
/// and changes nothing that concerns the whole process.
class host_thread {
 public:
  host_thread(const rw_callbacks* callbacks, core::log_level level);
  ~host_thread() { join(); }

  cli::services& services() { return services_; }

  /// Runs the coroutine on the thread until it ends. Once.
  void start(std::function<boost::asio::awaitable<int>()> body);
  /// Runs a function on the thread, soon.
  void post(std::function<void()> task);
  /// Waits for the coroutine. Returns its result; 1 if it threw, which is in the log.
  int join();

 private:
  boost::asio::io_context context_{1};
  cli::services services_;
  std::thread thread_;
  int result_ = 0;
};

}  // namespace rw::capi
