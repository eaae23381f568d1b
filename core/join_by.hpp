#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/task_group.hpp"

#include <boost/asio/awaitable.hpp>

namespace rw::core {

/// Waits for a group's tasks. Cancelling the caller cancels them; it still waits, and throws
/// nothing, so that the caller can end its other parts gracefully. (The caller has switched off
/// `throw_if_cancelled`, if it awaits anything afterwards.)
boost::asio::awaitable<void> join_all(task_group& group);

/// Waits as `join_all`, and cancels the remaining tasks at `when`. Both must outlive it.
boost::asio::awaitable<void> join_by(clock& time, task_group& group, time_point deadline);

}  // namespace rw::core
