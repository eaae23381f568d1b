#pragma once

#include "core/task_group.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/client_pool.hpp"
#include "k8s/devserver/server.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "k8s/object_api.hpp"
#include "reactors/rollout.hpp"
#include "reactors/watcher_installer/watcher_installer.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/watcher_installer/samples.hpp"
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {

namespace asio = boost::asio;
namespace json = boost::json;

/// Issues certificates at once, by the CA that the test says.
class issuing final : public watcher_installer::certificate_provider {
 public:
  asio::awaitable<watcher_installer::certificate_answer> ensure(json::value kyma) override;
  asio::awaitable<k8s::result<void>> remove(k8s::object_key kyma) override;

  /// From now on; every Kyma gets a new certificate.
  void use(const authority& ca) {
    ca_ = &ca;
    issued_.clear();
    ++version_;
  }
  std::string certificate(const std::string& kyma) { return issued(kyma).certificate; }

  std::vector<std::string> removed;
  int asked = 0;  ///< how often for any of them
  bool issues = true;

 private:
  const tls::key_pair& issued(const std::string& kyma);

  const authority* ca_ = nullptr;
  int version_ = 0;
  std::map<std::string, tls::key_pair> issued_;
};

/// A control plane and its runtimes on an embedded API server, with an installer.
class world {
 public:
  explicit world(watcher_installer::options with = {});
  ~world();

  /// Definitions, namespaces, Gateway, bundle; then the installer and its informers run.
  asio::awaitable<void> begin();
  /// A cluster for a runtime, whose requests are counted.
  void add_runtime(const std::string& name);
  /// The cluster "skr": on the real API server that RW_CONFORMANCE_KUBECONFIG leads to, if it is
  /// set, cleaned of what tests before have left there.
  asio::awaitable<void> add_any_runtime();
  asio::awaitable<void> add_kyma(std::string name, std::string kubeconfig);
  asio::awaitable<void> set_kubeconfig(std::string kyma, std::string kubeconfig);
  asio::awaitable<void> set_bundle(std::string pem);
  asio::awaitable<void> add_watcher(std::string name, std::string manager, std::string field);
  /// What a cluster's controllers would say of the watcher's Deployment.
  asio::awaitable<void> set_ready(std::string runtime);

  k8s::client& api(const std::string& cluster);
  std::string kubeconfig(const std::string& cluster);

  /// Reads an object until it is as `good` says; false if that does not happen. Null: not there.
  asio::awaitable<bool> until(std::string cluster, k8s::resource_type type, k8s::object_key key,
                              std::function<bool(const json::value&)> good);
  asio::awaitable<bool> until_ready(std::string kyma);
  /// Whether the Kyma has an event with that reason, whose message has `text`.
  asio::awaitable<bool> until_told(std::string kyma, std::string reason, std::string text = {});

  double metric(const std::string& series) const;
  /// Reconciles that ended well.
  double passes() const;
  long lines(const std::string& with) const;

  struct requests {
    int reads = 0;
    int writes = 0;
  };

  asio::io_context context{1};
  core::real_clock clock;
  core::metrics numbers;
  std::vector<std::string> logged;
  core::logger log{core::log_level::info,
                   [this](std::string_view line) { logged.emplace_back(line); }};
  core::watchdog watchdog{clock, context.get_executor(), std::chrono::milliseconds(20)};
  k8s::devserver::server server{context.get_executor(), {}, {clock, watchdog, log, numbers}};
  std::map<std::string, requests> asked;
  std::map<std::string, bool> hanging;  ///< runtimes that take requests and do not answer
  issuing certificates;
  rollout_board board;
  authority first{"klm-watcher"};
  authority second{"klm-watcher"};
  std::unique_ptr<watcher_installer::watcher_installer> installer;

 private:
  asio::awaitable<void> create(k8s::resource_type type, json::value object);
  asio::awaitable<void> define(std::string file);
  std::unique_ptr<k8s::informer> inform(const k8s::resource_type& type, k8s::selection what);

  const watcher_installer::options with_;
  std::string real_;  ///< kubeconfig of the real API server; empty: there is none
  std::map<std::string, std::unique_ptr<k8s::client>> clients_;
  std::unique_ptr<k8s::client_pool> pool_;
  std::unique_ptr<k8s::event_recorder> events_;
  std::unique_ptr<k8s::informer> kymas_, watchers_, kubeconfigs_, gateways_, secrets_;
  core::task_group tasks_{context.get_executor()};
};

extern const k8s::resource_type deployments;
extern const k8s::resource_type services;
extern const k8s::resource_type webhook_configurations;

}  // namespace rw::watcher_installer_test
