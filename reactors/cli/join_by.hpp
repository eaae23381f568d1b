#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/task_group.hpp"

#include <boost/asio/awaitable.hpp>

namespace rw::cli {

/// Waits for a group's tasks. Cancelling the caller cancels them; it still waits, and throws
/// nothing, so that the caller can end its other parts gracefully. (The caller has switched off
/// `throw_if_cancelled`, if it awaits anything afterwards.)
boost::asio::awaitable<void> join_all(core::task_group& group);

/// Waits as `join_all`, and cancels the remaining tasks at `when`. Both must outlive it.
boost::asio::awaitable<void> join_by(core::clock& time, core::task_group& group,
                                     core::time_point deadline);

}  // namespace rw::cli
