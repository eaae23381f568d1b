#include "reactors/runtime_controller/workload.hpp"

#include "k8s/objects/types.hpp"

#include <initializer_list>
#include <string_view>

namespace rw {
namespace {

namespace json = boost::json;

std::int64_t number(const json::value& in, std::initializer_list<std::string_view> path) {
  const auto* value = k8s::find(in, path);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

}  // namespace

bool is_rolled_out(const json::value& deployment) {
  if (number(deployment, {"status", "readyReplicas"}) < 1) return false;
  if (k8s::find(deployment, {"status", "observedGeneration"}) == nullptr) return true;
  const auto replicas = number(deployment, {"status", "replicas"});
  return number(deployment, {"status", "observedGeneration"}) >= k8s::generation_of(deployment) &&
         number(deployment, {"status", "updatedReplicas"}) == replicas &&
         number(deployment, {"status", "readyReplicas"}) == replicas;
}

bool has_given_up(const json::value& deployment) {
  const auto progressing = k8s::find_condition(deployment, "Progressing");
  return progressing && progressing->status == "False" &&
         progressing->reason == "ProgressDeadlineExceeded";
}

}  // namespace rw
