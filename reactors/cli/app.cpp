#include "rw/reactors/cli/app.hpp"

#include "rw/core/join_by.hpp"
#include "rw/reactors/cli/version.hpp"

#include <boost/asio/ip/address.hpp>

#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace rw::cli {

namespace asio = boost::asio;

namespace {

/// Applies --as and --as-group, which replace what the kubeconfig says.
void impersonate(const kcp_access& of, k8s::config& to) {
  if (!of.as.empty()) {
    to.impersonate_user = of.as;
    to.impersonate_uid.clear();
    to.impersonate_groups.clear();
    to.impersonate_extra.clear();
  }
  if (of.as_groups.empty()) return;
  if (to.impersonate_user.empty()) {
    throw setting_error("--as-group needs --as, or a user to impersonate in the kubeconfig");
  }
  to.impersonate_groups = of.as_groups;
}

}  // namespace

asio::ip::tcp::endpoint listening_address(const core::host_port& host_port,
                                          std::string_view setting) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host_port.host, error);
  if (error)
    throw setting_error(std::string(setting) + " needs an IP address, not: " + host_port.host);
  return {address, host_port.port};
}

void log_listening(core::logger& log, std::string_view server, const asio::ip::tcp::endpoint& at) {
  std::ostringstream address;
  address << at;
  log.info("listening", {{"server", server}, {"address", address.str()}});
}

k8s::config load_kcp_config(const kcp_access& of) {
  auto config = k8s::load_config(of.kubeconfig, of.context);
  if (config.has_error()) throw setting_error("--kubeconfig: " + config.error().message);
  impersonate(of, *config);
  return std::move(*config);
}

app::app(services& with) : services_(with), stop_(with.executor) {
  core::make_gauge(with.metrics, "rw_build_info", "1, with the version and revision of the program",
                   {{"version", RW_VERSION}, {"revision", source_revision}})
      .Set(1);
}

asio::awaitable<int> app::run_to_end(asio::awaitable<int> work, asio::awaitable<void> close,
                                     asio::awaitable<void> beside) {
  core::task_group background(services_.executor, fail_on_exception());
  core::task_group working(services_.executor, fail_on_exception());
  std::optional<int> code;
  background.spawn(services_.watchdog.run());
  if (beside.valid()) background.spawn(std::move(beside));
  const auto task = [](app* self, asio::awaitable<int> work,
                       std::optional<int>* into) -> asio::awaitable<void> {
    *into = co_await std::move(work);
    self->stop();
  };
  working.spawn(task(this, std::move(work), &code));
  co_await stop_.wait();
  working.cancel();
  co_await working.join();
  co_await std::move(close);
  background.cancel();
  co_await background.join();
  rethrow_failure();
  if (!code) throw std::runtime_error("interrupted");
  co_return *code;
}

asio::awaitable<void> app::join_by(core::task_group& group, core::time_point deadline) {
  return core::join_by(services_.clock, group, deadline);
}

}  // namespace rw::cli
