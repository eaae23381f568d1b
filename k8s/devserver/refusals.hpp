#pragma once

#include "rw/k8s/devserver/problem.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The common problems, worded as in kube-apiserver (apimachinery, "api/errors"), since clients and
// scripts depend on the words.

namespace rw::k8s::devserver {

/// Subject of a problem: a resource by group and plural, or a kind by group and kind, and a name.
struct subject {
  std::string_view group;
  std::string_view resource;  ///< or kind
  std::string_view name = {};

  /// Formats as "deployments.apps", or "configmaps".
  std::string qualified() const;
};

problem not_found(const subject& of);
problem already_exists(const subject& of);
problem conflict(const subject& of, std::string_view reason);
problem modified_meanwhile(const subject& of);
problem forbidden(const subject& of, std::string_view reason);
/// `of` names a kind here, as in 'ConfigMap "x" is invalid: …'.
problem invalid(const subject& of, std::vector<cause> causes);
problem bad_request(std::string reason);
problem unauthorized();
problem internal_error(std::string_view reason);
/// kube-apiserver does it, this server does not.
problem unsupported(std::string_view media_type);
problem unsupported_media_type(std::string_view accepted);
problem not_acceptable(std::string_view accepted);
/// A resource or subresource that is not served.
problem no_such_resource();
problem method_not_allowed(std::string_view method);
problem too_large(std::string reason);
/// The server's limit is reached; the client retries a second later.
problem too_many_requests();
/// The custom resource is too new.
problem storage_initializing();
problem timed_out();
/// History no longer has the version of a watch or list.
problem expired(std::string reason);
problem too_large_version(std::uint64_t asked, std::uint64_t current);

/// Returns the default reason of a status; empty if there is none.
std::string_view default_reason(unsigned status) noexcept;

}  // namespace rw::k8s::devserver
