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

/// Throws std::runtime_error, which ends the command, where a read of KCP failed for another reason
/// than that the object does not exist or may not be read: nothing is known then.
void expect_response(const k8s::failure& error);

/// An object that is to be written, as a resource.
struct written_object {
  const boost::json::value* object = nullptr;
  k8s::resource_type type = {};
  std::string ns = {};  ///< empty: cluster-scoped
};

/// Returns the rights that the client's user lacks to do `verbs` with an object, and to grant what
/// it grants if it is a role, or a binding whose role may be among `objects`.
boost::asio::awaitable<k8s::result<std::vector<access_right>>> missing_to_write(
    k8s::client* api, written_object of, std::vector<std::string> verbs,
    const std::vector<boost::json::value>* objects);

// Each throws std::runtime_error where KCP no longer responds.

/// Checks that the namespaces exist, that KCP accepts each object, and that the user may write it.
boost::asio::awaitable<void> check_manifests(pre_context* with);
/// Checks what the manager needs in KCP beside its manifests.
boost::asio::awaitable<void> check_needs(pre_context* with);
/// Returns the objects that mode `direct` writes to each runtime, as the sources in KCP have them;
/// none in other modes. Reports where they can't be known.
boost::asio::awaitable<std::vector<boost::json::value>> read_direct_objects(pre_context* with);
/// Checks that the kubeconfigs of runtimes give the rights that the manager needs there.
boost::asio::awaitable<void> check_runtimes(pre_context* with);

}  // namespace rw::cli
