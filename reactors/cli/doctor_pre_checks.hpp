#pragma once

#include "rw/k8s/client/client.hpp"
#include "rw/k8s/client/client_pool.hpp"
#include "rw/reactors/cli/app.hpp"
#include "rw/reactors/cli/doctor_pre_journal.hpp"
#include "rw/reactors/cli/doctor_pre_manifests.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <vector>

namespace rw::cli {

/// What the checks of `doctor --pre` share. All of it must outlive them.
struct pre_context {
  services& shared;
  const doctor_settings& settings;
  const std::vector<boost::json::value>& objects;  ///< to be installed
  const planned_manager& planned;
  k8s::client& kcp;
  k8s::client_pool& runtimes;
  pre_journal& journal;
  std::string user = {};  ///< in KCP; empty: unknown
};

/// Returns the client's own user; empty: an API server before 1.28 does not tell.
boost::asio::awaitable<std::string> read_user(k8s::client* api);

// Each throws std::runtime_error where KCP no longer responds.

/// Checks that the namespaces exist, that KCP accepts each object, and that the user may write it.
boost::asio::awaitable<void> check_manifests(pre_context* with);
/// Checks what the manager needs in KCP beside its manifests.
boost::asio::awaitable<void> check_needs(pre_context* with);
/// Checks that the kubeconfigs of runtimes give the rights that the manager needs there.
boost::asio::awaitable<void> check_runtimes(pre_context* with);

}  // namespace rw::cli
