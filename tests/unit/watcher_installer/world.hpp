#pragma once

#include "rw/reactors/shared/cluster_state.hpp"
#include "rw/reactors/watcher_installer/watcher_installer.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/environment/environment.hpp"
#include "tests/unit/watcher_installer/samples.hpp"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rw::watcher_installer_test {

namespace asio = boost::asio;
namespace json = boost::json;
using test::deployments;
using test::is_gone;
using test::is_there;
using test::services;
using test::webhook_configurations;

// On a runtime.
inline const k8s::object_key configuration{{}, "skr-webhook"};
inline const k8s::object_key deployment{"kyma-system", "skr-webhook"};
inline const k8s::object_key tls_secret{"kyma-system", "skr-webhook-tls"};

/// Quick where an installer is patient.
watcher_installer::installer_options quick_options();

/// Issues certificates at once, by the CA that the test says.
class issuing final : public certificate_provider {
 public:
  asio::awaitable<certificate_state> ensure(json::value kyma) override;
  certificate_state current(const json::value& kyma) override;
  asio::awaitable<k8s::result<void>> remove(k8s::object_key kyma) override;
  asio::awaitable<k8s::result<void>> try_removal(k8s::object_key kyma,
                                                 std::shared_ptr<k8s::write_preview> into) override;

  /// From now on; every Kyma gets a new certificate.
  void use(const authority& ca) {
    ca_ = &ca;
    issued_.clear();
  }
  std::string certificate(const std::string& kyma) { return issued(kyma).certificate; }

  std::vector<std::string> removed;
  int asked = 0;  ///< how often for any of them
  bool issues = true;

 private:
  const tls::key_pair& issued(const std::string& kyma);

  const authority* ca_ = nullptr;
  std::map<std::string, tls::key_pair> issued_;
};

/// A control plane and its runtimes, with an installer.
class world : public test::environment {
 public:
  explicit world(watcher_installer::installer_options with = {},
                 std::unique_ptr<core::clock> time = {});
  ~world() override;

  /// Definitions, namespaces, Gateway, bundle; then the installer and its informers run.
  asio::awaitable<void> begin();
  /// Likewise, until "skr" has all that one Watcher needs.
  asio::awaitable<void> begin_with_runtime();
  /// The cluster "skr": on the real API server that RW_CONFORMANCE_KUBECONFIG leads to, if it is
  /// set, cleaned of what tests before have left there.
  asio::awaitable<void> add_any_runtime();
  asio::awaitable<void> add_kyma(std::string name, std::string kubeconfig);
  asio::awaitable<void> set_bundle(std::string pem);
  asio::awaitable<void> add_watcher(std::string name, std::string manager, std::string field);
  /// What a cluster's controllers would say of the watcher's Deployment.
  asio::awaitable<void> set_ready(std::string runtime);
  asio::awaitable<bool> until_ready(std::string kyma);

  /// Another process takes over.
  asio::awaitable<void> take_over(watcher_installer::installer_options with);
  /// The installer ends.
  asio::awaitable<void> stop();

  /// Reconciles that ended well.
  double passes() const;

  const std::shared_ptr<bool> is_dry = std::make_shared<bool>(false);  ///< the installer
  bool releases = true;  ///< Kymas, also where it is dry; set before `begin`
  std::function<void(const k8s::object_key&)> on_reconcile = {};  ///< until the world ends
  bool watches_certificates = false;     ///< the Secrets in KCP; set before `begin`
  std::vector<pod_report> reports = {};  ///< what the pods of each runtime say
  issuing certificates;
  cluster_states tracker;
  authority first{"klm-watcher"};
  authority second{"klm-watcher"};
  std::unique_ptr<watcher_installer::watcher_installer> installer;

 private:
  void start();
  /// Before an installer runs.
  virtual void prepare(k8s::informer& /*kymas*/) {}

  watcher_installer::installer_options with_;
  k8s::client kcp_;
  std::unique_ptr<core::task_group> installing_;
};

}  // namespace rw::watcher_installer_test
