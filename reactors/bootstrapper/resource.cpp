#include "reactors/bootstrapper/resource.hpp"

#include "k8s/qualified_name.hpp"
#include "k8s/types.hpp"
#include "reactors/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

std::string text_or(std::string_view text, const std::string& otherwise) {
  return text.empty() ? otherwise : std::string(text);
}

bool is_true(const json::value& in, std::initializer_list<std::string_view> path) {
  const auto* const value = k8s::find(in, path);
  return value != nullptr && value->is_bool() && value->get_bool();
}

/// `null` says that there is to be none, nothing that it is the usual one.
std::string reference(const json::value& spec, std::string_view field, const std::string& usual) {
  const auto* const value = k8s::find(spec, {field});
  if (value == nullptr) return usual;
  return std::string(find_string(*value, {"name"}));
}

void check_name(const std::string& name, const std::string& field, bool label,
                const findings& spec) {
  const auto wrong = label ? k8s::dns_label_errors(name) : k8s::dns_subdomain_errors(name);
  if (!name.empty() && !wrong.empty()) spec.add(field, "\"" + name + "\": " + wrong.front());
}

}  // namespace

const k8s::resource_type& runtime_bootstrappers_type() {
  static const k8s::resource_type type{
      {"operator.kyma-project.io", "v1alpha1", "RuntimeBootstrapper"}, "runtimebootstrappers"};
  return type;
}

resource_view read_resource(const json::value& object, const bootstrapper_sources& sources,
                            problems& wrong) {
  resource_view out{.key = k8s::key_of(object)};
  const auto* const found = k8s::find(object, {"spec"});
  const json::value spec = found == nullptr ? json::value(json::object()) : *found;
  out.runtime = find_string(spec, {"runtimeRef", "name"});
  out.kyma = find_string(spec, {"runtimeRef", "kymaName"});
  out.configuration = reference(spec, "configMapRef", sources.config);
  out.pull_secret = reference(spec, "pullSecretRef", {});
  out.trust_bundle = reference(spec, "trustBundleRef", {});
  out.inline_manifests = find_string(spec, {"manifests", "inline"});
  if (out.inline_manifests.empty()) {
    out.manifests =
        text_or(find_string(spec, {"manifests", "configMapRef", "name"}), sources.manifests);
    out.manifests_key = text_or(find_string(spec, {"manifests", "configMapRef", "key"}),
                                std::string(default_manifests_key));
  }
  const target_names usual;
  out.to.ns = text_or(find_string(spec, {"target", "namespace"}), usual.ns);
  out.to.configuration = text_or(find_string(spec, {"target", "configMap"}), usual.configuration);
  out.to.pull_secret = text_or(find_string(spec, {"target", "pullSecret"}), usual.pull_secret);
  out.to.trust_bundle = find_string(spec, {"target", "trustBundle"});
  out.suspended = is_true(spec, {"suspend"});
  out.remove_with_source = find_string(spec, {"deletionPolicy"}) == "remove";

  const findings all = findings(wrong, {}).at("spec");
  if (out.runtime.empty() && out.kyma.empty()) {
    all.add("runtimeRef", "names neither a Runtime nor a Kyma");
  }
  check_name(out.to.ns, "target.namespace", true, all);
  check_name(out.to.configuration, "target.configMap", false, all);
  check_name(out.to.pull_secret, "target.pullSecret", false, all);
  return out;
}

json::value resource_for(const json::value& runtime, const bootstrapper_sources& sources) {
  const auto key = k8s::key_of(runtime);
  const auto& type = runtime_bootstrappers_type().gvk;
  json::object spec{
      {"runtimeRef", {{"name", key.name}}},
      {"manifests",
       {{"configMapRef", {{"name", sources.manifests}, {"key", default_manifests_key}}}}},
      {"configMapRef", {{"name", sources.config}}}};
  if (!sources.pull_secret.empty()) spec["pullSecretRef"] = {{"name", sources.pull_secret}};
  if (!sources.trust_bundle.empty()) spec["trustBundleRef"] = {{"name", sources.trust_bundle}};
  json::value out{{"apiVersion", type.api_version()},
                  {"kind", type.kind},
                  {"metadata", {{"name", key.name}, {"namespace", key.ns}}},
                  {"spec", std::move(spec)}};
  // Where only metadata are watched, the object says that it is PartialObjectMetadata.
  const auto& owner = runtimes_type().gvk;
  k8s::set_owner(out,
                 {owner.api_version(), owner.kind, key.name, std::string(k8s::uid_of(runtime))});
  return out;
}

}  // namespace rw::bootstrapper
