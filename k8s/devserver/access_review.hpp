#pragma once

#include "rw/k8s/devserver/cluster.hpp"
#include "rw/k8s/devserver/identity.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// Returns true for the path at which clients review their own access, as `kubectl auth can-i` does
/// (authorization.k8s.io/v1, SelfSubjectAccessReview).
bool is_access_review(std::string_view method, const std::vector<std::string>& path);

/// Returns the response. `authorization`: roles count; otherwise every authenticated user may do
/// everything.
outcome<boost::json::value> review_access(const cluster& in, const identity& who,
                                          bool authorization, std::string_view body);

}  // namespace rw::k8s::devserver
