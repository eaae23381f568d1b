#pragma once

#include "core/backoff.hpp"
#include "core/http/message.hpp"
#include "k8s/devserver/problem.hpp"

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::k8s::devserver {

/// Who makes a request.
struct identity {
  std::string user;
  std::vector<std::string> groups;

  bool in(std::string_view group) const noexcept;
};

/// Knows the users of all clusters: by tokens, each good for one cluster, and by client
/// certificates of the server's CA (common name: the user, organizations: the groups), good for
/// all. Only a member of system:masters may impersonate others; what else users may do, roles say
/// (roles.hpp).
class identities {
 public:
  explicit identities(core::random_source& random) : random_(random) {}

  /// The user's token for a cluster; made at the first call, the same from then on.
  const std::string& token(std::string_view cluster, std::string_view user);
  /// The tokens of a cluster are good no more.
  void forget(std::string_view cluster);

  /// Who sends the request (Kubernetes, "Authenticating"): 401 for a token that is unknown, or if
  /// nothing tells; 403 where impersonation is not allowed.
  outcome<identity> identify(const http::request& from, std::string_view cluster) const;

  /// Whose token it is; null: nobody's.
  const std::string* user_of(std::string_view token, std::string_view cluster) const;

  /// What a user of that name belongs to, apart from what a certificate says.
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
