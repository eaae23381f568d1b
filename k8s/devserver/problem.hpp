#pragma once

#include <boost/json/value.hpp>
#include <boost/system/result.hpp>

#include <memory>
#include <string>
#include <vector>

namespace rw::k8s::devserver {

/// One cause of a failure (metav1.StatusCause).
struct cause {
  std::string field;   ///< such as "spec.replicas"
  std::string reason;  ///< such as "FieldValueInvalid"
  std::string message;
};

/// The reason of a rejected request, for a metav1.Status.
struct problem {
  unsigned code = 500;
  std::string reason = "InternalError";
  std::string message;
  std::vector<cause> causes = {};
  unsigned retry_after = 0;  ///< seconds

  // The subject (metav1.StatusDetails); empty: none.
  std::string name = {};
  std::string group = {};
  std::string kind = {};  ///< in most cases the plural, "configmaps"
  std::string uid = {};
  std::string continue_token = {};  ///< metadata.continue: where a list may continue nevertheless
};

/// Returns the response's body: metav1.Status (Kubernetes API reference, "Status").
boost::json::value to_status(const problem& problem);

/// The warnings of one request: its client receives them whether it succeeds or not.
using warning_list = std::shared_ptr<std::vector<std::string>>;

template <class T>
using outcome = boost::system::result<T, problem>;

}  // namespace rw::k8s::devserver
