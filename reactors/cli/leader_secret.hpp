#pragma once

#include "rw/k8s/controller/election.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rw::cli {

/// How `status` and `doctor` reach the leader's pages through the API server. The leader writes it
/// to a Secret in `--state-namespace`.
struct leader_secret {
  std::string holder = {};  ///< of the Lease
  std::uint16_t port = 0;
  std::string token = {};  ///< of its term

  static constexpr std::string_view name = "runtime-watcher-leader";
};

/// The Secret's `data`.
boost::json::object write_leader_secret(const leader_secret& from);
/// Nothing if the Secret is incomplete, or not of that holder of the Lease.
std::optional<leader_secret> read_leader_secret(const boost::json::value& secret,
                                                std::string_view holder);

/// "runtime-watcher-manager-6d9f_54e82dbb638e8fd4" is the pod runtime-watcher-manager-6d9f.
std::string pod_of(std::string_view holder);

/// The command that opens the page of a pod at `port`.
std::string port_forward_command(std::string_view ns, std::string_view pod, std::uint16_t port);

/// Says who leads for a replica that does not: the pod, when it renewed the Lease, and the way to
/// its page at `admin_port`, or that no replica does, who held the Lease before and when it was
/// renewed last.
std::string text_of_leader(const k8s::observed_leader& leader, std::string_view lease_ns,
                           std::uint16_t admin_port, std::chrono::system_clock::time_point now);

/// The path of the leader's pages behind the API server's proxy of pods, without that of a page.
/// None if its holder's name can't be a pod's, as of a manager outside the cluster.
std::optional<std::string> proxy_path(std::string_view ns, const leader_secret& leader);

}  // namespace rw::cli
