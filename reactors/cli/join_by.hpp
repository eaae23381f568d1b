#pragma once

#include "core/clock.hpp"
#include "core/task_group.hpp"

#include <boost/asio/awaitable.hpp>

namespace rw::cli {

/// Waits for a group's tasks, and cancels what is left of them at `when`. Both must outlive it.
boost::asio::awaitable<void> join_by(core::clock& time, core::task_group& group,
                                     core::time_point when);

}  // namespace rw::cli
