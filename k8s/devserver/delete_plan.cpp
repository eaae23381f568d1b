#include "rw/k8s/devserver/conversion.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/write_plan.hpp"
#include "rw/k8s/devserver/write_rules.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace rw::k8s::devserver {

namespace json = boost::json;

namespace {

/// Namespaces that can't be deleted (admission plugin NamespaceLifecycle).
constexpr std::array<std::string_view, 3> immortal{"default", "kube-system", "kube-public"};

}  // namespace

outcome<write_plan> write_planner::remove(const call& to, const delete_options& with) const {
  if (is_namespace(to) && std::ranges::find(immortal, to.key.name) != immortal.end()) {
    return forbidden(to.what(), "this namespace may not be deleted");
  }
  auto before = to.objects()->find(to.path());
  if (!before) return not_found(to.what());
  write_plan plan;
  plan.old = before->parse();
  to_view(plan.old, to.view);
  const auto uid = find_string(plan.old, {"metadata", "uid"});
  if (!with.uid.empty() && with.uid != uid) {
    return conflict(to.what(), "the UID in the precondition (" + with.uid +
                                   ") does not match the UID in record (" + std::string(uid) +
                                   "). The object might have been deleted and then recreated");
  }
  const auto version = std::to_string(before->version());
  if (!with.resource_version.empty() && with.resource_version != version) {
    return conflict(to.what(), "the ResourceVersion in the precondition (" + with.resource_version +
                                   ") does not match the ResourceVersion in record (" + version +
                                   "). The object might have been modified");
  }
  plan.before = std::move(before);
  plan.key = to.key;
  plan.operation = "DELETE";
  plan.object = plan.old;
  auto names = finalizers_of(plan.object);
  const auto want = [&](const std::string& name, bool wanted) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (wanted && at == names.end()) names.push_back(name);
    if (!wanted && at != names.end()) names.erase(at);
  };
  const bool has_way = std::ranges::any_of(names, [](const std::string& name) {
    return name == "orphan" || name == "foregroundDeletion";
  });
  if (with.default_propagation && !has_way && to.view.of->storage_key == "jobs.batch") {
    want("orphan", true);
    plan.warnings.emplace_back(
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
        "this warning");
  }
  if (!with.propagation.empty()) {
    want("foregroundDeletion", with.propagation == "Foreground");
    want("orphan", with.propagation == "Orphan");
  }
  set_finalizers(plan.object, names);
  if (names.empty() && !holds_content(to, plan.object)) {
    plan.what = write_plan::action::remove;
    if (to.view.of->storage_key == "pods") {
      // Graceful deletion, of no seconds: no kubelet runs.
      auto& metadata = plan.object.get_object().at("metadata").get_object();
      if (!is_being_deleted(plan.object)) metadata["deletionTimestamp"] = now();
      metadata["deletionGracePeriodSeconds"] = 0;
    }
    return plan;
  }
  auto& metadata = plan.object.get_object().at("metadata").get_object();
  if (!is_being_deleted(plan.object)) {
    metadata["deletionTimestamp"] = now();
    metadata["deletionGracePeriodSeconds"] = 0;
    const auto generation = integer_at(plan.old, {"metadata", "generation"});
    if (generation) metadata["generation"] = *generation + 1;
    if (is_namespace(to)) object_in(plan.object.get_object(), "status")["phase"] = "Terminating";
  }
  plan.what = plan.object == plan.old ? write_plan::action::nothing : write_plan::action::put;
  return plan;
}

}  // namespace rw::k8s::devserver
