#include "reactors/cli/app.hpp"

namespace rw::cli {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> cancel_at(core::timer* alarm, core::task_group* group) {
  const bool due = co_await alarm->wait();
  if (due) group->cancel();
}

}  // namespace

asio::awaitable<void> app::join_by(core::task_group& group, core::time_point when) {
  const auto alarm = services_.clock.make_timer(services_.executor);
  alarm->expires_at(when);
  core::task_group timekeeper(services_.executor);
  timekeeper.spawn(cancel_at(alarm.get(), &group));
  co_await group.join();
  timekeeper.cancel();
  co_await timekeeper.join();
}

}  // namespace rw::cli
