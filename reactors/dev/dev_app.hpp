#pragma once

#include "rw/core/http/server.hpp"
#include "rw/reactors/admin/admin.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/manager_app.hpp"
#include "rw/reactors/dev/clusters.hpp"
#include "rw/reactors/dev/configuration.hpp"
#include "rw/reactors/dev/event_view.hpp"
#include "rw/reactors/dev/folder_lock.hpp"
#include "rw/reactors/dev/infrastructure.hpp"
#include "rw/reactors/dev/live_view.hpp"
#include "rw/reactors/dev/node.hpp"
#include "rw/reactors/dev/settings.hpp"
#include "rw/reactors/dev/terminal.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::dev {

/// `runtime-watcher-dev dev`: the whole system in one process.
///
///     clusters        API servers of KCP and of the runtimes
///     infrastructure  KCP's issuer of certificates and gateway
///     manager_app     the manager, as in `runtime-watcher manager`
///     node            one for each runtime: runs the webhook that the manager applied there
///     configuration   with --bootstrapper-mode: the sources of the runtimes' configuration, and
///                     its progress
///     event_view      prints events
///     live_view       on a terminal: its progress, then a table of the runtimes
class dev_app final : public cli::app {
 public:
  /// Binds, and writes kubeconfigs and manifests. Throws an exception that names the invalid
  /// setting. `with` logs to `on`.
  dev_app(cli::services& with, const dev_settings& settings, terminal& on);

  boost::asio::awaitable<int> run() override;

 private:
  cli::manager_settings settings_of_manager() const;
  admin::page_options page_options();
  k8s::devserver::service_resolver find_webhooks();
  k8s::devserver::pod_resolver find_manager();
  dev_gateway::service_resolver find_backends();
  void write_manifests() const;
  boost::asio::awaitable<void> start();
  boost::asio::awaitable<void> wait_for(std::function<bool()> condition);
  boost::asio::awaitable<void> start_runtimes();
  boost::asio::awaitable<void> run_manager();
  boost::asio::awaitable<void> end_in_order(core::time_point end);
  k8s::client* find_runtime(const std::string& name);
  bool hangs(std::size_t runtime) const;
  void say(const std::string& line) const;
  void show(const event_trace& trace) const;
  void show(const arrival& arrival) const;
  void say_what_to_try() const;
  std::string commands_to_try() const;
  std::string manager_to_start() const;
  void print(const std::string& text) const;
  live_state read_state() const;
  boost::asio::awaitable<void> end_table();

  const dev_settings settings_;
  const folder_lock folder_;  ///< before what writes to it
  core::metrics webhook_metrics_;
  std::unique_ptr<cli::services> manager_services_;  ///< metrics and watchdog of its own
  event_view view_;
  std::map<std::string, node*, std::less<>> nodes_by_name_;
  clusters clusters_;
  std::vector<std::unique_ptr<node>> nodes_;
  infrastructure infrastructure_;
  std::unique_ptr<configuration_trial> configuration_;  ///< null: mode off
  std::unique_ptr<cli::manager_app> manager_;
  std::size_t next_backend_ = 0;
  std::size_t next_runtime_ = 0;
  std::size_t prepared_ = 0;
  int manager_code_ = 0;
  const std::unique_ptr<core::transport> plain_;
  admin::pages pages_;
  http::server admin_;
  admin::pages webhook_pages_;
  http::server webhook_admin_;

  std::unique_ptr<live_view> live_;  ///< null: lines only
  core::task_group showing_;
  core::task_group serving_;
  core::task_group supporting_;
  core::task_group managing_;
  core::task_group configuring_;
  core::task_group running_;
  core::task_group starting_;
};

}  // namespace rw::dev
