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
    const auto* const list = find(of, {"spec", "tolerations"});
    if (list == nullptr || !list->is_array()) return all;
    for (auto toleration : list->get_array()) {
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

}  // namespace

void check_pod(const json::value& before, const json::value& object, std::vector<cause>& found) {
  const auto* const spec = find(object, {"spec"});
  check_pod_spec(spec == nullptr ? json::value() : *spec, "spec", found);
  if (before.is_null()) return;
  if (!keeps_tolerations(before, object)) {
    found.push_back({"spec.tolerations", "FieldValueForbidden",
                     "Forbidden: existing toleration can not be modified except its "
                     "tolerationSeconds"});
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
