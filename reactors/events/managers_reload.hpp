#pragma once

#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/reactors/shared/managers_file.hpp"
#include "rw/tls/directory_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <functional>
#include <string>
#include <utility>

namespace rw {

/// Keeps the managers in use in step with their file. If the file is missing or malformed it logs
/// the invalid field and counts the failure; the last managers read stay in use, and the next
/// change is tried again. Until the first valid file every manager counts as known; an empty file
/// has the same meaning.
///
/// Metrics: `rw_managers_reloads_total{outcome}` (used, refused).
class managers_reloader {
 public:
  /// Reads the file. `target` and `log` must outlive it.
  managers_reloader(boost::asio::any_io_executor executor, std::string file,
                    managers_in_use& target, core::logger& log, core::metrics& metrics,
                    tls::watch_times times = {});
  managers_reloader(const managers_reloader&) = delete;
  managers_reloader& operator=(const managers_reloader&) = delete;

  /// `told` is called after each new file in use.
  void on_used(std::function<void()> told) { told_ = std::move(told); }

  /// Watches the file until cancelled, then returns. Called once.
  boost::asio::awaitable<void> run();

  /// Reads the file now. Returns true if it has changed since the last attempt, valid or not.
  bool check();

 private:
  const boost::asio::any_io_executor executor_;
  const std::string file_;
  managers_in_use& target_;
  core::logger& log_;
  const tls::watch_times times_;
  core::counter& used_;
  core::counter& refused_;
  std::function<void()> told_;
  std::string observed_;  ///< contents of the last attempt, or why there were none
};

}  // namespace rw
