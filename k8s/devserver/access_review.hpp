#pragma once

#include "k8s/devserver/cluster.hpp"
#include "k8s/devserver/identity.hpp"
#include "k8s/devserver/problem.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s::devserver {

/// True for the path at which clients ask what they may do themselves, as `kubectl auth can-i` does
/// (authorization.k8s.io/v1, SelfSubjectAccessReview).
bool is_access_review(std::string_view method, const std::vector<std::string>& path);

/// The answer. `authorization`: roles count; otherwise whoever is known may do everything.
outcome<boost::json::value> review_access(const cluster& in, const identity& who,
                                          bool authorization, std::string_view body);

}  // namespace rw::k8s::devserver
