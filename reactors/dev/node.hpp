#pragma once

#include "core/log.hpp"
#include "core/task_group.hpp"
#include "core/wake.hpp"
#include "k8s/cache/informer.hpp"
#include "k8s/client/client.hpp"
#include "reactors/cli/app.hpp"
#include "reactors/dev/pod.hpp"

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

/// What a runtime's machines would do for the watcher, as far as the watcher can tell: the
/// Deployment `skr-webhook` becomes a pod with the Secret `skr-webhook-tls` mounted, and gets its
/// status.
///
/// The pod runs in this process (pod.hpp). Another template makes another pod, which serves before
/// the one before it ends; another Secret reaches the pod at once, but not one that is ending. A
/// Secret that can't be used leaves a pod that runs as it is. Pods are told to the API server, from
/// before they count as ready until they have ended.
///
/// Where the pod's address can be reached from other machines, it is also written into the
/// Service's Endpoints, as a control plane's controllers would do, for API servers that look there.
///
/// On one executor.
class node {
 public:
  /// Told of each event that the runtime's webhook accepts.
  using observer = std::function<void(const std::string& runtime, const watch_event&)>;

  struct options {
    std::string runtime = {};
    std::string kubeconfig = {};
    std::string pod_address = "127.0.0.1";  ///< where pods listen
    core::log_level log_level = core::log_level::info;
    observer on_event = {};
  };

  /// `webhooks`: where the metrics of all webhooks go. Throws where the kubeconfig can't be used.
  node(cli::services& with, core::metrics& webhooks, options how);
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  const std::string& runtime() const noexcept { return how_.runtime; }
  /// The runtime's API server, for what else is to be done there while the node runs.
  k8s::client& api() noexcept { return api_; }
  /// Names the runtime in each line.
  core::logger& log() noexcept { return log_; }

  /// Where a Service ("namespace/name:port") is reached; none if no pod stands behind it.
  std::optional<boost::asio::ip::tcp::endpoint> find(std::string_view service) const;

  /// Runs until `stop`, or until cancelled; then ends the pods: they take no more reviews and
  /// deliver what they accepted (cancelled: they end at once).
  boost::asio::awaitable<void> run();
  void stop() { stop_.set(); }

  /// Events of pods that ended before they were delivered.
  std::size_t lost() const noexcept { return lost_; }

 private:
  boost::asio::awaitable<void> follow(k8s::informer* from);
  boost::asio::awaitable<void> keep();
  boost::asio::awaitable<k8s::result<void>> step();
  boost::asio::awaitable<void> run_pod(std::shared_ptr<pod> one, k8s::object_key key);
  k8s::object_key pod_key() const;
  boost::asio::awaitable<void> tell_pod(const boost::json::value* deployment);
  k8s::result<void> place(const boost::json::value& deployment);
  k8s::result<void> refuse(const std::string& why);
  void end_pod();
  boost::asio::awaitable<k8s::result<void>> tell_endpoints();

  cli::services& services_;
  core::metrics& metrics_;
  const options how_;
  core::logger log_;
  k8s::client api_;
  k8s::informer deployments_;
  k8s::informer secrets_;
  core::wake changed_;
  core::wake stop_;
  core::task_group pods_;
  std::shared_ptr<pod> current_;
  std::optional<boost::asio::ip::tcp::endpoint> told_;  ///< what the Endpoints say
  std::size_t pod_count_ = 0;                           ///< the present pod's number
  std::size_t told_pod_ = 0;  ///< that of the last one that the API server was told of
  std::string complaint_;     ///< why there is no pod as the objects want it; empty: there is
  std::size_t lost_ = 0;
  std::exception_ptr failure_;
};

}  // namespace rw::dev
