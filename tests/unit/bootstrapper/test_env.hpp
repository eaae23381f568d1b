#pragma once

#include "core/task_group.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/client_pool.hpp"
#include "k8s/devserver/server.hpp"
#include "k8s/event_recorder.hpp"
#include "k8s/informer.hpp"
#include "reactors/bootstrapper/direct_sync.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/bootstrapper/sync_env.hpp"
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {

namespace asio = boost::asio;

/// A control plane and its runtimes on an embedded API server, with the reactor.
class test_env {
 public:
  explicit test_env(bootstrapper::options with);
  ~test_env();

  /// Definitions, namespaces and good sources; then the reactor and its informers run.
  asio::awaitable<void> begin();

  /// A cluster with the namespace kyma-system, its Runtime and its kubeconfig Secret.
  asio::awaitable<void> add_runtime(std::string name, std::string mode = {});
  asio::awaitable<void> add_bootstrapper(std::string name);
  asio::awaitable<void> annotate_runtime(std::string name, std::string annotation,
                                         json::value value);
  asio::awaitable<void> set_source(json::value object);
  asio::awaitable<void> remove_source(k8s::resource_type type, std::string name);
  asio::awaitable<void> change(std::string name, json::value spec);
  asio::awaitable<void> remove(std::string cluster, k8s::resource_type type, k8s::object_key key);
  /// What a cluster's controllers would say of the Deployment.
  asio::awaitable<void> set_ready(std::string runtime);

  k8s::client& api(const std::string& cluster);
  /// Ends the reactor.
  asio::awaitable<void> stop();
  /// Ends the reactor and begins another one, as after a crash.
  asio::awaitable<void> restart();

  /// Reads an object until it is as `good` says; false if that does not happen. Null: not there.
  asio::awaitable<bool> until(std::string cluster, k8s::resource_type type, k8s::object_key key,
                              std::function<bool(const json::value&)> good);
  /// The status' condition has this status and reason.
  asio::awaitable<bool> until_condition(std::string name, std::string condition, std::string is,
                                        std::string reason);
  asio::awaitable<bool> until_state(std::string name, std::string state);
  asio::awaitable<json::value> status(std::string name);
  double metric(const std::string& series) const;

  asio::io_context context{1};
  core::real_clock clock;
  core::metrics numbers;
  std::vector<std::string> logged;
  core::logger log{core::log_level::info,
                   [this](std::string_view line) { logged.emplace_back(line); }};
  core::watchdog watchdog{clock, context.get_executor(), std::chrono::milliseconds(20)};
  k8s::devserver::server server{context.get_executor(), {}, {clock, watchdog, log, numbers}};
  std::map<std::string, int> writes;              ///< of each runtime, dry runs among them
  std::map<std::string, bool> hanging;            ///< runtimes that take requests and do not answer
  std::map<std::string, bool> hanging_writes;     ///< that do so with writes only
  std::function<void(const std::string&)> wrote;  ///< called for each write; may be empty
  bootstrapper::render_input now;                 ///< as they are in the control plane
  std::unique_ptr<bootstrapper::direct_sync> reactor;
  content_gate* gate = nullptr;  ///< of the next reactor

 private:
  asio::awaitable<void> create(std::string cluster, k8s::resource_type type, json::value object);
  asio::awaitable<void> define(std::string file);
  std::unique_ptr<k8s::informer> inform(const k8s::resource_type& type, k8s::selection what);
  void start();
  void react();

  bootstrapper::options with_;
  std::map<std::string, std::unique_ptr<k8s::client>> clients_;
  std::unique_ptr<k8s::client_pool> pool_;
  std::unique_ptr<k8s::event_recorder> events_;
  std::unique_ptr<k8s::informer> bootstrappers_, runtimes_, kubeconfigs_, config_maps_, secrets_,
      bundles_;
  std::unique_ptr<core::task_group> reacting_;
  core::task_group tasks_{context.get_executor()};
};

}  // namespace rw::bootstrapper_test
