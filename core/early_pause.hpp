#pragma once

#include "rw/core/clock.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>

namespace rw::core {

/// Pauses of one coroutine, which a sign of life of whatever failed may end early: each of them
/// once, and at most one in `apart`, since such signs may come from anybody. On one executor.
class early_pause {
 public:
  explicit early_pause(clock& time) : clock_(time) {}
  early_pause(const early_pause&) = delete;
  early_pause& operator=(const early_pause&) = delete;

  /// Returns how long it lasted; nothing if the coroutine was cancelled. `may_end_early`: a sign of
  /// life says that what failed may work again.
  boost::asio::awaitable<std::optional<duration>> wait(boost::asio::any_io_executor executor,
                                                       duration length, bool may_end_early);
  /// Ends the pause under way, if that may end now.
  void end_early();

 private:
  static constexpr duration apart = std::chrono::seconds(1);

  clock& clock_;
  timer* under_way_ = nullptr;       ///< that may end early
  std::optional<time_point> ended_;  ///< the last one that did
  bool early_ = false;
};

}  // namespace rw::core
