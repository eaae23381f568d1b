#pragma once

#include "rw/k8s/client/client.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw {

/// A right of an identity in a cluster (authorization.k8s.io/v1, ResourceAttributes).
struct access_right {
  std::string verb = {};
  std::string group = {};
  std::string resource = {};
  std::string subresource = {};
  std::string ns = {};    ///< empty: in all namespaces, or cluster-scoped
  std::string name = {};  ///< empty: any object
};

/// "list secrets in namespace kcp-system", "patch watchers.operator.kyma-project.io/status".
std::string text_of(const access_right& right);

/// Returns the SelfSubjectAccessReview of a right.
boost::json::value review_of(const access_right& right);
/// Returns what the reviewed object, as JSON, says.
bool is_allowed(std::string_view review);

/// Asks the API server whether the client's own identity has the right. Everybody may ask: no
/// request is refused. The right may be given or taken at any time.
boost::asio::awaitable<k8s::result<bool>> has_right(k8s::client& api, access_right right);
/// Returns those of the rights that the client's identity does not have.
boost::asio::awaitable<k8s::result<std::vector<access_right>>> find_missing(
    k8s::client* api, std::vector<access_right> rights);

}  // namespace rw
