#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/config.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/config/config.hpp"
#include "rw/k8s/controller/controller.hpp"
#include "rw/k8s/controller/event_recorder.hpp"
#include "rw/reactors/cli/settings.hpp"
#include "rw/tls/error.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace rw::cli {

/// The shared parts of a process. One executor drives everything.
struct services {
  services(boost::asio::any_io_executor ex, core::log_level level)
      : executor(ex), clock(real_clock_), log(level), watchdog(clock, ex) {}
  /// `to` receives log lines, in place of standard error.
  services(boost::asio::any_io_executor ex, core::log_level level, core::logger::sink to)
      : executor(ex), clock(real_clock_), log(level, std::move(to)), watchdog(clock, ex) {}
  /// `time` must outlive this; `to` receives log lines; `tick` is the watchdog's.
  services(boost::asio::any_io_executor ex, core::clock& time, core::logger::sink to,
           core::duration tick)
      : executor(ex),
        clock(time),
        log(core::log_level::info, std::move(to)),
        watchdog(clock, ex, tick) {}

 private:
  core::real_clock real_clock_;

 public:
  k8s::client_environment for_client() { return {clock, watchdog, log, metrics, make_random}; }
  k8s::informer_environment for_informer() { return {clock, log, metrics, random()}; }
  k8s::event_recorder_environment for_recorder() { return {clock, log, metrics, random()}; }
  k8s::controller_environment for_controller() { return {clock, watchdog, log, metrics, random()}; }
  core::random_source random() const { return make_random(); }

  const boost::asio::any_io_executor executor;
  core::clock& clock;
  core::logger log;
  core::metrics metrics;
  core::watchdog watchdog;
  core::random_source (*make_random)() = core::make_random_source;
  bool owns_process = true;  ///< false in a host's process, of which nothing may be changed
};

/// Makes an address to listen on. Throws `setting_error` that names `setting` if the host is not an
/// IP address.
boost::asio::ip::tcp::endpoint listening_address(const core::host_port& host_port,
                                                 std::string_view setting);

/// Logs that a server is up, and on which port.
void log_listening(core::logger& log, std::string_view server,
                   const boost::asio::ip::tcp::endpoint& at);

/// Returns the value of a result that depends on a setting. Throws `setting_error` that names it.
template <class T>
T need(tls::result<T> made, const std::string& setting) {
  if (made.has_error()) throw setting_error(setting + ": " + made.error().message());
  return std::move(*made);
}

/// Returns KCP's configuration, as `k8s::load_config` does, for the user to impersonate if there is
/// one. Throws `setting_error`.
k8s::config load_kcp_config(const kcp_access& of);

/// The reactors of one command. Ends at `stop`, or when a reactor fails.
class app {
 public:
  /// Adds the metric `rw_build_info`.
  explicit app(services& with);
  virtual ~app() = default;

  /// Runs until `stop`, then ends gracefully. Returns the exit code.
  virtual boost::asio::awaitable<int> run() = 0;

  /// Requests the end.
  virtual void stop() { stop_.set(); }

 protected:
  /// For task groups: a failed reactor ends the process gracefully.
  core::task_group::failure_handler fail_on_exception() {
    return [this](std::exception_ptr failure) {
      if (!failure_) failure_ = failure;
      stop();
    };
  }

  /// Waits for a group's tasks; cancels the remaining ones at `when`.
  boost::asio::awaitable<void> join_by(core::task_group& group, core::time_point deadline);

  /// Runs a command that ends by itself: `work`, which returns the exit code, beside the watchdog
  /// and `beside`, then `close`. Throws if it was interrupted.
  boost::asio::awaitable<int> run_to_end(boost::asio::awaitable<int> work,
                                         boost::asio::awaitable<void> close,
                                         boost::asio::awaitable<void> beside = {});

  /// Called at the end: throws the failure that ended the process, if any.
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  services& services_;
  core::wake stop_;

 private:
  std::exception_ptr failure_;
};

}  // namespace rw::cli
