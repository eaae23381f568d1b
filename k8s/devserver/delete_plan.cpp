#include "rw/k8s/devserver/conversion.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/write_plan.hpp"
#include "rw/k8s/devserver/write_rules.hpp"
#include "rw/k8s/objects/types.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace rw::k8s::devserver {

namespace json = boost::json;

namespace {

/// Namespaces that can't be deleted (admission plugin NamespaceLifecycle).
constexpr std::array<std::string_view, 3> immortal{"default", "kube-system", "kube-public"};

/// Returns for how many seconds the kubelet of a Pod may take to end it (Kubernetes,
/// "pkg/registry/core/pod", CheckGracefulDelete); 0: it is removed at once. Where controllers are
/// simulated, that of orphaned Pods removes those whose node does not exist.
std::int64_t grace_of(const call& to, const json::value& pod, const delete_options& with) {
  const auto node = find_string(pod, {"spec", "nodeName"});
  const auto phase = find_string(pod, {"status", "phase"});
  if (node.empty() || phase == "Succeeded" || phase == "Failed") return 0;
  if (to.in->controllers) {
    const auto nodes = to.in->objects.find("nodes");
    if (!nodes || !nodes->find(std::string(node))) return 0;
  }
  const auto of_pod = integer_at(pod, {"spec", "terminationGracePeriodSeconds"}).value_or(0);
  const auto period = with.grace_period.value_or(of_pod);
  return period < 0 ? 1 : period;
}

/// Begins the deletion of a Pod that its kubelet ends, or shortens the time for it. Returns false
/// if the Pod is to be removed at once.
bool delete_gracefully(json::value& pod, std::int64_t grace, const delete_options& with,
                       std::chrono::system_clock::time_point now) {
  auto& metadata = pod.get_object().at("metadata").get_object();
  const auto had = integer_at(pod, {"metadata", "deletionGracePeriodSeconds"}).value_or(0);
  auto begin = now;
  if (is_being_deleted(pod)) {
    if (had == 0) return false;
    if (!with.grace_period || grace >= had) return true;
    const auto end = parse_rfc3339(find_string(pod, {"metadata", "deletionTimestamp"}));
    begin = end.value_or(now) - std::chrono::seconds(had);
  }
  if (grace == 0) return false;
  metadata["deletionTimestamp"] = format_time(begin + std::chrono::seconds(grace));
  metadata["deletionGracePeriodSeconds"] = grace;
  return true;
}

/// A conflict names the kind, and for namespaces the resource (apiserver, registry/rest/delete.go;
/// pkg/registry/core/namespace/storage).
problem precondition_failed(const call& to, const std::string& field, const std::string& asked,
                            std::string_view has) {
  const std::string found(has);
  if (is_namespace(to)) {
    return conflict(to.target(), "Precondition failed: " + field + " in precondition: " + asked +
                                     ", " + field + " in object meta: " + found);
  }
  return conflict(to.what_kind(), "the " + field + " in the precondition (" + asked +
                                      ") does not match the " + field + " in record (" + found +
                                      "). The object might have been " +
                                      (field == "UID" ? "deleted and then recreated" : "modified"));
}

}  // namespace

outcome<write_plan> write_planner::remove(const call& to, const delete_options& with) const {
  if (is_namespace(to) && std::ranges::find(immortal, to.key.name) != immortal.end()) {
    return forbidden(to.target(), "this namespace may not be deleted");
  }
  auto before = to.objects()->find(to.path());
  if (!before) return not_found(to.target());
  write_plan plan;
  plan.old = before->parse();
  to_view(plan.old, to.view);
  const auto uid = find_string(plan.old, {"metadata", "uid"});
  if (!with.uid.empty() && with.uid != uid) return precondition_failed(to, "UID", with.uid, uid);
  const auto version = std::to_string(before->version());
  if (!with.resource_version.empty() && with.resource_version != version) {
    return precondition_failed(to, "ResourceVersion", with.resource_version, version);
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
    to.warnings->emplace_back(
        "child pods are preserved by default when jobs are deleted; set "
        "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
        "this warning");
  }
  // Their controllers let go of volumes that no Pod uses; Pods do not run here.
  if (to.in->controllers && to.view.of->storage_key.starts_with("persistentvolume")) {
    want("kubernetes.io/pv-protection", false);
    want("kubernetes.io/pvc-protection", false);
  }
  if (!with.propagation.empty()) {
    want("foregroundDeletion", with.propagation == "Foreground");
    want("orphan", with.propagation == "Orphan");
  }
  set_finalizers(plan.object, names);
  if (to.view.of->storage_key == "pods" &&
      delete_gracefully(plan.object, grace_of(to, plan.old, with), with, clock_.wall())) {
    plan.effect = plan.object == plan.old ? write_plan::action::nothing : write_plan::action::put;
    return plan;
  }
  if (names.empty() && !holds_content(to, plan.object)) {
    plan.effect = write_plan::action::remove;
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
    if (!is_namespace(to)) metadata["deletionGracePeriodSeconds"] = 0;
    const auto generation = integer_at(plan.old, {"metadata", "generation"});
    if (generation) metadata["generation"] = *generation + 1;
    if (is_namespace(to)) object_in(plan.object.get_object(), "status")["phase"] = "Terminating";
  }
  plan.effect = plan.object == plan.old ? write_plan::action::nothing : write_plan::action::put;
  return plan;
}

}  // namespace rw::k8s::devserver
