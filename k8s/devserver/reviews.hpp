#pragma once

#include "rw/core/clock.hpp"
#include "rw/core/http/message.hpp"
#include "rw/k8s/devserver/call.hpp"
#include "rw/k8s/devserver/identity.hpp"

#include <string_view>

namespace rw::k8s::devserver {

inline constexpr std::string_view token_subresource = "token";  ///< of ServiceAccounts

/// Answers the kinds that are created and not stored: questions about access and identity
/// (authorization.k8s.io and authentication.k8s.io, version v1), and requests for tokens.
class reviews {
 public:
  struct parts {
    const core::clock& clock;
    identities& users;
    const std::vector<std::string>& audiences;  ///< of tokens that name none
    bool authorization;  ///< roles count; otherwise every authenticated user may do everything
  };

  explicit reviews(parts with) : parts_(with) {}

  /// Parses and checks a review, or a TokenRequest for a ServiceAccount.
  outcome<boost::json::value> parse(const call& to, const http::request& from) const;
  /// Writes the response to the creation of what `parse` returned.
  void respond(const call& to, boost::json::value object, http::response& into) const;

 private:
  outcome<boost::json::value> status_of(const call& to, const boost::json::value& review) const;
  outcome<boost::json::value> access_of(const call& to, const boost::json::value& review) const;
  outcome<boost::json::value> rules_of(const call& to, const boost::json::value& review) const;
  boost::json::value token_of(const call& to, const boost::json::value& review) const;
  outcome<boost::json::value> issue(const call& to, boost::json::value request) const;

  const parts parts_;
};

/// Returns false for a token of a ServiceAccount that has been deleted.
bool account_exists(const cluster& in, const identity& user);

/// Returns true for reviews of the caller's own identity and access, which every user may create.
bool is_own_review(std::string_view group, std::string_view plural) noexcept;

}  // namespace rw::k8s::devserver
