#include "reactors/cli/app.hpp"

#include <boost/asio/ip/address.hpp>

#include <sstream>

namespace rw::cli {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> cancel_at(core::timer* alarm, core::task_group* group) {
  const bool due = co_await alarm->wait();
  if (due) group->cancel();
}

}  // namespace

asio::ip::tcp::endpoint listening_address(const core::host_port& where, std::string_view setting) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(where.host, error);
  if (error) throw setting_error(std::string(setting) + " needs an IP address, not: " + where.host);
  return {address, where.port};
}

void log_listening(core::logger& log, std::string_view server, const asio::ip::tcp::endpoint& at) {
  std::ostringstream address;
  address << at;
  log.info("listening", {{"server", server}, {"address", address.str()}});
}

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
