#pragma once

#include "rw/core/backoff.hpp"
#include "rw/core/http/message.hpp"
#include "rw/k8s/devserver/problem.hpp"
#include "rw/k8s/objects/names.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rw::k8s::devserver {

struct identity {
  std::string user;
  std::vector<std::string> groups;
  // Of a requested token of a ServiceAccount; otherwise empty.
  std::string credential = {};
  object_key account = {};
  std::string account_uid = {};

  bool in(std::string_view group) const noexcept;
};

/// The users of all clusters: by tokens, each valid for one cluster, and by client certificates of
/// the server's CA (common name: the user, organizations: the groups), valid for all. Only a member
/// of system:masters may impersonate others; roles decide what other users may do (roles.hpp).
class identities {
 public:
  using time_point = std::chrono::system_clock::time_point;

  explicit identities(core::random_source& random) : random_(random) {}

  /// Returns the user's token for a cluster; makes it at the first call.
  const std::string& token(std::string_view cluster, std::string_view user);
  /// Accepts a token that was chosen elsewhere.
  void add_token(std::string_view cluster, std::string token, std::string_view user,
                 std::vector<std::string> groups);
  /// A ServiceAccount.
  struct account {
    std::string ns;
    std::string name;
    std::string uid;
  };
  /// Issues a token for a ServiceAccount: a JSON Web Token whose signature is random, since only
  /// this server checks it. 429 if too many are valid.
  outcome<std::string> issue(std::string_view cluster, account of,
                             const boost::json::value& audiences, time_point now, time_point end);
  /// Invalidates the tokens of a cluster.
  void forget(std::string_view cluster);

  /// Returns the user of a request (Kubernetes, "Authenticating"). Problems: 401 for an unknown
  /// token, or without credentials; 403 if impersonation is not allowed.
  outcome<identity> identify(const http::request& from, std::string_view cluster,
                             time_point now) const;

  /// Returns the user of a token; 401 if it is unknown or has expired.
  outcome<identity> identify_token(std::string_view token, std::string_view cluster,
                                   time_point now) const;

  /// Returns the groups of a user of that name, without those of a certificate.
  static std::vector<std::string> groups_of(std::string_view user);

 private:
  struct owner {
    std::string cluster;
    std::string user;
    // Of a requested token.
    account of = {};
    std::string credential = {};
    time_point end = time_point::max();
    std::vector<std::string> groups = {};  ///< beside those that the name says
  };
  outcome<identity> authenticate(const http::request& from, std::string_view cluster,
                                 time_point now) const;

  core::random_source& random_;
  std::unordered_map<std::string, owner> tokens_;
  std::size_t issued_ = 0;  ///< requested tokens in it
};

}  // namespace rw::k8s::devserver
