#pragma once

#include "rw/core/log.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/wake.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/devserver/service_route.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/dev/pod.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rw::dev {

/// Simulates a runtime's machines for the watcher, as far as the watcher can observe them: the
/// Deployment `skr-webhook` becomes a pod with the Secret `skr-webhook-tls` mounted, and gets its
/// status.
///
/// The pod runs in this process (pod.hpp). A changed template makes a new pod, which serves before
/// the previous one ends. A changed Secret reaches the running pod after `kubelet_delay`, but not
/// one that is ending. An unusable Secret leaves a running pod as it is, and so does an image with
/// the tag `crash`, whose pod is one in CrashLoopBackOff. A Pod object exists in the API server
/// from before the pod is ready until it has ended.
///
/// The Service leads to the pod while its selector matches the pod's labels. If other machines can
/// reach the pod's address, it is also written into the Service's Endpoints, as a control plane's
/// controllers would do, for API servers that read those.
///
/// On one executor.
class node {
 public:
  /// Called with each event that the runtime's webhook accepts.
  using observer = std::function<void(const std::string& runtime, const watch_event&)>;

  struct options {
    std::string runtime = {};
    std::string kubeconfig = {};
    std::string pod_address = "127.0.0.1";  ///< where pods listen
    core::duration kubelet_delay{0};        ///< until a changed Secret reaches the pod
    core::log_level log_level = core::log_level::info;
    core::logger::sink log_to;
    observer on_event = {};
  };

  /// `webhooks`: registry of the metrics of all webhooks. Throws if the kubeconfig is unusable.
  node(cli::services& with, core::metrics& webhooks, options options);
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  const std::string& runtime() const noexcept { return options_.runtime; }
  /// Returns the client of the runtime's API server, for other uses while the node runs.
  k8s::client& api() noexcept { return api_; }
  /// Adds the runtime's name to each line.
  core::logger& log() noexcept { return log_; }

  /// Returns where a Service ("namespace/name:port") leads.
  k8s::devserver::service_route find(std::string_view service) const;

  /// Runs until `stop`, or until cancelled; then ends the pods: they accept no more reviews and
  /// deliver their events (cancelled: they end at once).
  boost::asio::awaitable<void> run();
  void stop() { stop_.set(); }

  /// Events of pods that ended before they were delivered.
  std::size_t lost() const noexcept { return lost_; }

 private:
  boost::asio::awaitable<void> follow(k8s::informer* from);
  boost::asio::awaitable<void> keep();
  boost::asio::awaitable<k8s::result<void>> step();
  boost::asio::awaitable<void> run_pod(std::shared_ptr<pod> pod, k8s::object_key key);
  boost::asio::awaitable<void> remount(std::shared_ptr<pod> pod, mounted_files files);
  k8s::object_key pod_key() const;
  boost::asio::awaitable<void> tell_pod(const boost::json::value* deployment);
  k8s::result<void> place(const boost::json::value& deployment);
  k8s::result<void> refuse(const std::string& reason);
  void end_pod();
  std::optional<boost::asio::ip::tcp::endpoint> endpoint() const;
  boost::asio::awaitable<k8s::result<void>> tell_endpoints();

  cli::services& services_;
  core::metrics& metrics_;
  const options options_;
  core::logger log_;
  k8s::client api_;
  k8s::informer deployments_;
  k8s::informer secrets_;
  k8s::informer service_;
  core::wake changed_;
  core::wake stop_;
  core::task_group pods_;
  std::shared_ptr<pod> current_;
  std::optional<boost::asio::ip::tcp::endpoint> told_;  ///< the address in the Endpoints
  bool crashing_ = false;                               ///< there is a pod that crashes
  bool selected_ = false;                               ///< the Service's selector matches the pod
  std::string mounted_;                                 ///< version of the pod's Secret
  std::size_t pod_count_ = 0;                           ///< the present pod's number
  std::size_t told_pod_ = 0;  ///< number of the last pod written to the API server
  std::string error_;         ///< why the pod does not match the objects; empty: it does
  std::size_t lost_ = 0;
  std::exception_ptr failure_;
};

}  // namespace rw::dev
