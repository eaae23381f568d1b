#pragma once

#include "core/task_group.hpp"
#include "core/watchdog.hpp"
#include "k8s/client.hpp"
#include "k8s/devserver/server.hpp"
#include "reactors/bootstrapper/sync.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/value.hpp>

#include "tests/unit/bootstrapper/samples.hpp"
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rw::bootstrapper_test {

namespace asio = boost::asio;

/// What all records here are sealed for.
inline const std::string subject = "kcp-system/skr";

inline const k8s::resource_type bundles{
    {"certificates.k8s.io", "v1beta1", "ClusterTrustBundle"}, "clustertrustbundles", false};

/// True for the verbs of requests that change nothing.
inline bool reads(const std::string& verb) {
  return verb == "get" || verb == "list" || verb == "watch";
}

/// What is to happen to a runtime's writing requests, dry runs among them.
struct write_faults {
  int seen = 0;
  int stop_after = -1;         ///< so many are let through, then the runtime answers nothing more
  int refuse = -1;             ///< the one with this number is refused for good
  std::string only_path = {};  ///< `refuse` counts only those whose path has this
  std::vector<std::string> paths = {};
};

/// Runtimes on an embedded API server.
class runtimes_world {
 public:
  runtimes_world();
  ~runtimes_world();

  /// A cluster with nothing but the namespace kyma-system, unless `bare`.
  asio::awaitable<void> add(std::string name, bool bare = false);
  /// The runtime "skr": on the real API server that RW_CONFORMANCE_KUBECONFIG leads to, if it is
  /// set, cleaned of what tests before have left there.
  asio::awaitable<void> add_any();
  std::shared_ptr<k8s::client> api(const std::string& runtime);

  asio::awaitable<k8s::result<bootstrapper::sync_report>> sync(std::string runtime,
                                                               bootstrapper::sync_request what);
  /// The same where it has to work.
  asio::awaitable<bootstrapper::sync_report> must_sync(std::string runtime,
                                                       bootstrapper::sync_request what);

  /// Whether the runtime has exactly this set, and of `other` nothing beside it.
  asio::awaitable<bool> has(std::string runtime, bootstrapper::known_set set,
                            bootstrapper::known_set other);
  asio::awaitable<json::value> get(std::string runtime, std::string kind, std::string name);
  asio::awaitable<std::string> phase(std::string runtime);

  asio::io_context context{1};
  core::real_clock clock;
  core::metrics numbers;
  core::logger log{core::log_level::error, [](std::string_view) {}};
  core::watchdog watchdog{clock, context.get_executor(), std::chrono::milliseconds(20)};
  k8s::devserver::server server{context.get_executor(), {}, {clock, watchdog, log, numbers}};
  std::map<std::string, write_faults> faults;
  /// The key is always the same, so that a real API server is cleaned of what another run left.
  bootstrapper::sync_method how = {.record_key = std::string(32, 'k')};

 private:
  std::map<std::string, std::shared_ptr<k8s::client>> clients_;
  core::task_group tasks_{context.get_executor()};
};

/// A request for all of these sources.
bootstrapper::sync_request request_for(const bootstrapper::sources_of_set& from);
/// The set that they make, as a runtime has it.
bootstrapper::known_set set_of(const bootstrapper::sources_of_set& from);

}  // namespace rw::bootstrapper_test
