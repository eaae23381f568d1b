#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace rw::k8s::devserver {

boost::json::value to_status(const problem& problem) {
  boost::json::object details;
  if (!problem.name.empty()) details["name"] = problem.name;
  if (!problem.group.empty()) details["group"] = problem.group;
  if (!problem.kind.empty()) details["kind"] = problem.kind;
  if (!problem.uid.empty()) details["uid"] = problem.uid;
  if (!problem.causes.empty()) {
    boost::json::array causes;
    for (const auto& cause : problem.causes) {
      causes.push_back(
          {{"reason", cause.reason}, {"message", cause.message}, {"field", cause.field}});
    }
    details["causes"] = std::move(causes);
  }
  if (problem.retry_after > 0) details["retryAfterSeconds"] = problem.retry_after;
  boost::json::object metadata;
  if (!problem.continue_token.empty()) metadata["continue"] = problem.continue_token;
  boost::json::object status{{"kind", "Status"},
                             {"apiVersion", "v1"},
                             {"metadata", std::move(metadata)},
                             {"status", "Failure"},
                             {"message", problem.message}};
  if (!problem.reason.empty()) status["reason"] = problem.reason;
  if (!details.empty()) status["details"] = std::move(details);
  status["code"] = problem.code;
  return status;
}

}  // namespace rw::k8s::devserver
