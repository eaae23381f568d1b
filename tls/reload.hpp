#pragma once

#include "rw/core/log.hpp"
#include "rw/tls/directory_watch.hpp"
#include "rw/tls/error.hpp"
#include "rw/tls/material.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rw::tls {

using reload_options = watch_times;

/// Keeps credentials in step with their files. It watches the directories of the files and of every
/// symlink on the way to them, so it notices kubelet's swap of `..data`, a rename and a write in
/// place. A changed set is used as a whole or not at all. If a file is missing or half-written, or
/// the key does not belong to the certificate, the reloader logs and counts the failure, keeps the
/// old material and tries again at the next change. It uses an expired certificate, and logs an
/// error: at the start, at its reload, or when it expires in use.
///
/// run() and its callback belong to the executor given; the counters may be read from any thread.
class reloader {
 public:
  /// Called after each attempt with success, or the reason why the files were rejected.
  using callback = std::function<void(const result<void>& ended)>;

  reloader(boost::asio::any_io_executor executor, std::shared_ptr<credentials> target,
           material_files files, core::logger& log, reload_options options = {});
  reloader(const reloader&) = delete;
  reloader& operator=(const reloader&) = delete;

  /// Watches until cancelled (terminal, partial or total), then returns. Called once.
  boost::asio::awaitable<void> run();

  void on_attempt(callback told) { told_ = std::move(told); }

  /// Reads the files now. Returns true if they have changed since the last attempt, even if they
  /// are rejected.
  bool check();

  std::uint64_t successes() const noexcept { return successes_.load(std::memory_order_relaxed); }
  std::uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

 private:
  result<void> use(const material_text& text);
  void warn_of_damage() const;
  void report_validity();
  bool reload();

  const boost::asio::any_io_executor executor_;
  const std::shared_ptr<credentials> target_;
  const material_files files_;
  core::logger& log_;
  const reload_options options_;
  callback told_;
  std::string invalid_ = {};  ///< fingerprint of the certificate that was reported as not valid
  std::string seen_;          ///< digest of the contents last tried, or why they could not be read
  std::atomic<std::uint64_t> successes_{0};
  std::atomic<std::uint64_t> failures_{0};
};

}  // namespace rw::tls
