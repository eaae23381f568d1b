#pragma once

#include "rw/core/clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>

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

  /// A sleeper's place. Of those that wake at the same time the first one set comes first, so that
  /// nothing depends on their addresses.
  struct place {
    core::time_point at{};
    std::uint64_t number = 0;

    friend auto operator<=>(const place&, const place&) = default;
  };

  watch_schedule(core::clock& clock, boost::asio::any_io_executor executor);

  core::time_point now() const noexcept { return clock_.now(); }

  /// Sets the time of `sleeper`, and replaces its previous one.
  void set(sleeper& sleeper, place& present, core::time_point wake_time);
  void remove(const place& present) noexcept { sleepers_.erase(present); }

  std::size_t size() const noexcept { return sleepers_.size(); }

  /// Runs until cancelled.
  boost::asio::awaitable<void> run();

 private:
  core::clock& clock_;
  std::unique_ptr<core::timer> timer_;
  std::map<place, sleeper*> sleepers_;
  std::uint64_t last_ = 0;
};

}  // namespace rw::k8s::devserver
