#pragma once

#include "core/http/server.hpp"
#include "reactors/admin/admin.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/cli/dev/clusters.hpp"
#include "reactors/cli/dev/configuration.hpp"
#include "reactors/cli/dev/event_view.hpp"
#include "reactors/cli/dev/infrastructure.hpp"
#include "reactors/cli/dev/node.hpp"
#include "reactors/cli/manager_app.hpp"
#include "reactors/cli/settings.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rw::cli {

/// `runtime-watcher dev`: the whole system in one process.
///
///     dev::clusters        API servers of KCP and of the runtimes
///     dev::infrastructure  KCP's issuer of certificates and gateway
///     manager_app          the manager, as `runtime-watcher manager` is
///     dev::node            one for each runtime: runs the webhook that the manager applied there
///     dev::configuration   with --bootstrapper-mode: what runtimes are configured from, and
///                          what comes of it
///     dev::event_view      what is shown of events
class dev_app final : public app {
 public:
  /// Binds, and writes kubeconfigs and manifests. Throws what names the setting that can't be used.
  dev_app(services& with, const dev_settings& settings);

  boost::asio::awaitable<int> run() override;

 private:
  manager_settings settings_of_manager() const;
  k8s::devserver::service_resolver find_webhooks();
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
  void show(const dev::event_story& story) const;
  void show(const dev::arrival& what) const;
  void say_what_to_try() const;

  const dev_settings settings_;
  core::metrics webhook_metrics_;
  std::unique_ptr<services> manager_services_;  ///< metrics and watchdog of its own
  dev::event_view view_;
  std::map<std::string, dev::node*, std::less<>> nodes_by_name_;
  dev::clusters clusters_;
  std::vector<std::unique_ptr<dev::node>> nodes_;
  dev::infrastructure infrastructure_;
  std::unique_ptr<dev::configuration> configuration_;  ///< null: mode off
  std::unique_ptr<manager_app> manager_;
  std::size_t next_backend_ = 0;
  std::size_t next_runtime_ = 0;
  std::size_t prepared_ = 0;
  int manager_code_ = 0;
  const std::unique_ptr<core::transport> plain_;
  admin::pages pages_;
  http::server admin_;
  admin::pages webhook_pages_;
  http::server webhook_admin_;

  core::task_group serving_;
  core::task_group supporting_;
  core::task_group managing_;
  core::task_group configuring_;
  core::task_group running_;
  core::task_group starting_;
};

}  // namespace rw::cli
