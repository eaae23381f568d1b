#include "rw/k8s/devserver/builtin_content.hpp"
#include "rw/k8s/devserver/builtin_rules.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/pod_checks.hpp"
#include "rw/k8s/devserver/schedule_text.hpp"
#include "rw/k8s/objects/label_selector.hpp"
#include "rw/k8s/objects/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>

// Kubernetes, "pkg/apis/apps/validation", "pkg/apis/batch/validation".

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

void forbid_other_fields(const json::value& before, const json::value& object,
                         std::span<const std::string_view> open, std::string_view kind,
                         std::vector<cause>& found) {
  const auto* const was = find(before, {"spec"});
  const auto* const is = find(object, {"spec"});
  if (was == nullptr || is == nullptr || !was->is_object() || !is->is_object()) return;
  auto old = was->get_object();
  auto now = is->get_object();
  for (const auto name : open) {
    old.erase(name);
    now.erase(name);
  }
  if (old == now) return;
  found.push_back({"spec", "FieldValueForbidden",
                   "Forbidden: updates to " + std::string(kind) + " are forbidden"});
}

void check_immutable_field(const json::value& before, const json::value& object,
                           std::string_view field, std::vector<cause>& found) {
  const auto* const was = find(before, {"spec", field});
  const auto* const is = find(object, {"spec", field});
  if (before.is_null() || (was == nullptr && is == nullptr)) return;
  if (was != nullptr && is != nullptr && *was == *is) return;
  found.push_back({"spec." + std::string(field), "FieldValueInvalid",
                   "Invalid value: " + (is == nullptr ? "null" : json::serialize(*is)) +
                       ": field is immutable"});
}

void check_count(const json::value& object, std::string_view field, std::vector<cause>& found,
                 std::string_view part = "spec") {
  const auto count = integer_at(object, {part, field});
  if (!count || *count >= 0) return;
  found.push_back(
      {std::string(part) + "." + std::string(field), "FieldValueInvalid",
       "Invalid value: " + std::to_string(*count) + ": must be greater than or equal to 0"});
}

void check_job_template(const json::value& template_spec, const std::string& at,
                        std::vector<cause>& found) {
  check_pod_spec(template_spec, at, found);
  const auto policy = find_string(template_spec, {"restartPolicy"});
  if (policy == "Never" || policy == "OnFailure") return;
  found.push_back({at + ".restartPolicy",
                   policy == "Always" ? "FieldValueRequired" : "FieldValueNotSupported",
                   "valid values: \"OnFailure\", \"Never\""});
}

/// Containers mount the claims of a StatefulSet like volumes.
json::value with_claims_as_volumes(json::value object) {
  std::vector<std::string> names;
  for (const auto& claim : array_at(object, {"spec", "volumeClaimTemplates"})) {
    names.emplace_back(find_string(claim, {"metadata", "name"}));
  }
  auto& spec = object_in(object_in(object_in(object.as_object(), "spec"), "template"), "spec");
  auto& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes.emplace_array();
  for (const auto& name : names) {
    const auto same = [&](const json::value& volume) {
      return find_string(volume, {"name"}) == name;
    };
    // A volume of the same name is overridden.
    if (std::ranges::any_of(volumes.get_array(), same)) continue;
    volumes.get_array().push_back(
        {{"name", name}, {"persistentVolumeClaim", {{"claimName", name}}}});
  }
  return object;
}

const json::value& at_or_null(const json::value& of, std::initializer_list<std::string_view> path) {
  static const json::value null;
  const auto* const found = find(of, path);
  return found == nullptr ? null : *found;
}

}  // namespace

void check_workload(const json::value& before, const json::value& object,
                    std::vector<cause>& found) {
  if (find_string(object, {"kind"}) == "Deployment") {
    check_choice(found, "spec.strategy", find_string(object, {"spec", "strategy", "type"}),
                 {"Recreate", "RollingUpdate"});
  } else if (find_string(object, {"kind"}) == "DaemonSet") {
    check_choice(found, "spec.updateStrategy",
                 find_string(object, {"spec", "updateStrategy", "type"}),
                 {"OnDelete", "RollingUpdate"});
  }
  check_count(object, "replicas", found);
  for (const auto* field : {"replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
                            "unavailableReplicas", "fullyLabeledReplicas", "observedGeneration"}) {
    check_count(object, field, found, "status");
  }
  const auto* const rolling = find(object, {"spec", "strategy", "rollingUpdate"});
  if (rolling != nullptr && find_string(object, {"spec", "strategy", "type"}) == "Recreate") {
    found.push_back({"spec.strategy.rollingUpdate", "FieldValueForbidden",
                     "Forbidden: may not be specified when strategy `type` is 'Recreate'"});
  }
  const auto* selector = find(object, {"spec", "selector"});
  const auto* labels = find(object, {"spec", "template", "metadata", "labels"});
  const auto shown = labels == nullptr ? std::string("null") : json::serialize(*labels);
  bool matches = false;
  if (selector == nullptr || selector->is_null()) {
    require(found, "spec.selector");
  } else {
    check_immutable_field(before, object, "selector", found);
    const auto has_terms = [&](std::string_view field) {
      const auto* const terms = find(*selector, {field});
      return terms != nullptr && !(terms->is_object() && terms->get_object().empty()) &&
             !(terms->is_array() && terms->get_array().empty()) && !terms->is_null();
    };
    if (!has_terms("matchLabels") && !has_terms("matchExpressions")) {
      found.push_back({"spec.selector", "FieldValueInvalid",
                       "Invalid value: {}: empty selector selects everything"});
    }
    const auto terms = label_selector::from_json(*selector);
    matches = terms.has_error() || terms->matches(labels);
  }
  if (!matches) {
    found.push_back({"spec.template.metadata.labels", "FieldValueInvalid",
                     "Invalid value: " + shown + ": `selector` does not match template `labels`"});
  }
  const auto& spec = at_or_null(object, {"spec", "template", "spec"});
  check_pod_spec(spec, "spec.template.spec", found);
  const auto policy = find_string(spec, {"restartPolicy"});
  const bool known = policy == "OnFailure" || policy == "Never";
  if (!known) return;  // others were found above
  found.push_back(
      {"spec.template.spec.restartPolicy", "FieldValueNotSupported",
       "Unsupported value: \"" + std::string(policy) + "\": supported values: \"Always\""});
}

void check_stateful_set(const json::value& before, const json::value& object,
                        std::vector<cause>& found) {
  check_workload(json::value(), with_claims_as_volumes(object), found);
  const auto strategy = find_string(object, {"spec", "updateStrategy", "type"});
  if (strategy != "RollingUpdate" && strategy != "OnDelete") {
    found.push_back({"spec.updateStrategy", "FieldValueInvalid",
                     "Invalid value: " + json::serialize(json::value(strategy)) +
                         ": must be 'RollingUpdate' or 'OnDelete'"});
  }
  const auto order = find_string(object, {"spec", "podManagementPolicy"});
  if (order != "OrderedReady" && order != "Parallel") {
    found.push_back({"spec.podManagementPolicy", "FieldValueInvalid",
                     "Invalid value: " + json::serialize(json::value(order)) +
                         ": must be 'OrderedReady' or 'Parallel'"});
  }
  static constexpr std::array<std::string_view, 7> open{"replicas",
                                                        "ordinals",
                                                        "template",
                                                        "updateStrategy",
                                                        "revisionHistoryLimit",
                                                        "persistentVolumeClaimRetentionPolicy",
                                                        "minReadySeconds"};
  forbid_other_fields(before, object, open,
                      "statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                      "'updateStrategy', 'revisionHistoryLimit', "
                      "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'",
                      found);
}

void check_job(const json::value& before, const json::value& object, std::vector<cause>& found) {
  for (const auto* field : {"parallelism", "completions", "backoffLimit", "activeDeadlineSeconds",
                            "ttlSecondsAfterFinished"}) {
    check_count(object, field, found);
  }
  check_job_template(at_or_null(object, {"spec", "template", "spec"}), "spec.template.spec", found);
  check_immutable_field(before, object, "selector", found);
  check_immutable_field(before, object, "completionMode", found);
  // While it is suspended, where its pods may run can change.
  if (!true_at(before, {"spec", "suspend"})) {
    check_immutable_field(before, object, "template", found);
  }
}

void check_cron_job(const json::value&, const json::value& object, std::vector<cause>& found) {
  const std::string schedule(find_string(object, {"spec", "schedule"}));
  if (schedule.empty()) {
    require(found, "spec.schedule");
  } else if (!is_cron_schedule(schedule)) {
    found.push_back({"spec.schedule", "FieldValueInvalid",
                     "Invalid value: \"" + schedule + "\": it is no schedule of five fields"});
  }
  const auto* const zone = find(object, {"spec", "timeZone"});
  if (zone != nullptr && zone->is_string() && !is_time_zone(view(zone->get_string()))) {
    found.push_back({"spec.timeZone", "FieldValueInvalid",
                     "Invalid value: " + json::serialize(*zone) + ": unknown time zone"});
  }
  const auto policy = find_string(object, {"spec", "concurrencyPolicy"});
  if (policy != "Allow" && policy != "Forbid" && policy != "Replace") {
    found.push_back({"spec.concurrencyPolicy", "FieldValueNotSupported",
                     "Unsupported value: \"" + std::string(policy) +
                         "\": supported values: \"Allow\", \"Forbid\", \"Replace\""});
  }
  check_job_template(at_or_null(object, {"spec", "jobTemplate", "spec", "template", "spec"}),
                     "spec.jobTemplate.spec.template.spec", found);
}

void check_lease(const json::value&, const json::value& object, std::vector<cause>& found) {
  const auto duration = integer_at(object, {"spec", "leaseDurationSeconds"});
  if (duration && *duration <= 0) {
    found.push_back({"spec.leaseDurationSeconds", "FieldValueInvalid",
                     "Invalid value: " + std::to_string(*duration) + ": must be greater than 0"});
  }
  check_count(object, "leaseTransitions", found);
}

void check_role_binding(const json::value& before, const json::value& object,
                        std::vector<cause>& found) {
  constexpr std::string_view group = "rbac.authorization.k8s.io";
  check_choice(found, "roleRef.apiGroup", find_string(object, {"roleRef", "apiGroup"}), {group});
  if (find_string(object, {"roleRef", "name"}).empty()) require(found, "roleRef.name");
  const auto role = find_string(object, {"roleRef", "kind"});
  if (role != "ClusterRole" && (role != "Role" || find_string(object, {"kind"}) != "RoleBinding")) {
    found.push_back({"roleRef.kind", "FieldValueNotSupported",
                     "Unsupported value: " + json::serialize(json::value(role)) +
                         ": supported values: \"Role\", \"ClusterRole\""});
  }
  const auto& subjects = array_at(object, {"subjects"});
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const auto at = "subjects[" + std::to_string(i) + "]";
    const auto& subject = subjects[i];
    const auto kind = find_string(subject, {"kind"});
    if (find_string(subject, {"name"}).empty()) require(found, at + ".name");
    check_choice(found, at + ".kind", kind, {"ServiceAccount", "User", "Group"});
    const auto of = find_string(subject, {"apiGroup"});
    if (kind == "ServiceAccount") {
      check_choice(found, at + ".apiGroup", of, {""});
      for (const auto& error : dns_subdomain_errors(find_string(subject, {"name"}))) {
        if (find_string(subject, {"name"}).empty()) break;
        found.push_back(
            {at + ".name", "FieldValueInvalid",
             "Invalid value: " + json::serialize(json::value(find_string(subject, {"name"}))) +
                 ": " + error});
      }
      if (find_string(object, {"kind"}) == "ClusterRoleBinding" &&
          find_string(subject, {"namespace"}).empty()) {
        require(found, at + ".namespace");
      }
    } else if (kind == "User" || kind == "Group") {
      check_choice(found, at + ".apiGroup", of, {group});
    }
  }
  const auto* const was = find(before, {"roleRef"});
  const auto* const is = find(object, {"roleRef"});
  if (was == nullptr || is == nullptr || *was == *is) return;
  found.push_back({"roleRef", "FieldValueInvalid",
                   "Invalid value: " + json::serialize(*is) + ": cannot change roleRef"});
}

void begin_job(json::value& object) {
  if (true_at(object, {"spec", "manualSelector"})) return;
  const auto uid = json::string(find_string(object, {"metadata", "uid"}));
  const auto name = json::string(find_string(object, {"metadata", "name"}));
  auto& spec = object_in(object.as_object(), "spec");
  auto& labels = object_in(object_in(object_in(spec, "template"), "metadata"), "labels");
  for (const auto* key : {"controller-uid", "batch.kubernetes.io/controller-uid"}) {
    labels[key] = uid;
  }
  for (const auto* key : {"job-name", "batch.kubernetes.io/job-name"}) labels[key] = name;
  object_in(object_in(spec, "selector"), "matchLabels")["batch.kubernetes.io/controller-uid"] = uid;
  auto own = object_in(object_in(object_in(spec, "template"), "metadata"), "labels");
  auto& metadata = object_in(object.as_object(), "metadata");
  if (object_in(metadata, "labels").empty()) metadata["labels"] = std::move(own);
}

}  // namespace rw::k8s::devserver
