#include "rw/reactors/bootstrapper/resource.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

bool is_true(const json::value& in, std::initializer_list<std::string_view> path) {
  const auto* const value = k8s::find(in, path);
  return value != nullptr && value->is_bool() && value->get_bool();
}

/// A reference that is null means none; one that is missing means the default.
std::string reference(const json::value& spec, std::string_view field,
                      const std::string& otherwise) {
  const auto* const value = k8s::find(spec, {field});
  if (value == nullptr) return otherwise;
  return std::string(find_string(*value, {"name"}));
}

}  // namespace

const k8s::resource_type& runtime_bootstrappers_type() {
  static const k8s::resource_type type{
      {"operator.kyma-project.io", "v1alpha1", "RuntimeBootstrapper"}, "runtimebootstrappers"};
  return type;
}

std::string release_command(const std::string& name) {
  return "kubectl -n " + std::string(kcp_namespace) + " patch runtimebootstrappers " + name +
         R"( --type merge -p '{"metadata":{"finalizers":null}}')";
}

resource_view read_resource(const json::value& object, const bootstrapper_sources& sources,
                            diagnostics& found) {
  resource_view out;
  const auto* const present = k8s::find(object, {"spec"});
  const json::value spec = present == nullptr ? json::value(json::object()) : *present;
  out.from.config = reference(spec, "configMapRef", sources.config);
  out.from.pull_secret = reference(spec, "pullSecretRef", {});
  out.from.trust_bundle = reference(spec, "trustBundleRef", {});
  out.from.manifests.clear();
  out.inline_manifests = find_string(spec, {"manifests", "inline"});
  if (out.inline_manifests.empty()) {
    out.from.manifests = find_string(spec, {"manifests", "configMapRef", "name"});
    if (out.from.manifests.empty()) out.from.manifests = sources.manifests;
    out.own_manifests = out.from.manifests != sources.manifests;
  }
  out.suspended = is_true(spec, {"suspend"});
  out.adopt = is_true(spec, {"adopt"});

  const auto runtime = find_string(spec, {"runtimeRef", "name"});
  if (!runtime.empty() && runtime != k8s::key_of(object).name) {
    field_path(found, "spec.runtimeRef.name")
        .error("is \"" + std::string(runtime) +
               "\", but a RuntimeBootstrapper has the name of its Runtime");
  }
  return out;
}

bool shares_content(const resource_view& view, const bootstrapper_sources& usual) {
  return view.from.config == usual.config && view.from.manifests == usual.manifests &&
         (view.from.trust_bundle.empty() || view.from.trust_bundle == usual.trust_bundle);
}

json::value resource_for(const json::value& runtime, const bootstrapper_sources& sources) {
  const auto key = k8s::key_of(runtime);
  const auto& type = runtime_bootstrappers_type().gvk;
  json::object spec{{"runtimeRef", {{"name", key.name}}},
                    {"manifests", {{"configMapRef", {{"name", sources.manifests}}}}},
                    {"configMapRef", {{"name", sources.config}}}};
  if (!sources.pull_secret.empty()) spec["pullSecretRef"] = {{"name", sources.pull_secret}};
  if (!sources.trust_bundle.empty()) spec["trustBundleRef"] = {{"name", sources.trust_bundle}};
  json::value out{{"apiVersion", type.api_version()},
                  {"kind", type.kind},
                  {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
                  {"spec", std::move(spec)}};
  k8s::set_annotation(out, auto_created_annotation, "true");
  k8s::add_finalizer(out, finalizer);
  // Where only metadata are watched, the object says that it is PartialObjectMetadata.
  const auto& owner = runtimes_type().gvk;
  k8s::set_owner(out,
                 {owner.api_version(), owner.kind, key.name, std::string(k8s::uid_of(runtime))});
  return out;
}

}  // namespace rw::bootstrapper
