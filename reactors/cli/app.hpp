#pragma once

#include "core/clock.hpp"
#include "core/config.hpp"
#include "core/log.hpp"
#include "core/metrics.hpp"
#include "core/task_group.hpp"
#include "core/wake.hpp"
#include "core/watchdog.hpp"
#include "reactors/cli/settings.hpp"
#include "tls/error.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace rw::cli {

/// What all parts of a process share. One executor drives everything.
struct services {
  services(boost::asio::any_io_executor ex, core::log_level level)
      : executor(ex), clock(real_clock_), log(level), watchdog(clock, ex) {}
  /// With a clock that outlives this, a place for log lines, and the watchdog's tick.
  services(boost::asio::any_io_executor ex, core::clock& time, core::logger::sink to,
           core::duration tick)
      : executor(ex),
        clock(time),
        log(core::log_level::info, std::move(to)),
        watchdog(clock, ex, tick) {}

 private:
  core::real_clock real_clock_;

 public:
  const boost::asio::any_io_executor executor;
  core::clock& clock;
  core::logger log;
  core::metrics metrics;
  core::watchdog watchdog;
};

/// Makes an address to listen on. Throws `setting_error` that names `setting` where the host is no
/// IP address.
boost::asio::ip::tcp::endpoint listening_address(const core::host_port& where,
                                                 std::string_view setting);

/// Says that a server is up, and on which port it was found room.
void log_listening(core::logger& log, std::string_view server,
                   const boost::asio::ip::tcp::endpoint& at);

/// What was made of the files of a setting. Throws `setting_error` that names it.
template <class T>
T need(tls::result<T> made, const std::string& setting) {
  if (made.has_error()) throw setting_error(setting + ": " + made.error().message());
  return std::move(*made);
}

/// One command's reactors, wired. Ends when it is told to stop, or when a reactor fails.
class app {
 public:
  explicit app(services& with) : services_(with), stop_(with.executor) {}
  virtual ~app() = default;

  /// Runs until `stop`, then ends in order. Returns the exit code.
  virtual boost::asio::awaitable<int> run() = 0;

  /// Asks for the end.
  void stop() { stop_.set(); }

 protected:
  /// For task groups: a reactor that fails ends the process, in order.
  core::task_group::failure_handler fail_on_exception() {
    return [this](std::exception_ptr failure) {
      if (!failure_) failure_ = failure;
      stop();
    };
  }

  /// Waits for a group's tasks, and cancels what is left of them at `when`.
  boost::asio::awaitable<void> join_by(core::task_group& group, core::time_point when);

  /// To be called at the end: throws what made the process end, if something did.
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  services& services_;
  core::wake stop_;

 private:
  std::exception_ptr failure_;
};

}  // namespace rw::cli
