#pragma once

#include "core/clock.hpp"
#include "core/task_group.hpp"

#include <boost/asio/awaitable.hpp>

namespace rw::cli {

/// Waits for a group's tasks. A caller that is cancelled meanwhile cancels them, still waits, and
/// is not told by an exception, so that it can end in order what else it has begun. (It has
/// switched off `throw_if_cancelled`, if it waits for anything afterwards.)
boost::asio::awaitable<void> join_all(core::task_group& group);

/// The same, and cancels what is left of the tasks at `when`. Both must outlive it.
boost::asio::awaitable<void> join_by(core::clock& time, core::task_group& group,
                                     core::time_point when);

}  // namespace rw::cli
