#include "rw/k8s/devserver/managed_fields.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/managers.hpp"
#include "rw/k8s/devserver/typed_fields.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::string_view before_first_apply = "before-first-apply";
constexpr std::string_view kubectl = "kubectl";
constexpr std::string_view last_applied = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields without an owner: the API server writes them, or they identify the object.
const field_set& never_owned() {
  static const field_set made = [] {
    field_set set;
    for (const auto* name : {"f:apiVersion", "f:kind"}) set.insert({name});
    for (const auto* name :
         {"f:name", "f:namespace", "f:creationTimestamp", "f:selfLink", "f:uid", "f:clusterName",
          "f:generation", "f:managedFields", "f:resourceVersion"}) {
      set.insert({"f:metadata", name});
    }
    return set;
  }();
  return made;
}

field_set owned(field_set set) {
  set.subtract_trees(never_owned());
  const auto metadata = set.children.find("f:metadata");
  if (metadata != set.children.end()) {
    metadata->second.member = false;
    if (metadata->second.empty()) set.children.erase(metadata);
  }
  return set;
}

field_changes changes_between(const json::value& before, const json::value& after,
                              const schema& type) {
  auto changes = compare_fields(before, after, type);
  changes.added = owned(std::move(changes.added));
  changes.modified = owned(std::move(changes.modified));
  return changes;
}

/// Returns the object without managedFields, and without fields that a client must not apply.
json::value without_metadata(json::value object, std::initializer_list<std::string_view> names) {
  auto* const fields = object.if_object();
  auto* const metadata = fields != nullptr ? fields->if_contains("metadata") : nullptr;
  if (metadata != nullptr && metadata->is_object()) {
    for (const auto name : names) metadata->get_object().stable_erase(name);
  }
  return object;
}

bool has_managed_fields(const json::value& object) {
  const auto* const fields = object.if_object();
  const auto* const metadata = fields != nullptr ? fields->if_contains("metadata") : nullptr;
  if (metadata == nullptr || !metadata->is_object()) return false;
  const auto* const found = metadata->get_object().if_contains("managedFields");
  return found != nullptr && !found->is_null();
}

/// Worded as in kube-apiserver (structured-merge-diff, merge/conflict).
problem conflict_of(const std::map<std::string, std::vector<std::string>>& conflicts) {
  problem made{.code = 409, .reason = "Conflict", .message = {}};
  for (const auto& [manager, paths] : conflicts) {
    for (const auto& path : paths) {
      made.causes.push_back({path, "FieldManagerConflict", "conflict with " + manager});
    }
  }
  if (made.causes.size() == 1) {
    const auto& only = made.causes.front();
    made.message = "Apply failed with 1 conflict: " + only.message + ": " + only.field;
    return made;
  }
  made.message = "Apply failed with " + std::to_string(made.causes.size()) + " conflicts: ";
  for (const auto& [manager, paths] : conflicts) {
    if (!made.message.ends_with(": ")) made.message += '\n';
    made.message += "conflicts with " + manager + ":";
    for (const auto& path : paths) made.message += "\n- " + path;
  }
  return made;
}

/// Returns the fields of the annotation of `kubectl apply` that the object still has: those may be
/// applied by kubectl on the server, whoever owns them (apimachinery, lastappliedmanager.go).
field_set applied_by_client(const json::value& live, const schema& type,
                            std::string_view api_version) {
  std::string reason;
  const auto applied =
      parse_json(find_string(live, {"metadata", "annotations", last_applied}), reason);
  if (!applied || find_string(*applied, {"apiVersion"}) != api_version) return {};
  std::vector<std::string> errors;
  auto fields = fields_of(*applied, type, errors);
  if (!errors.empty()) return {};
  const auto changes = compare_fields(*applied, live, type);
  for (const auto* const set : {&changes.modified, &changes.added, &changes.removed}) {
    fields.subtract(*set);
  }
  return fields;
}

/// Updates the annotation of `kubectl apply`, if the object has it.
void update_last_applied(json::value& merged, json::value applied) {
  auto* const annotation = devserver::find(merged, {"metadata", "annotations", last_applied});
  if (annotation == nullptr || *annotation == "") return;
  if (auto* const given = devserver::find(applied, {"metadata", "annotations"});
      given != nullptr && given->is_object()) {
    given->get_object().stable_erase(last_applied);
  }
  *annotation = json::serialize(applied) + "\n";
}

/// Removes changed fields from all managers but `by`; fields that another manager owns are a
/// conflict unless they are `free` or `force` is set.
outcome<void> take_over(field_managers& managers, const field_manager& by,
                        const field_changes& changes, bool force, const field_set& free = {}) {
  auto written = changes.modified;
  written.unite(changes.added);
  std::map<std::string, std::vector<std::string>> conflicts;
  for (auto& manager : managers.all()) {
    if (manager.same(by)) continue;
    auto shared = manager.fields;
    shared.intersect(written);
    auto refused = force ? field_set() : shared;
    refused.subtract(free);
    if (!refused.empty()) {
      auto& paths = conflicts[manager.printed()];
      for (auto& path : printed(refused)) paths.push_back(std::move(path));
    }
    manager.fields.subtract(shared);
    manager.fields.subtract(changes.removed);
  }
  if (!conflicts.empty()) return conflict_of(conflicts);
  managers.remove_empty();
  return {};
}

void update(field_managers& managers, const field_manager& by, const field_changes& changes) {
  const auto* const found = managers.find(by);
  const auto was = found != nullptr ? *found : by;
  static_cast<void>(take_over(managers, {}, changes, true));
  auto gained = changes.modified;
  gained.unite(changes.added);
  gained.subtract(changes.removed);
  if (gained.empty()) return;
  if (const auto* const left = managers.find(by)) gained.unite(left->fields);
  auto& now = managers.set(by, std::move(gained));
  now.time = now.fields == was.fields ? was.time : by.time;
}

void reconcile(field_managers& managers, const json::value& live, const schema& type) {
  for (auto& manager : managers.all()) {
    manager.fields = owned(reconciled_fields(manager.fields, live, type));
  }
}

/// Removes fields that were applied the last time, are not applied now, and have no other owner.
void prune(json::value& merged, const field_managers& managers, const field_set& last,
           const schema& type) {
  if (last.empty()) return;
  const auto set_of = [&type](const json::value& object) {
    std::vector<std::string> ignored;
    return with_declared_fields(fields_of(object, type, ignored), type);
  };
  const auto applied_before = with_declared_fields(last, type);
  field_set still_owned;
  for (const auto& manager : managers.all()) {
    still_owned.unite(with_declared_fields(manager.fields, type));
  }
  const auto all = set_of(merged);
  auto pruned = merged;
  remove_fields(pruned, applied_before, type);

  // Removing an item removes all its fields: restores those that others own ...
  auto gone = all;
  gone.subtract(set_of(pruned));
  gone.subtract(still_owned);
  pruned = merged;
  remove_fields(pruned, gone, type);

  // ... and those that this manager never applied.
  gone = all;
  gone.subtract(set_of(pruned));
  gone.intersect(applied_before);
  remove_fields(merged, gone, type);
}

/// Restores the fields that identify an object, which have no owner: if all applied metadata is
/// pruned, so is the metadata as a whole.
void restore_identity(json::value& pruned, const json::value& merged) {
  const auto* const from = merged.as_object().if_contains("metadata");
  if (from == nullptr || !from->is_object()) return;
  auto& to = pruned.as_object()["metadata"];
  if (!to.is_object()) to.emplace_object();
  for (const auto* name :
       {"name", "generateName", "namespace", "uid", "resourceVersion", "generation",
        "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}) {
    const auto* const value = from->get_object().if_contains(name);
    if (value != nullptr) to.get_object()[name] = *value;
  }
}

/// Prints what an applied object says of itself: "ns/name; apps/v1, Kind=Deployment".
std::string printed_identity(const json::value& object) {
  const auto text = [&object](std::initializer_list<std::string_view> path) {
    return std::string(find_string(object, path));
  };
  return text({"metadata", "namespace"}) + "/" + text({"metadata", "name"}) + "; " +
         text({"apiVersion"}) + ", Kind=" + text({"kind"});
}

problem unfit(const json::value& applied, const std::vector<std::string>& errors) {
  problem made{
      .code = 500,
      .reason = "",
      .message = "failed to create typed patch object (" + printed_identity(applied) + "): "};
  if (errors.size() == 1) {
    made.message += errors.front();
    return made;
  }
  made.message += "errors:";
  for (const auto& error : errors) made.message += "\n  " + error;
  return made;
}

}  // namespace

outcome<json::value> apply(const json::value& live, const json::value& applied, const schema& type,
                           const field_writer& by, bool force) {
  if (!applied.is_object()) {
    return problem{
        .code = 400, .reason = "BadRequest", .message = "what is applied must be an object"};
  }
  if (has_managed_fields(applied)) {
    return problem{
        .code = 400, .reason = "BadRequest", .message = "metadata.managedFields must be nil"};
  }
  const auto wanted =
      without_metadata(applied, {"managedFields", "creationTimestamp", "generation", "selfLink"});
  std::vector<std::string> errors;
  auto fields = owned(fields_of(wanted, type, errors));
  if (!errors.empty()) return unfit(applied, errors);

  const field_manager self{by.manager, true, by.api_version, by.subresource, by.time};
  const auto was = field_managers::of(live);
  auto managers = was;
  const auto before =
      live.is_null() ? json::value(json::object()) : without_metadata(live, {"managedFields"});
  if (managers.empty() && !live.is_null()) {
    const field_manager earlier{
        std::string(before_first_apply), false, by.api_version, {}, by.time};
    update(managers, earlier, changes_between(json::object(), before, type));
  }
  reconcile(managers, before, type);
  auto merged = before;
  merge_fields(merged, wanted, type);
  const auto* const own = managers.find(self);
  const auto last = own != nullptr ? own->fields : field_set();
  managers.set(self, std::move(fields));
  const auto unpruned = merged;
  prune(merged, managers, last, type);
  restore_identity(merged, unpruned);
  const auto free = by.manager == kubectl && !live.is_null()
                        ? applied_by_client(before, type, by.api_version)
                        : field_set();
  const auto taken = take_over(managers, self, changes_between(before, merged, type), force, free);
  if (!taken) return taken.error();
  if (by.manager == kubectl) update_last_applied(merged, applied);
  managers.remove_empty();
  if (merged == before && managers == was && !live.is_null()) return live;
  if (auto* const entry = managers.find(self)) entry->time = by.time;
  managers.write_to(merged);
  return merged;
}

void track_update(const json::value& before, json::value& after, const schema& type,
                  const field_writer& by, field_set rewritten) {
  auto managers = field_managers::of(after);
  if (managers.empty() && !field_managers::reset_by(after)) managers = field_managers::of(before);
  if (!before.is_null() && managers.empty()) {
    managers.write_to(after);
    return;
  }
  if (!before.is_null()) reconcile(managers, before, type);
  const field_manager self{by.manager, false, by.api_version, by.subresource, by.time};
  auto changes =
      changes_between(before.is_null() ? json::value(json::object()) : before, after, type);
  if (!rewritten.empty()) {
    for (const auto* const object : {&before, &std::as_const(after)}) {
      std::vector<std::string> ignored;
      rewritten.intersect(owned(fields_of(*object, type, ignored)));
    }
    changes.modified.unite(rewritten);
  }
  update(managers, self, changes);
  managers.merge_ancient();
  managers.write_to(after);
}

}  // namespace rw::k8s::devserver
