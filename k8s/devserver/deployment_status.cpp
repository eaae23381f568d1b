#include "rw/k8s/devserver/deployment_status.hpp"

#include "rw/k8s/objects/types.hpp"

#include <cstdint>

namespace rw::k8s::devserver {

namespace json = boost::json;

json::object deployment_status(const json::value& deployment, bool serves,
                               const std::string& why_not,
                               std::chrono::system_clock::time_point now) {
  json::value with_condition = deployment;
  k8s::set_condition(with_condition,
                     {.type = "Available",
                      .status = serves ? "True" : "False",
                      .reason = serves ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                      .message = serves ? "Deployment has minimum availability." : why_not},
                     now);
  const auto* const asked = find(deployment, {"spec", "replicas"});
  const std::int64_t all = asked != nullptr && asked->is_int64() ? asked->get_int64() : 1;
  const std::int64_t ready = serves ? all : 0;
  return {{"observedGeneration", generation_of(deployment)},
          {"replicas", all},
          {"updatedReplicas", ready},
          {"readyReplicas", ready},
          {"availableReplicas", ready},
          {"unavailableReplicas", all - ready},
          {"conditions", *find(with_condition, {"status", "conditions"})}};
}

}  // namespace rw::k8s::devserver
