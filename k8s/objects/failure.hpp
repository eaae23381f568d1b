#pragma once

#include <boost/assert/source_location.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rw::k8s {

/// Errors of a request, as far as callers branch on them. The API server's own reasons are those of
/// `metav1.StatusReason` (Kubernetes API reference, "Status").
enum class errc : std::uint8_t {
  unreachable = 1,     ///< no connection, no TLS, no response; details in `failure::message`
  timed_out,           ///< no response in time
  bad_response,        ///< the response violates the API, such as invalid JSON
  too_large,           ///< the response exceeds the client's limits
  bad_request,         ///< 400
  unauthorized,        ///< 401
  forbidden,           ///< 403
  not_found,           ///< 404
  method_not_allowed,  ///< 405
  already_exists,      ///< 409 with reason AlreadyExists
  conflict,            ///< 409 otherwise: the object has another resourceVersion, or another owner
  gone,                ///< 410 (Gone, Expired): the resourceVersion or continue token is too old
  unsupported,         ///< 415, 406: patch type or format not supported by the server
  invalid,             ///< 422
  too_many_requests,   ///< 429
  server_error,        ///< 500, and statuses without a code of their own
  unavailable,         ///< 503, 504 and other transient failures of the server
  fenced,              ///< not sent: this process may no longer write (k8s/client/fence.hpp)
  not_configured,      ///< not sent: credentials are not available (token file, exec plugin)
  address_refused,     ///< not sent: the server is this machine or its link (config::refuse_local)
  shut_down,           ///< the client is being closed
};

const boost::system::error_category& api_category() noexcept;
boost::system::error_code make_error_code(errc e) noexcept;

/// A field that the server rejects (Kubernetes API reference, "StatusCause").
struct failure_cause {
  std::string reason = {};   ///< such as "FieldValueInvalid"
  std::string message = {};  ///< for people
  std::string field = {};    ///< such as "spec.replicas"
};

/// Why a request failed, for programs (`code`, `status`, `reason`) and people (`message`). Texts of
/// the server, which may be a tenant's, are printable (core::printable): they go to terminals,
/// Events and logs as they are.
struct failure {
  boost::system::error_code code;          ///< of `errc`
  unsigned status = 0;                     ///< of HTTP; 0 if there was no response
  std::string reason = {};                 ///< Status.reason, such as "AlreadyExists"; may be empty
  std::string message = {};                ///< one sentence: what failed, on which object, why
  std::chrono::seconds retry_after{0};     ///< as the server asked, at most five minutes
  std::vector<failure_cause> causes = {};  ///< Status.details.causes, 32 at most

  bool is(errc e) const noexcept { return code == make_error_code(e); }
};

/// Returns the metrics' label for a failure without status: the name of its `errc`.
std::string_view label_of(const failure& f) noexcept;

/// True if the API server understood the request and will refuse it again.
bool is_permanent(const failure& error) noexcept;

/// True if the kubeconfig is at fault: its credentials are rejected or cannot be used, or its
/// server is an address that is refused.
bool is_access_rejected(const failure& error) noexcept;

/// Makes result::value() throw boost::system::system_error with the message.
[[noreturn]] void throw_exception_from_error(const failure& f,
                                             const boost::source_location& location);

template <class T>
using result = boost::system::result<T, failure>;

}  // namespace rw::k8s

template <>
struct boost::system::is_error_code_enum<rw::k8s::errc> : std::true_type {};
