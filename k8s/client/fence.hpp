#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/send_permit.hpp"

#include <atomic>

namespace rw::k8s {

/// Until when this process may write: what a leader's lease gives. A client that carries it asks
/// it before each writing request, and again each time that bytes of one are handed to the socket
/// (core/http/send_permit.hpp). So a process that was frozen past its lease writes nothing when it
/// thaws, before anything else in it has noticed: requests not yet begun fail as `errc::fenced`,
/// those queued on a connection are withdrawn, and a connection that holds a part of one is dropped
/// together with what the kernel has not sent of it.
///
/// What remains, since the server knows nothing of the lease:
///
///   - The instant between the last look at the clock and the send(2) after it, some microseconds
///     with TLS, within which the process would have to be stopped.
///   - Bytes that the kernel has taken while the fence was open. It sends them at once, also for a
///     stopped process; but after a network that failed just then, again and again, until the
///     connection is dropped. They arrive late if the network heals before this process runs.
///   - A request that the server has, and carries out late. `election_options::margin` is for that.
///   - A clock that stands still: CLOCK_MONOTONIC goes on while a process is stopped, but neither
///     during the machine's suspension nor, in general, while a virtual machine is paused.
///
/// Where even these are too many, write with the resourceVersion that was read (`client::update`,
/// `delete_options`), which the server refuses as a conflict once the new leader has written.
///
/// The time is read without a lock. Thread-safe.
class fence final : public http::send_permit {
 public:
  explicit fence(const core::clock& time) : clock_(time) {}

  /// Writes may go out until `deadline`; `time_point::min()` shuts the fence.
  void open_until(core::time_point deadline) noexcept {
    until_.store(deadline.time_since_epoch().count(), std::memory_order_release);
  }
  void shut() noexcept { open_until(core::time_point::min()); }

  bool open() const noexcept override {
    return clock_.now().time_since_epoch().count() < until_.load(std::memory_order_acquire);
  }

 private:
  const core::clock& clock_;
  std::atomic<core::duration::rep> until_{core::time_point::min().time_since_epoch().count()};
};

}  // namespace rw::k8s
