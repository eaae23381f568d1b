#include "rw/k8s/devserver/write_plan.hpp"

#include "rw/k8s/devserver/builtin_rules.hpp"
#include "rw/k8s/devserver/conversion.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/scale.hpp"
#include "rw/k8s/devserver/typed_fields.hpp"
#include "rw/k8s/devserver/write_rules.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <charconv>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Keeps managedFields if the client's object has none; an empty list resets them.
void keep_managers(const json::value& before, json::value& after) {
  const auto* had = find(before, {"metadata", "managedFields"});
  auto& metadata = object_in(after.get_object(), "metadata");
  auto* has = metadata.if_contains("managedFields");
  if (had != nullptr && (has == nullptr || has->is_null())) metadata["managedFields"] = *had;
}

/// Tracks who owns the fields of a new object; its status is the server's.
void track_sent(json::value& object, const schema& type, const field_writer& by) {
  auto& fields = object.as_object();
  json::value status;
  if (auto* const part = fields.if_contains("status")) status = std::move(*part);
  const bool has_status = fields.erase("status") > 0;
  track_update({}, object, type, by);
  if (has_status) object.as_object()["status"] = std::move(status);
}

/// Returns true for the text of a version of etcd.
bool is_version(std::string_view text) {
  std::uint64_t version = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), version);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() && version > 0;
}

problem uid_conflict(const call& to, std::string_view asked, std::string_view has) {
  return conflict(to.target(), "Precondition failed: UID in precondition: " + std::string(asked) +
                                   ", UID in object meta: " + std::string(has));
}

}  // namespace

std::string write_planner::now() const {
  return format_time(clock_.wall());
}

field_writer write_planner::writer_of(const call& to, const write_options& with) const {
  return {with.manager, to.view.api_version(), to.subresource, now()};
}

outcome<write_plan> write_planner::create(const call& to, json::value object,
                                          const write_options& with) const {
  const auto good = check_envelope(to, object);
  if (good.has_error()) return good.error();
  const bool versioned = is_version(find_string(object, {"metadata", "resourceVersion"}));
  auto plan = finish_create(to, std::move(object), with, false);
  // Only storing fails, which a dry run does not.
  if (plan.has_value() && versioned && !with.dry_run) {
    return problem{.reason = "",
                   .message = "resourceVersion should not be set on objects to be created"};
  }
  return plan;
}

outcome<write_plan> write_planner::finish_create(const call& to, json::value object,
                                                 const write_options& with, bool applied) const {
  write_plan plan;
  if (to.view.version->status) object.get_object().erase("status");
  auto good = prune_unknown(to, object, with);
  if (good.has_error()) return good.error();
  good = check_room(to);
  if (good.has_error()) return good.error();
  begin_life(object, now(), random_);
  good = report_gaps(to, object, true);
  if (good.has_error()) return good.error();
  fill_defaults(to, object, applied);
  const bool tracked = !applied && !with.manager.empty();
  // Nobody owns what the server adds when an object is created.
  if (!to.view.of->custom && tracked) {
    track_sent(object, *schema_of(to.view), writer_of(to, with));
  }
  if (!to.view.of->custom) {
    store_empty_lists(to, object);
    begin_builtin_life(*to.view.of, object, now());
    warn_of_builtin(*to.view.of, object, *to.warnings);
  }
  auto& metadata = object_in(object.get_object(), "metadata");
  if (to.view.of->custom || to.view.of->generation) metadata["generation"] = 1;
  good = check_object(to, {}, object);
  if (good.has_error()) return good.error();
  good = check_rights(to, {}, object);
  if (good.has_error()) return good.error();
  if (!to.view.of->custom) settle_builtin(*to.in, *to.view.of, object, now());
  tidy_metadata(object);
  if (to.view.of->custom && tracked) {
    track_update({}, object, *schema_of(to.view), writer_of(to, with));
  }
  if (!to.view.of->custom) good = allocate_builtin(*to.in, *to.view.of, {}, object);
  if (good.has_error()) return good.error();
  plan.key = {to.key.ns, std::string(find_string(object, {"metadata", "name"}))};
  plan.object = std::move(object);
  plan.operation = "CREATE";
  plan.effect = write_plan::action::put;
  return plan;
}

outcome<write_plan> write_planner::update(const call& to, json::value object,
                                          const write_options& with) const {
  if (to.subresource == scale_subresource) return update_scale(to, object, with, false);
  const auto good = check_envelope(to, object);
  if (good.has_error()) return good.error();
  auto& metadata = object.get_object().at("metadata").get_object();
  const auto name = find_string(object, {"metadata", "name"});
  if (name.empty()) {
    metadata["name"] = to.key.name;
  } else if (name != to.key.name) {
    return bad_request("the name of the object (" + std::string(name) +
                       ") does not match the name on the URL (" + to.key.name + ")");
  }
  // An object that can't be decoded is rejected for that first.
  const auto reject = [&](problem problem) -> outcome<write_plan> {
    auto copy = object;
    auto decoded = prune_unknown(to, copy, with);
    if (decoded.has_error()) return decoded.error();
    return problem;
  };
  auto before = to.objects()->find(to.path());
  const auto uid = find_string(object, {"metadata", "uid"});
  if (!before) {
    if (!uid.empty()) return reject(uid_conflict(to, uid, ""));
    if (!to.view.of->creates_on_update || !to.subresource.empty()) {
      return reject(not_found(to.target()));
    }
    metadata.erase("resourceVersion");
    return finish_create(to, std::move(object), with, false);
  }
  auto old = before->parse();
  to_view(old, to.view);
  const auto had = find_string(old, {"metadata", "uid"});
  if (!uid.empty() && uid != had) return reject(uid_conflict(to, uid, had));
  const auto current = check_version(to, old, object);
  if (current.has_error()) return reject(current.error());
  return finish_update(to, std::move(before), std::move(old), std::move(object), with, false);
}

outcome<write_plan> write_planner::finish_update(const call& to, record_ptr before, json::value old,
                                                 json::value object, const write_options& with,
                                                 bool applied) const {
  write_plan plan;
  keep_identity(old, object);
  // An empty list differs from none for this kind alone (pkg/registry/networking/networkpolicy).
  const auto* const spec = find(object, {"spec"});
  const auto type = schema_of(to.view);
  const bool counts_anyway = to.view.of->storage_key == "networkpolicies.networking.k8s.io" &&
                             spec != nullptr && has_empty_part(*spec, child_of(type.get(), "spec"));
  const bool tracks = !applied && !with.manager.empty();
  const bool tells_empty = tracks && !to.view.of->custom && has_empty_part(object, type.get());
  auto sent = tells_empty ? object : json::value(nullptr);
  auto good = prune_unknown(to, object, with);
  if (good.has_error()) return good.error();
  good = report_gaps(to, object, false);
  if (good.has_error()) return good.error();
  // They are kept, and have no owner from then on.
  const bool drops_finalizers =
      is_namespace(to) && to.subresource.empty() && find(object, {"spec", "finalizers"}) == nullptr;
  keep_other_parts(to, old, object);
  if (tells_empty) keep_other_parts(to, old, sent);
  fill_defaults(to, object, applied);
  keep_managers(old, object);
  tidy_metadata(object);
  // Before the server adds fields, which have no owner.
  if (tracks) {
    json::value whole;
    if (drops_finalizers) {
      whole = object.at("spec");
      object.at("spec").as_object().erase("finalizers");
    }
    track_update(old, object, *type, writer_of(to, with),
                 tells_empty ? fields_with_empty_parts(sent, *type) : field_set());
    if (drops_finalizers) object.at("spec") = std::move(whole);
  }
  if (!to.view.of->custom) {
    store_empty_lists(to, object);
    carry_allocated(*to.view.of, old, object);
    if (to.subresource.empty()) warn_of_builtin(*to.view.of, object, *to.warnings);
  }
  auto& metadata = object_in(object.get_object(), "metadata");
  metadata["resourceVersion"] = old.at("metadata").at("resourceVersion");
  if ((to.view.of->custom || to.view.of->generation) &&
      (counts_anyway || !same_generation(to, old, object))) {
    metadata["generation"] = integer_at(old, {"metadata", "generation"}).value_or(0) + 1;
  }
  good = check_object(to, old, object);
  if (good.has_error()) return good.error();
  good = check_rights(to, old, object);
  if (good.has_error()) return good.error();
  if (!to.view.of->custom) settle_builtin(*to.in, *to.view.of, object, now());
  if (!to.view.of->custom) good = allocate_builtin(*to.in, *to.view.of, old, object);
  if (good.has_error()) return good.error();
  plan.before = std::move(before);
  plan.key = to.key;
  plan.operation = "UPDATE";
  if (is_being_deleted(object) && finalizers_of(object).empty() && !holds_content(to, object)) {
    plan.effect = write_plan::action::remove;
  } else if (object != old) {
    plan.effect = write_plan::action::put;
  }
  plan.old = std::move(old);
  plan.object = std::move(object);
  return plan;
}

outcome<void> write_planner::adopt(const call& to, write_plan& plan, json::value object) const {
  if (to.subresource == scale_subresource || !object.is_object()) {
    return internal_error("this API server can't take such a change by a mutating webhook");
  }
  auto& metadata = object_in(object.get_object(), "metadata");
  for (const auto* field :
       {"name", "generateName", "namespace", "uid", "resourceVersion", "generation",
        "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"}) {
    const auto* const was = find(plan.object, {"metadata", field});
    if (was != nullptr) {
      metadata[field] = *was;
    } else {
      metadata.erase(field);
    }
  }
  auto good = prune_unknown(to, object, {});
  if (good.has_error()) return good.error();
  fill_defaults(to, object, false);
  if ((to.view.of->custom || to.view.of->generation) && !plan.old.is_null() &&
      !same_generation(to, plan.old, object)) {
    object_in(object.get_object(), "metadata")["generation"] =
        integer_at(plan.old, {"metadata", "generation"}).value_or(0) + 1;
  }
  good = check_object(to, plan.old, object);
  if (good.has_error()) return good.error();
  tidy_metadata(object);
  if (!to.view.of->custom) store_empty_lists(to, object);
  plan.object = std::move(object);
  if (plan.effect == write_plan::action::nothing && plan.object != plan.old) {
    plan.effect = write_plan::action::put;
  }
  return {};
}

outcome<write_plan> write_planner::edit(const call& to,
                                        const std::function<void(json::value&)>& change) const {
  auto before = to.objects()->find(to.path());
  if (!before) return not_found(to.target());
  auto old = before->parse();
  to_view(old, to.view);
  auto object = old;
  change(object);
  return finish_update(to, std::move(before), std::move(old), std::move(object), {}, false);
}

}  // namespace rw::k8s::devserver
