#include "rw/k8s/devserver/conversion.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/patch.hpp"
#include "rw/k8s/devserver/scale.hpp"
#include "rw/k8s/devserver/write_plan.hpp"
#include "rw/k8s/devserver/write_rules.hpp"

// Writes of the scale subresource: the client sends a Scale, the server writes the object.

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

/// Checks the kind and name of a Scale.
outcome<void> check_scale(const call& to, const json::value& scale) {
  if (!scale.is_object()) {
    return bad_request("couldn't get version/kind; json parse error: the body is no object");
  }
  const auto version = find_string(scale, {"apiVersion"});
  const auto kind = find_string(scale, {"kind"});
  if ((!version.empty() && version != "autoscaling/v1") || (!kind.empty() && kind != "Scale")) {
    return bad_request(std::string(kind) + " in version \"" + std::string(version) +
                       "\" cannot be handled as a Scale of autoscaling/v1");
  }
  const auto name = find_string(scale, {"metadata", "name"});
  if (!name.empty() && name != to.key.name) {
    return bad_request("the name of the object (" + std::string(name) +
                       ") does not match the name on the URL (" + to.key.name + ")");
  }
  return {};
}

}  // namespace

outcome<write_plan> write_planner::update_scale(const call& to, const json::value& scale,
                                                const write_options& with, bool applied) const {
  auto good = check_scale(to, scale);
  if (good.has_error()) return good.error();
  auto before = to.objects()->find(to.path());
  if (!before) return not_found(to.target());
  auto old = before->parse();
  to_view(old, to.view);
  // A Scale without a version applies to any version.
  const auto version = find_string(scale, {"metadata", "resourceVersion"});
  if (!version.empty() && version != find_string(old, {"metadata", "resourceVersion"})) {
    return modified_meanwhile(to.target());
  }
  // What is applied is the object with its replicas alone.
  auto object = applied ? json::value{{"apiVersion", to.view.api_version()},
                                      {"kind", to.view.of->kind},
                                      {"metadata", {{"name", to.key.name}}}}
                        : old;
  if (!applied || find(scale, {"spec", "replicas"}) != nullptr) {
    good = set_scale(to.view, object, scale);
    if (good.has_error()) return good.error();
  }
  if (applied) {
    auto merged =
        devserver::apply(old, object, *schema_of(to.view), writer_of(to, with), with.force);
    if (merged.has_error()) return merged.error();
    object = std::move(*merged);
  }
  return finish_update(to, std::move(before), std::move(old), std::move(object), with, applied);
}

outcome<write_plan> write_planner::patch_scale(const call& to, patch_kind patch_kind,
                                               const json::value& change,
                                               const write_options& with) const {
  if (patch_kind == patch_kind::apply) return update_scale(to, change, with, true);
  const auto before = to.objects()->find(to.path());
  if (!before) return not_found(to.target());
  auto old = before->parse();
  to_view(old, to.view);
  auto scale = scale_of(to.view, old);
  outcome<void> done;
  if (patch_kind == patch_kind::json) {
    done = json_patch(scale, change);
  } else if (patch_kind == patch_kind::merge) {
    merge_patch(scale, change);
  } else {
    done = strategic_merge_patch(scale, change, *builtin_schema("autoscaling/v1", "Scale"));
  }
  if (done.has_error()) return done.error();
  return update_scale(to, scale, with, false);
}

}  // namespace rw::k8s::devserver
