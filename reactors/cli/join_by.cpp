#include "reactors/cli/join_by.hpp"

namespace rw::cli {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> cancel_at(core::timer* alarm, core::task_group* group) {
  const bool due = co_await alarm->wait();
  if (due) group->cancel();
}

}  // namespace

asio::awaitable<void> join_by(core::clock& time, core::task_group& group, core::time_point when) {
  const auto alarm = time.make_timer(group.get_executor());
  alarm->expires_at(when);
  core::task_group timekeeper(group.get_executor());
  timekeeper.spawn(cancel_at(alarm.get(), &group));
  co_await group.join();
  timekeeper.cancel();
  co_await timekeeper.join();
}

}  // namespace rw::cli
