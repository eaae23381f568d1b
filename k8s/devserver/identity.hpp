#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/http/message.hpp"
#include "rw/k8s/devserver/problem.hpp"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::k8s::devserver {

struct identity {
  std::string user;
  std::vector<std::string> groups;

  bool in(std::string_view group) const noexcept;
};

/// The users of all clusters: by tokens, each valid for one cluster, and by client certificates of
/// the server's CA (common name: the user, organizations: the groups), valid for all. Only a member
/// of system:masters may impersonate others; roles decide what other users may do (roles.hpp).
class identities {
 public:
  explicit identities(core::random_source& random) : random_(random) {}

  /// Returns the user's token for a cluster; makes it at the first call.
  const std::string& token(std::string_view cluster, std::string_view user);
  /// Invalidates the tokens of a cluster.
  void forget(std::string_view cluster);

  /// Returns the user of a request (Kubernetes, "Authenticating"). Problems: 401 for an unknown
  /// token, or without credentials; 403 if impersonation is not allowed.
  outcome<identity> identify(const http::request& from, std::string_view cluster) const;

  /// Returns the user of a token; null if the token is unknown.
  const std::string* user_of(std::string_view token, std::string_view cluster) const;

  /// Returns the groups of a user of that name, without those of a certificate.
  static std::vector<std::string> groups_of(std::string_view user);

 private:
  struct owner {
    std::string cluster;
    std::string user;
  };
  outcome<identity> authenticate(const http::request& from, std::string_view cluster) const;

  core::random_source& random_;
  std::unordered_map<std::string, owner> tokens_;
};

}  // namespace rw::k8s::devserver
