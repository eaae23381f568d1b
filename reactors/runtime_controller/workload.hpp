#pragma once

#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// Returns true if all pods of a Deployment run its current template. Without a controller's
/// observed generation a ready replica is enough.
bool is_rolled_out(const boost::json::value& deployment);

/// Returns true if its controller no longer waits for the pods (condition Progressing, reason
/// ProgressDeadlineExceeded).
bool has_given_up(const boost::json::value& deployment);

/// Selects the pods of a Deployment, of all its ReplicaSets; nothing: it has no selector.
std::optional<k8s::selection> pods_of(const boost::json::value& deployment);

/// Returns the names of the pods of a list that may run, now or soon, those that are ending
/// included.
std::vector<std::string> names_of_pods(const boost::json::value& pods);

/// What keeps pods from being ready.
struct pod_state {
  std::string reason = {};  ///< a word, such as "CrashLoopBackOff"; empty: they are
  std::string message = {};
  std::string container = {};  ///< "pod NAME, container NAME"; empty: all
  /// Waiting won't help: a container crashes, its image can't be pulled or its configuration used,
  /// it has restarted, or the Deployment's controller has given up.
  bool lasting = false;

  /// For people; empty: it may pass.
  std::string error() const;
};

/// Of a list, of which the pods of a template count; an empty one stands for all. Starting up is a
/// reason only where there is no other.
pod_state inspect_pods(const boost::json::value& pods, std::string_view template_hash);

/// Likewise, with the Deployment's conditions: why pods can't be created (ReplicaFailure), and that
/// its controller has given up (Progressing).
pod_state inspect_pods(const boost::json::value& deployment, const boost::json::value& pods,
                       std::string_view template_hash);

/// Of a Deployment's newest pods. Reads nothing if it is rolled out.
boost::asio::awaitable<k8s::result<pod_state>> inspect_pods(k8s::client* api,
                                                            boost::json::value deployment);

}  // namespace rw
