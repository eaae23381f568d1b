#include "rw/k8s/devserver/problem.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace rw::k8s::devserver {

boost::json::value to_status(const problem& what) {
  boost::json::object details;
  if (!what.name.empty()) details["name"] = what.name;
  if (!what.group.empty()) details["group"] = what.group;
  if (!what.kind.empty()) details["kind"] = what.kind;
  if (!what.uid.empty()) details["uid"] = what.uid;
  if (!what.causes.empty()) {
    boost::json::array causes;
    for (const auto& one : what.causes) {
      causes.push_back({{"reason", one.reason}, {"message", one.message}, {"field", one.field}});
    }
    details["causes"] = std::move(causes);
  }
  if (what.retry_after > 0) details["retryAfterSeconds"] = what.retry_after;
  boost::json::object metadata;
  if (!what.continue_token.empty()) metadata["continue"] = what.continue_token;
  boost::json::object status{{"kind", "Status"},
                             {"apiVersion", "v1"},
                             {"metadata", std::move(metadata)},
                             {"status", "Failure"},
                             {"message", what.message}};
  if (!what.reason.empty()) status["reason"] = what.reason;
  if (!details.empty()) status["details"] = std::move(details);
  status["code"] = what.code;
  return status;
}

}  // namespace rw::k8s::devserver
