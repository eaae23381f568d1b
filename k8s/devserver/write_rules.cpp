#include "rw/k8s/devserver/write_rules.hpp"

#include "rw/k8s/devserver/builtin_decoding.hpp"
#include "rw/k8s/devserver/builtin_rules.hpp"
#include "rw/k8s/devserver/definitions.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/plugin_gaps.hpp"
#include "rw/k8s/devserver/roles.hpp"
#include "rw/k8s/devserver/scale.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <array>
#include <iterator>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Metadata has the same fields in all kinds (metav1.ObjectMeta).
void prune_metadata(json::value& object, std::vector<std::string>& removed) {
  static constexpr std::array<std::string_view, 16> known{"name",
                                                          "generateName",
                                                          "namespace",
                                                          "selfLink",
                                                          "uid",
                                                          "resourceVersion",
                                                          "generation",
                                                          "creationTimestamp",
                                                          "labels",
                                                          "deletionTimestamp",
                                                          "deletionGracePeriodSeconds",
                                                          "annotations",
                                                          "ownerReferences",
                                                          "finalizers",
                                                          "clusterName",
                                                          "managedFields"};
  auto* metadata = find(object, {"metadata"});
  if (metadata == nullptr || !metadata->is_object()) return;
  auto& fields = metadata->get_object();
  for (auto at = fields.begin(); at != fields.end();) {
    const std::string_view name(at->key().data(), at->key().size());
    if (std::ranges::find(known, name) != known.end()) {
      ++at;
    } else {
      removed.push_back("metadata." + std::string(name));
      at = fields.stable_erase(at);
    }
  }
}

/// metadata.generation counts changes of everything but metadata and status.
bool same_spec(const json::object& a, const json::object& b) {
  const auto counted = [](std::string_view name) { return name != "metadata" && name != "status"; };
  const auto covers = [&](const json::object& x, const json::object& y) {
    return std::all_of(x.begin(), x.end(), [&](const auto& field) {
      if (!counted({field.key().data(), field.key().size()})) return true;
      const auto* other = y.if_contains(field.key());
      return other != nullptr && *other == field.value();
    });
  };
  return covers(a, b) && covers(b, a);
}

}  // namespace

bool is_namespace(const call& to) noexcept {
  return to.view.of->storage_key == "namespaces";
}

bool holds_content(const call& to, const json::value& object) {
  return is_namespace(to) && !array_at(object, {"spec", "finalizers"}).empty();
}

outcome<void> check_room(const call& to) {
  const auto kind = to.in->kinds.find(to.view.of->group, to.view.of->plural);
  if (kind && kind->terminating) {
    return method_not_allowed("create not allowed while custom resource definition is terminating");
  }
  if (!to.view.of->namespaced) return {};
  const auto namespaces = to.in->objects.open("namespaces");
  const auto found = namespaces->find(to.key.ns);
  if (!found) return not_found({"", "namespaces", to.key.ns});
  if (!found->is_being_deleted()) return {};
  const auto reason =
      "unable to create new content in namespace " + to.key.ns + " because it is being terminated";
  auto refused = forbidden(to.target(), reason);
  refused.causes.push_back({"metadata.namespace", "NamespaceTerminating",
                            "namespace " + to.key.ns + " is being terminated"});
  return refused;
}

outcome<void> prune_unknown(const call& to, json::value& object, const write_options& with) {
  std::vector<std::string> removed;
  std::string undecodable;
  if (const auto* const type = to.view.of->custom ? nullptr : builtin_type_of(to.view)) {
    undecodable = decode_builtin(*type, object, removed);
  } else {
    if (!normalize_numbers(object)) undecodable = number_out_of_range;
    prune_metadata(object, removed);
    if (to.view.version->type) to.view.version->type->prune(object, removed);
  }
  const auto refuse = [&](const std::string& error) {
    return bad_request(to.view.of->kind + " in version \"" + to.view.version->name +
                       "\" cannot be handled as a " + to.view.of->kind + ": " + error);
  };
  if (!undecodable.empty()) return refuse(undecodable);
  if (with.unknown_fields == field_validation::ignore) return {};
  std::string all;
  const auto add = [&](const std::string& right, const std::string& field) {
    const auto text = right + " field \"" + field + "\"";
    if (!all.empty()) all += ", ";
    all += text;
    if (with.unknown_fields == field_validation::warn) to.warnings->push_back(text);
  };
  for (const auto& field : with.duplicate_fields) add("duplicate", field);
  for (const auto& field : removed) add("unknown", field);
  if (all.empty() || with.unknown_fields == field_validation::warn) return {};
  return refuse("strict decoding error: " + all);
}

outcome<void> report_gaps(const call& to, const json::value& object, bool creates) {
  const auto& of = *to.view.of;
  if (!to.subresource.empty()) return {};
  std::vector<std::string> gaps;
  if (creates) add_plugin_gaps(*to.in, of, to.key.ns, object, gaps);
  if (of.custom && to.view.version->type) {
    std::ranges::copy(to.view.version->type->gaps(), std::back_inserter(gaps));
  } else if (of.storage_key == definitions_key) {
    if (find_string(object, {"spec", "conversion", "strategy"}) == "Webhook") {
      return unsupported("conversion webhooks");
    }
    gaps = unsupported_parts(object);
  } else if (of.storage_key == "namespaces") {
    static constexpr std::string_view label = "pod-security.kubernetes.io/enforce";
    const auto level = find_string(object, {"metadata", "labels", label});
    if (!level.empty() && level != "privileged") {
      gaps.push_back(std::string(label) + ": this API server enforces no standards of pods");
    }
  } else if (of.storage_key.ends_with("webhookconfigurations.admissionregistration.k8s.io")) {
    if (std::ranges::any_of(array_at(object, {"webhooks"}), [](const json::value& webhook) {
          return !array_at(webhook, {"matchConditions"}).empty();
        })) {
      gaps.emplace_back("matchConditions: this API server evaluates no rules");
    }
  }
  if (to.refuse_unsupported && !gaps.empty()) return unsupported(gaps.front());
  std::ranges::move(gaps, std::back_inserter(*to.warnings));
  return {};
}

void fill_defaults(const call& to, json::value& object, bool applied) {
  if (to.view.of->custom) {
    if (!to.view.version->type) return;
    if (!applied) to.view.version->type->drop_nulls(object);
    to.view.version->type->fill_defaults(object);
  } else {
    if (const auto* const type = builtin_type_of(to.view)) fill_typed_defaults(*type, object);
    fill_builtin_defaults(*to.view.of, object);
  }
}

void store_empty_lists(const call& to, json::value& object) {
  const auto* const type = builtin_type_of(to.view);
  if (type != nullptr && has_protobuf(*type)) store_empty_as_null(*type, object);
}

outcome<void> check_object(const call& to, const json::value& before, const json::value& object) {
  std::vector<cause> found;
  check_metadata(*to.view.of, object, found);
  if (!before.is_null()) check_metadata_change(before, object, found);
  if (to.view.of->custom) {
    if (to.view.version->type) to.view.version->type->validate_object(before, object, found);
  } else {
    // These subresources write what an update must not.
    const bool open = to.subresource == "binding" || to.subresource == "ephemeralcontainers";
    check_builtin(*to.view.of, open ? json::value() : before, object, found);
  }
  if (found.empty()) return {};
  auto kind = to.what_kind();
  if (kind.name.empty()) kind.name = find_string(object, {"metadata", "name"});
  return invalid(kind, std::move(found));
}

outcome<void> check_rights(const call& to, const json::value& before, const json::value& object) {
  if (!to.authorization || to.view.of->group != "rbac.authorization.k8s.io") return {};
  return check_escalation(*to.in, to.by, before, object);
}

bool same_generation(const call& to, const json::value& before, const json::value& after) {
  if (!same_spec(before.get_object(), after.get_object())) return false;
  // Annotations of a Deployment are a part of what its controller does.
  if (to.view.of->storage_key == "deployments.apps" && to.subresource.empty()) {
    const auto* const was = find(before, {"metadata", "annotations"});
    const auto* const is = find(after, {"metadata", "annotations"});
    const json::value none;
    if ((was == nullptr ? none : *was) != (is == nullptr ? none : *is)) return false;
  }
  if (!to.view.of->custom || to.view.version->status) return true;
  const auto* was = find(before, {"status"});
  const auto* is = find(after, {"status"});
  return was == is || (was != nullptr && is != nullptr && *was == *is);
}

void keep_other_parts(const call& to, const json::value& before, json::value& after) {
  const auto field_of = [](const json::value& of, std::initializer_list<std::string_view> path) {
    const auto* value = find(of, path);
    return value == nullptr ? json::value() : *value;
  };
  const auto keep = [](json::object& of, std::string_view field, const json::value& value) {
    if (value.is_null()) {
      of.erase(field);
    } else {
      of[field] = value;
    }
  };
  auto& fields = after.get_object();
  if (to.subresource == "binding") return;  // by the server
  if (to.subresource.empty() || to.subresource == scale_subresource) {
    if (to.view.version->status) keep(fields, "status", field_of(before, {"status"}));
    if (!is_namespace(to)) return;
    keep(object_in(fields, "spec"), "finalizers", field_of(before, {"spec", "finalizers"}));
    return;
  }
  const auto metadata = field_of(after, {"metadata"});
  const bool status = to.subresource == "status";
  const std::string_view part = status                                    ? "status"
                                : to.subresource == "ephemeralcontainers" ? "ephemeralContainers"
                                                                          : "finalizers";
  const auto written = status ? field_of(after, {part}) : field_of(after, {"spec", part});
  after = before;
  auto& into = status ? after.get_object() : object_in(after.get_object(), "spec");
  const bool none = !status && written.is_array() && written.get_array().empty();
  keep(into, part, none ? json::value() : written);
  auto& kept = object_in(after.get_object(), "metadata");
  keep(kept, "managedFields", field_of(metadata, {"managedFields"}));
  if (!status) return;
  for (const std::string_view field : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    if (std::ranges::count(to.view.of->status_keeps, field) > 0) continue;
    keep(kept, field, field_of(metadata, {field}));
  }
}

outcome<void> check_version(const call& to, const json::value& before, const json::value& after) {
  const auto asked = find_string(after, {"metadata", "resourceVersion"});
  if (asked.empty()) {
    if (!to.view.of->custom && !to.view.of->needs_version) return {};
    // The resource takes the kind's place (apiserver, registry/generic/registry/store.go).
    return invalid(to.target(), {{"metadata.resourceVersion", "FieldValueInvalid",
                                  "Invalid value: 0x0: must be specified for an update"}});
  }
  if (asked != find_string(before, {"metadata", "resourceVersion"})) {
    return modified_meanwhile(to.target());
  }
  return {};
}

const builtin_type* builtin_type_of(const served_resource& of) {
  return find_builtin_type(of.api_version(), of.of->kind);
}

std::shared_ptr<const schema> schema_of(const served_resource& of) {
  if (of.version->type) return of.version->type;
  return builtin_schema(of.api_version(), of.of->kind);
}

}  // namespace rw::k8s::devserver
