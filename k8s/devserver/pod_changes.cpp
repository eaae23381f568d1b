#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/pod_checks.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Returns true if each toleration is still there, with any tolerationSeconds.
bool keeps_tolerations(const json::value& before, const json::value& pod) {
  const auto tolerations_of = [](const json::value& of) {
    json::array all;
    for (auto toleration : array_at(of, {"spec", "tolerations"})) {
      if (toleration.is_object()) toleration.get_object().erase("tolerationSeconds");
      all.push_back(std::move(toleration));
    }
    return all;
  };
  const auto now = tolerations_of(pod);
  return std::ranges::all_of(tolerations_of(before), [&now](const json::value& toleration) {
    return std::ranges::find(now, toleration) != now.end();
  });
}

/// A Pod's spec without what an update may change.
json::object fixed_part(const json::value& pod) {
  const auto* const spec = find(pod, {"spec"});
  if (spec == nullptr || !spec->is_object()) return {};
  auto fixed = spec->get_object();
  for (const auto* field : {"activeDeadlineSeconds", "tolerations", "schedulingGates",
                            "terminationGracePeriodSeconds"}) {
    fixed.erase(field);
  }
  for (const auto* field : {"containers", "initContainers"}) {
    auto* const list = fixed.if_contains(field);
    if (list == nullptr || !list->is_array()) continue;
    for (auto& entry : list->get_array()) {
      if (entry.is_object()) entry.get_object().erase("image");
    }
  }
  return fixed;
}

/// A projected token needs a ServiceAccount.
void check_token_volumes(const json::value& pod, std::vector<cause>& found) {
  if (!find_string(pod, {"spec", "serviceAccountName"}).empty()) return;
  const auto& volumes = array_at(pod, {"spec", "volumes"});
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const auto* const projected = find(volumes[i], {"projected"});
    if (projected == nullptr) continue;
    const auto& sources = array_at(*projected, {"sources"});
    for (std::size_t j = 0; j < sources.size(); ++j) {
      if (find(sources[j], {"serviceAccountToken"}) == nullptr) continue;
      found.push_back({"spec.volumes[" + std::to_string(i) + "].projected.sources[" +
                           std::to_string(j) + "].serviceAccountToken",
                       "FieldValueForbidden",
                       "Forbidden: must not be specified when serviceAccountName is not set"});
    }
  }
}

}  // namespace

void check_pod(const json::value& before, const json::value& object, std::vector<cause>& found) {
  const auto* const spec = find(object, {"spec"});
  check_pod_spec(spec == nullptr ? json::value() : *spec, "spec", found);
  check_token_volumes(object, found);
  if (before.is_null()) return;
  if (!keeps_tolerations(before, object)) {
    found.push_back({"spec.tolerations", "FieldValueForbidden",
                     "Forbidden: existing toleration can not be modified except its "
                     "tolerationSeconds"});
  }
  for (const std::string field : {"containers", "initContainers"}) {
    if (array_at(before, {"spec", field}).size() == array_at(object, {"spec", field}).size())
      continue;
    found.push_back({"spec." + field, "FieldValueForbidden",
                     "Forbidden: pod updates may not add or remove containers"});
    return;
  }
  if (fixed_part(before) == fixed_part(object)) return;
  found.push_back({"spec", "FieldValueForbidden",
                   "Forbidden: pod updates may not change fields other than "
                   "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                   "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
                   "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if "
                   "it was previously negative)"});
}

}  // namespace rw::k8s::devserver
