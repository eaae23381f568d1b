#include "rw/k8s/devserver/pod_admission.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/refusals.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::string_view classes_key = "priorityclasses.scheduling.k8s.io";

/// The class of that name, or the global default if the name is empty.
std::optional<json::value> find_class(const cluster& in, std::string_view name) {
  const auto classes = in.objects.find(std::string(classes_key));
  if (!classes) return {};
  if (!name.empty()) {
    const auto found = classes->find(std::string(name));
    return found ? std::optional(found->parse()) : std::nullopt;
  }
  for (const auto& record : classes->all({})) {
    auto object = record->parse();
    if (true_at(object, {"globalDefault"})) return object;
  }
  return {};
}

void add_tolerations(json::object& spec) {
  auto& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = json::array();
  for (const std::string_view key :
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    const auto tolerates = [&](const json::value& toleration) {
      const auto effect = find_string(toleration, {"effect"});
      const auto name = find_string(toleration, {"key"});
      return (effect.empty() || effect == "NoExecute") && (name.empty() || name == key);
    };
    if (std::ranges::any_of(tolerations.get_array(), tolerates)) continue;
    tolerations.get_array().push_back({{"key", key},
                                       {"operator", "Exists"},
                                       {"effect", "NoExecute"},
                                       {"tolerationSeconds", 300}});
  }
}

}  // namespace

outcome<void> admit_pod(const cluster& in, json::value& pod) {
  auto& spec = object_in(pod.as_object(), "spec");
  const std::string name(find_string(pod, {"spec", "priorityClassName"}));
  std::int64_t priority = 0;
  std::string preemption = "PreemptLowerPriority";
  if (const auto found = find_class(in, name)) {
    priority = integer_at(*found, {"value"}).value_or(0);
    const auto policy = find_string(*found, {"preemptionPolicy"});
    if (!policy.empty()) preemption = policy;
    spec["priorityClassName"] = *find(*found, {"metadata", "name"});
  } else if (!name.empty()) {
    return forbidden({"", "pods", find_string(pod, {"metadata", "name"})},
                     "no PriorityClass with name " + name + " was found");
  }
  spec["priority"] = priority;
  set_default(spec, "preemptionPolicy", json::string(preemption));
  add_tolerations(spec);
  return {};
}

void carry_admitted(const json::value& before, json::value& pod) {
  auto& spec = object_in(pod.as_object(), "spec");
  for (const auto* field : {"priority", "preemptionPolicy"}) {
    const auto* const had = find(before, {"spec", field});
    if (had != nullptr) spec.emplace(field, *had);
  }
  add_tolerations(spec);
}

}  // namespace rw::k8s::devserver
