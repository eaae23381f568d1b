#pragma once

#include "rw/core/clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <memory>
#include <set>
#include <utility>

namespace rw::k8s::devserver {

/// Timers of many watches on one timer: a thousand idle clusters have a thousand watches. On one
/// executor.
class watch_schedule {
 public:
  class sleeper {
   public:
    virtual ~sleeper() = default;
    /// Called at the time; it may set the next time from within.
    virtual void due() = 0;
  };

  watch_schedule(core::clock& clock, boost::asio::any_io_executor executor);

  core::time_point now() const noexcept { return clock_.now(); }

  /// Sets the time of `one`, and replaces its previous one.
  void set(sleeper& sleeper, core::time_point& present, core::time_point wake_time);
  void remove(sleeper& sleeper, core::time_point present) noexcept;

  std::size_t size() const noexcept { return sleepers_.size(); }

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  core::clock& clock_;
  std::unique_ptr<core::timer> timer_;
  std::set<std::pair<core::time_point, sleeper*>> sleepers_;
};

}  // namespace rw::k8s::devserver
