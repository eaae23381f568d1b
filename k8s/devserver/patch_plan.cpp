#include "rw/k8s/devserver/builtin_decoding.hpp"
#include "rw/k8s/devserver/conversion.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/object_meta.hpp"
#include "rw/k8s/devserver/patch.hpp"
#include "rw/k8s/devserver/scale.hpp"
#include "rw/k8s/devserver/write_plan.hpp"
#include "rw/k8s/devserver/write_rules.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Removes applied fields that the path does not write: they are neither set nor owned (apiserver,
/// "ResetFields").
void reset_fields(const call& to, json::value& change) {
  auto& fields = change.get_object();
  if (to.subresource.empty()) {
    if (to.view.version->status) fields.erase("status");
    return;
  }
  json::object kept;
  for (const auto* name : {"apiVersion", "kind", "metadata", "status"}) {
    if (const auto* value = fields.if_contains(name)) kept[name] = *value;
  }
  auto& metadata = object_in(kept, "metadata");
  for (const auto field : to.view.of->status_keeps) metadata.erase(field);
  fields = std::move(kept);
}

/// Checks the envelope of an applied object.
outcome<void> check_applied(const call& to, const json::value& change) {
  const auto name = find_string(change, {"metadata", "name"});
  if (!name.empty() && name != to.key.name) {
    return bad_request("the name of the object (" + std::string(name) +
                       ") does not match the name on the URL (" + to.key.name + ")");
  }
  return {};
}

/// A built-in kind is known by the path: a patch may remove it, but not the version.
void restore_kind(const json::value& old, json::value& object) {
  auto& kind = object.get_object()["kind"];
  if (kind.is_null() || kind == "") kind = *find(old, {"kind"});
}

/// Returns why Go's type of a built-in kind can't hold the object; empty if it can. Numbers that
/// are converted get the value that they have there.
std::string decode_error(const call& to, json::value& object, number_reading numbers) {
  const auto* const type = to.view.of->custom ? nullptr : builtin_type_of(to.view);
  if (type == nullptr) return {};
  std::vector<std::string> unknown;
  auto decoded = object;
  auto error = decode_builtin(*type, decoded, unknown, numbers);
  if (error.empty() && numbers == number_reading::converted) object = std::move(decoded);
  return error;
}

/// A custom resource is read whatever kind it says it is.
std::vector<cause> wrong_kind(const call& to, const json::value& object) {
  std::vector<cause> found;
  const auto check = [&](const std::string& field, const std::string& expected) {
    const std::string has(find_string(object, {field}));
    if (has.empty() || has == expected) return;
    found.push_back(
        {field, "FieldValueInvalid", "Invalid value: \"" + has + "\": must be " + expected});
  };
  if (!to.view.of->custom) return found;
  check("kind", to.view.of->kind);
  check("apiVersion", to.view.api_version());
  return found;
}

/// Checks that a patch has left the object's identity as it was.
outcome<void> check_patched(const call& to, patch_kind patch_kind, json::value& object) {
  auto type_error = decode_error(
      to, object,
      patch_kind == patch_kind::strategic ? number_reading::converted : number_reading::strict);
  // Without a version it is read as the internal type, whose fields have no names in JSON.
  const auto* const version = find(object, {"apiVersion"});
  if (!to.view.of->custom && type_error.empty() &&
      (version == nullptr || version->is_null() || *version == "")) {
    return bad_request("the name of the object (" + to.key.name +
                       " based on URL) was undeterminable: name must be provided");
  }
  if (auto wrong = wrong_kind(to, object); !wrong.empty()) {
    const auto written = find_string(object, {"apiVersion"});
    const auto group = written.substr(0, std::min(written.rfind('/'), written.size()));
    const bool core = written.find('/') == std::string_view::npos;
    return invalid({core ? std::string_view() : group, find_string(object, {"kind"}), to.key.name},
                   std::move(wrong));
  }
  if (type_error.empty()) {
    auto copy = object;
    const auto decodable = check_decodable(to, copy);
    if (decodable.has_error()) type_error = decodable.error().message;
  }
  if (!type_error.empty()) {
    return invalid({"", "", ""},
                   {{"patch", "FieldValueInvalid",
                     "Invalid value: " + json::serialize(json::string(json::serialize(object))) +
                         ": " + type_error}});
  }
  const std::string name(find_string(object, {"metadata", "name"}));
  if (name != to.key.name) {
    return bad_request("the name of the object (" + name +
                       ") does not match the name on the URL (" + to.key.name + ")");
  }
  const std::string ns(find_string(object, {"metadata", "namespace"}));
  if (to.view.of->namespaced && !ns.empty() && ns != to.key.ns) {
    return bad_request("the namespace of the object (" + ns +
                       ") does not match the namespace on the request (" + to.key.ns + ")");
  }
  return {};
}

outcome<json::value> patched(const call& to, patch_kind patch_kind, const json::value& old,
                             const json::value& change) {
  auto object = old;
  outcome<void> done;
  if (patch_kind == patch_kind::merge) {
    merge_patch(object, change);
  } else if (patch_kind == patch_kind::json) {
    done = json_patch(object, change);
  } else {
    const auto type = schema_of(to.view);
    done = strategic_merge_patch(object, change, *type);
  }
  if (done.has_error()) return done.error();
  if (!object.is_object()) return bad_request("the patched object is no object");
  return object;
}

/// Ownership of a field that the version of storage lacks can't be kept: the owner's fields are
/// compared in both versions.
outcome<void> check_storable(const call& to, const json::value& change) {
  const auto& stored = to.view.of->versions[to.view.of->stored];
  if (!to.view.of->custom || to.view.version == &stored || !stored.type) return {};
  auto there = change;
  std::vector<std::string> lost;
  stored.type->prune(there, lost);
  if (lost.empty()) return {};
  problem failed{500, "", "." + lost.front() + ": field not declared in schema"};
  return failed;
}

}  // namespace

outcome<write_plan> write_planner::patch(const call& to, patch_kind patch_kind,
                                         const json::value& change,
                                         const write_options& with) const {
  if (to.subresource == scale_subresource) return patch_scale(to, patch_kind, change, with);
  if (patch_kind == patch_kind::apply) return apply(to, change, with);
  auto before = to.objects()->find(to.path());
  if (!before) return not_found(to.target());
  auto old = before->parse();
  to_view(old, to.view);
  auto object = patched(to, patch_kind, old, change);
  if (object.has_error()) return object.error();
  if (!to.view.of->custom) restore_kind(old, *object);
  auto good = check_patched(to, patch_kind, *object);
  if (good.has_error()) return good.error();
  good = check_envelope(to, *object);
  if (good.has_error()) return good.error();
  // A patch needs no version, but a version in it is a precondition.
  const auto version = find_string(*object, {"metadata", "resourceVersion"});
  if (!version.empty() && version != find_string(old, {"metadata", "resourceVersion"})) {
    return modified_meanwhile(to.target());
  }
  return finish_update(to, std::move(before), std::move(old), std::move(*object), with, false);
}

outcome<write_plan> write_planner::apply(const call& to, json::value change,
                                         const write_options& with) const {
  if (!change.is_object()) return bad_request("what is applied must be an object");
  if (to.view.of->custom && !normalize_numbers(change)) {
    return bad_request(std::string(number_out_of_range));
  }
  auto good = check_envelope(to, change);
  if (good.has_error()) return good.error();
  good = check_applied(to, change);
  if (good.has_error()) return good.error();
  auto before = to.objects()->find(to.path());
  if (!before && !to.subresource.empty()) return not_found(to.target());
  const std::string uid(find_string(change, {"metadata", "uid"}));
  if (!before && !uid.empty()) {
    return conflict(to.target(), "uid mismatch: the provided object specified uid " + uid +
                                     ", and no existing object was found");
  }
  json::value old;
  if (before) {
    old = before->parse();
    to_view(old, to.view);
    const auto version = find_string(change, {"metadata", "resourceVersion"});
    if (!version.empty() && version != find_string(old, {"metadata", "resourceVersion"})) {
      return modified_meanwhile(to.target());
    }
  }
  good = check_storable(to, change);
  if (good.has_error()) return good.error();
  reset_fields(to, change);
  auto& metadata = object_in(change.get_object(), "metadata");
  metadata["name"] = to.key.name;
  metadata.erase("resourceVersion");
  const auto type = schema_of(to.view);
  auto merged = devserver::apply(old, change, *type, writer_of(to, with), with.force);
  if (merged.has_error()) return merged.error();
  if (const auto undecodable = decode_error(to, *merged, number_reading::converted);
      !undecodable.empty()) {
    return problem{.code = 500,
                   .reason = "",
                   .message = "failed to convert new object (" + to.key.ns + "/" + to.key.name +
                              "; " + to.view.api_version() + ", Kind=" + to.view.of->kind +
                              ") to proper version: " + undecodable};
  }
  return before
             ? finish_update(to, std::move(before), std::move(old), std::move(*merged), with, true)
             : finish_create(to, std::move(*merged), with, true);
}

}  // namespace rw::k8s::devserver
