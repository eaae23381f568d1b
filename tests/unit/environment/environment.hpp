#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/log.hpp"
#include "rw/core/metrics.hpp"
#include "rw/core/task_group.hpp"
#include "rw/core/watchdog.hpp"
#include "rw/k8s/cache/informer.hpp"
#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/k8s/controller/event_recorder.hpp"
#include "rw/k8s/devserver/server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/environment/local_network.hpp"
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rw::test {

namespace asio = boost::asio;
namespace json = boost::json;

inline const k8s::resource_type deployments{{"apps", "v1", "Deployment"}, "deployments", true};
inline const k8s::resource_type services{{"", "v1", "Service"}, "services", true};
inline const k8s::resource_type bundles{
    {"certificates.k8s.io", "v1beta1", "ClusterTrustBundle"}, "clustertrustbundles", false};
inline const k8s::resource_type webhook_configurations{
    {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
    "validatingwebhookconfigurations",
    false};
inline const k8s::resource_type definitions{
    {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"}, "customresourcedefinitions", false};

using object_check = std::function<bool(const json::value&)>;
bool is_there(const json::value& object);
bool is_gone(const json::value& object);

/// Throws std::runtime_error with the text of `otherwise` unless it holds, which ends the test.
void require(bool holds, std::string_view otherwise);

template <class T>
T required(k8s::result<T> got) {
  require(got.has_value(), got.has_value() ? std::string_view() : got.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*got);
}

/// An object with nothing but its name.
json::value object_of(const k8s::resource_type& type, const std::string& ns,
                      const std::string& name);
/// The kind that the object names, if it is a well-known one; otherwise `bundles`.
k8s::resource_type type_of(const json::value& object);
/// The documents of a file below deploy/.
const std::vector<json::value>& documents_of(const std::string& file);
/// The value of a time series, if there is one.
std::optional<double> metric_of(const core::metrics& in, const std::string& series);
/// True for the verbs of requests that change nothing.
bool reads(const std::string& verb);

struct environment_options {
  /// Without TLS it is on a network of its own (local_network.hpp).
  k8s::devserver::server_options server = {};
  core::duration tick = std::chrono::milliseconds(20);              ///< of the watchdog
  k8s::client_options client = {.name = "test"};                    ///< of `client`
  std::unique_ptr<core::clock> clock = {};                          ///< empty: the real one
  core::random_source (*make_random)() = core::make_random_source;  ///< of the server, too
};

/// An embedded API server with the cluster "kcp" and, for each runtime, one of the runtime's name;
/// clients, informers and whatever else reactors need. Errors of the test's own requests end the
/// test. Everything happens on `context`.
///
/// Whatever derives from it ends its reactors, or leaves that to `shut_down`, in its destructor.
class environment {
 public:
  explicit environment(environment_options with = {});
  virtual ~environment();
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;

  // --- clusters ------------------------------------------------------------------------

  /// A cluster whose requests are counted and may hang.
  void add_cluster(const std::string& name);
  /// Nothing if there is none of that name.
  asio::awaitable<void> remove_cluster(std::string name);
  /// The cluster is on another API server.
  void use(const std::string& cluster, std::string kubeconfig);
  /// The cluster is on the API server of RW_CONFORMANCE_KUBECONFIG; false if that is not set.
  bool use_real(const std::string& cluster);
  std::string kubeconfig(const std::string& cluster);

  std::shared_ptr<k8s::client> client(const std::string& cluster);
  k8s::client& api(const std::string& cluster) { return *client(cluster); }
  /// A client that is closed by its owner.
  std::unique_ptr<k8s::client> connect(const std::string& cluster, k8s::client_options options);

  // --- objects -------------------------------------------------------------------------

  /// What the request brings, which must succeed.
  asio::awaitable<json::value> must(asio::awaitable<k8s::result<json::value>> call);
  asio::awaitable<json::value> create(std::string cluster, json::value object,
                                      k8s::resource_type type);
  /// By force, under the field manager `author`.
  asio::awaitable<void> apply(json::value object, k8s::resource_type type);
  asio::awaitable<void> merge(k8s::resource_type type, k8s::object_key key, json::value change);
  asio::awaitable<void> remove(std::string cluster, k8s::resource_type type, k8s::object_key key);
  /// CustomResourceDefinitions of deploy/, and namespaces, in KCP.
  asio::awaitable<void> define(std::vector<std::string> files, std::vector<std::string> namespaces);
  /// The Secret with the kubeconfig of a runtime, labelled with its Kyma.
  asio::awaitable<void> set_kubeconfig(std::string runtime, std::string kyma, std::string text);
  /// In KCP: a Runtime with these annotations, and its kubeconfig.
  asio::awaitable<void> register_runtime(std::string name, json::object annotations = {});
  /// The same with a cluster that has the namespace kyma-system. Its requests are counted from then
  /// on.
  asio::awaitable<void> add_runtime(std::string name, json::object annotations = {});
  /// What a cluster's controllers would say of a Deployment, when it is there.
  asio::awaitable<void> set_ready(std::string cluster, k8s::object_key deployment);
  /// The Deployment has a pod whose container of that name crashes, or has none.
  asio::awaitable<void> set_crashing(std::string cluster, k8s::object_key deployment,
                                     std::string container, bool crashes);

  // --- waiting, with a deadline --------------------------------------------------------

  /// Reads an object until it is as `good` says; null: not there. False if that does not happen.
  asio::awaitable<bool> until(std::string cluster, k8s::resource_type type, k8s::object_key key,
                              object_check good,
                              std::chrono::seconds within = std::chrono::seconds(10));
  /// Whether `kcp-system` has an event of this reason on an object of that name, whose message has
  /// `text`.
  asio::awaitable<bool> until_event(std::string about, std::string reason, std::string text = {});
  asio::awaitable<bool> has_event(std::string about, std::string reason, std::string text = {});

  // --- for reactors --------------------------------------------------------------------

  k8s::client_environment client_environment() {
    return {clock, watchdog, log, numbers, make_random};
  }
  k8s::informer_environment informer_environment();
  /// Runs until the end; on KCP.
  k8s::informer& inform(const k8s::resource_type& type, k8s::informer_options options);
  k8s::event_recorder& record_events(const std::string& component);
  k8s::client_pool& open_pool(k8s::client_pool_options options);

  /// 0 if there is no such series.
  double metric(const std::string& series) const { return metric_of(numbers, series).value_or(0); }
  long lines(std::string_view with) const;  ///< that were logged

  struct requests {
    int reads = 0;
    int writes = 0;  ///< dry runs among them
  };

  asio::io_context context{1};

 private:
  const std::unique_ptr<local_network> network_;  ///< none: TCP
  const std::unique_ptr<core::clock> owned_clock_;
  const k8s::client_options client_options_;

 public:
  core::random_source (*const make_random)();
  core::clock& clock;
  core::metrics numbers;
  std::vector<std::string> logged;
  core::logger log{core::log_level::info,
                   [this](std::string_view line) { logged.emplace_back(line); }};
  core::watchdog watchdog;
  k8s::devserver::server server;
  std::map<std::string, requests> asked;       ///< of each cluster but "kcp"
  std::map<std::string, bool> hanging;         ///< clusters that take requests and do not answer
  std::map<std::string, bool> hanging_writes;  ///< that do so with writes only
  /// What is to happen to a request otherwise; may be empty.
  std::function<k8s::devserver::fault(const std::string& cluster, const std::string& verb,
                                      const std::string& path)>
      on_request;
  core::task_group tasks{context.get_executor()};  ///< cancelled and joined at the end

 protected:
  /// Forgets a test's functions, which may refer to what has gone with its coroutine. For
  /// destructors that run the context before `shut_down`.
  void end_faults();
  /// Ends all tasks and connections; the second time nothing.
  void shut_down();
  asio::awaitable<void> close();

 private:
  std::map<std::string, std::string> elsewhere_;  ///< kubeconfigs
  std::map<std::string, std::shared_ptr<k8s::client>> clients_;
  std::vector<std::unique_ptr<k8s::client_pool>> pools_;
  std::vector<std::unique_ptr<k8s::event_recorder>> recorders_;
  std::vector<std::unique_ptr<k8s::informer>> informers_;
  bool closed_ = false;
};

}  // namespace rw::test
