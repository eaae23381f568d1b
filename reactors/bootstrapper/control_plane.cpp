#include "rw/reactors/bootstrapper/control_plane.hpp"

#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/runtime_controller/runtime_access.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"

#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::delta;
using k8s::object;
using k8s::object_key;

constexpr const char* by_kyma = "runtime-bootstrapper/kyma";
constexpr const char* by_source = "runtime-bootstrapper/source";
constexpr const char* by_content = "runtime-bootstrapper/content";
constexpr std::string_view kubeconfig_prefix = "kubeconfig-";

std::string kyma_label_of(const json::value& of) {
  return std::string(k8s::label(of, kyma_name_label));
}

void index_by_kyma(k8s::informer& in) {
  in.add_index(by_kyma, [](const object& each, std::vector<std::string>& values) {
    auto kyma = kyma_label_of(each.parse());
    if (!kyma.empty()) values.push_back(std::move(kyma));
  });
}

bool content_changed(const delta& change) {
  const auto before = change.before.parse();
  const auto now = change.now.parse();
  return content_of(before) != content_of(now) ||
         k8s::label(before, manifests_label) != k8s::label(now, manifests_label);
}

/// True if an object came or went, or one of these fields of its metadata changed.
bool metadata_changed(const delta& change, std::initializer_list<std::string_view> fields) {
  if (change.type != delta::kind::updated) return true;
  const auto before = change.before.parse();
  const auto now = change.now.parse();
  return std::ranges::any_of(fields, [&](std::string_view field) {
    const auto* const was = k8s::find(before, {"metadata", field});
    const auto* const is = k8s::find(now, {"metadata", field});
    return (was == nullptr) != (is == nullptr) || (was != nullptr && *was != *is);
  });
}

}  // namespace

control_plane::control_plane(const sources& from, bootstrapper_sources defaults,
                             bootstrapper_mode mode, bool allow_inline_manifests, core::clock& time)
    : sources_(from),
      defaults_(std::move(defaults)),
      mode_(mode),
      allow_inline_manifests_(allow_inline_manifests),
      runtime_writes_(time) {
  sources_.bootstrappers.add_index(by_source,
                                   [this](const object& each, std::vector<std::string>& values) {
                                     const auto view = view_of(each);
                                     for (const auto which : all_sources)
                                       values.push_back(view.from.describe(which));
                                   });
  sources_.bootstrappers.add_index(
      by_content, [](const object& each, std::vector<std::string>& out) {
        for (const auto& unit : read_state(each.parse()).units) {
          for (const auto& all : {unit.contents, unit.applying_contents}) {
            for (const auto& digest : all) {
              if (!digest.empty()) out.push_back(content_store::name_of(digest));
            }
          }
        }
      });
  index_by_kyma(sources_.runtimes);
  index_by_kyma(sources_.kubeconfigs);
}

control_plane::~control_plane() {
  sources_.bootstrappers.remove_index(by_source);
  sources_.bootstrappers.remove_index(by_content);
  sources_.runtimes.remove_index(by_kyma);
  sources_.kubeconfigs.remove_index(by_kyma);
}

void control_plane::watch(k8s::controller& controller, bool create, fan_out spread) {
  using keys = k8s::controller::keys;
  controller.watch(sources_.bootstrappers, [](const delta& change, keys& out) {
    if (metadata_changed(change, {"generation", "deletionTimestamp"}))
      out.push_back(change.latest().key());
  });
  controller.watch(sources_.runtimes, [this, create](const delta& change, keys& out) {
    // Among annotations is the mark: when it is removed, KIM writes to the runtime, or has done so.
    if (!metadata_changed(change, {"annotations", "labels", "deletionTimestamp"})) return;
    const auto key = change.latest().key();
    const auto is_direct = [this](const object& each) {
      return each && mode_of(each.parse(), mode_) == bootstrapper_mode::direct;
    };
    if (create || sources_.bootstrappers.objects().get(key) || is_direct(change.before) ||
        is_direct(change.now)) {
      out.push_back(key);
    }
  });
  controller.watch(sources_.kubeconfigs, [this](const delta& change, keys& out) {
    for (const auto& each : {change.before, change.now}) {
      if (!each) continue;
      const auto name = each.name();
      if (name.starts_with(kubeconfig_prefix)) {
        out.push_back({std::string(each.ns()), std::string(name.substr(kubeconfig_prefix.size()))});
      }
      const auto kyma = kyma_label_of(each.parse());
      if (kyma.empty()) continue;
      for (const auto& runtime : sources_.runtimes.objects().by_index(by_kyma, kyma)) {
        out.push_back(runtime.key());
      }
    }
  });
  const auto& contents = sources_.contents;
  for (auto* const each : {&contents.config_maps, &contents.secrets, &contents.trust_bundles}) {
    controller.watch(*each, [this, &type = each->type(), spread](const delta& change, keys& out) {
      if (!content_changed(change)) return;
      auto users = users_of(type.gvk.kind + " " + to_string(change.latest().key()));
      if (!users.empty()) spread(std::move(users), out);
    });
  }
}

std::vector<object_key> control_plane::users_of(std::string_view source) const {
  std::vector<object_key> out;
  for (const auto& each :
       sources_.bootstrappers.objects().by_index(by_source, std::string(source))) {
    out.push_back(each.key());
  }
  return out;
}

bool control_plane::is_used(std::string_view source) const {
  if (source.starts_with(content_store::name_of({}))) {
    return !sources_.bootstrappers.objects().by_index(by_content, std::string(source)).empty();
  }
  const bool is_source = std::ranges::any_of(all_sources, [&](source_kind which) {
    return source.starts_with(type_of(which).gvk.kind + " ");
  });
  return !is_source || !users_of(source).empty();  // else another content than a source's
}

json::value control_plane::runtime_of(const object_key& key) const {
  const auto stored = sources_.runtimes.objects().get(key);
  return stored ? runtime_writes_.newest(stored) : json::value();
}

void control_plane::wrote_runtime(const json::value& after) {
  const json::value known{{"metadata", after.at("metadata")}};
  runtime_writes_.wrote(known);
}

resource_view control_plane::view_of(const object& bootstrapper) const {
  diagnostics unused;
  return read_resource(bootstrapper.parse(), defaults_, unused);
}

std::string control_plane::kyma_of(const object_key& key) const {
  const auto runtime = sources_.runtimes.objects().get(key);
  return runtime ? kyma_label_of(runtime.parse()) : std::string();
}

std::string control_plane::client_name(const object_key& key) const {
  const auto kyma = kyma_of(key);
  return kyma.empty() ? "runtime/" + key.name : to_string(object_key{key.ns, kyma});
}

std::vector<object_key> control_plane::runtimes_of(std::string_view kyma) const {
  std::vector<object_key> out;
  for (const auto& each : sources_.runtimes.objects().by_index(by_kyma, kyma)) {
    out.push_back(each.key());
  }
  return out;
}

runtime_facts control_plane::facts_of(const object_key& key) const {
  runtime_facts out;
  std::string runtime_uid;
  if (const auto value = runtime_of(key); !value.is_null()) {
    runtime_uid = k8s::uid_of(value);
    out.runtime_exists = true;
    out.runtime_deleting = k8s::is_being_deleted(value);
    out.runtime_suspended = is_suspended(value);
    out.opted_out = k8s::annotation(value, opt_out_annotation) == "true";
    out.mode = mode_of(value, mode_, &out.mode_unknown);
  }
  const auto resource = sources_.bootstrappers.objects().get(key);
  if (!resource) return out;
  const auto value = resource.parse();
  diagnostics found;
  const auto view = read_resource(value, defaults_, found);
  for (const auto& owner : k8s::owners_of(value)) {
    const bool former = owner.kind == runtimes_type().gvk.kind && owner.uid != runtime_uid;
    out.of_former_runtime = out.of_former_runtime || (out.runtime_exists && former);
  }
  if (!view.inline_manifests.empty() && !allow_inline_manifests_) {
    found.errors.emplace_back(
        "spec.manifests.inline: needs the manager's flag --allow-inline-manifests");
  }
  out.exists = true;
  out.deleting = k8s::is_being_deleted(value);
  out.has_finalizer = k8s::has_finalizer(value, finalizer);
  out.has_objects = !read_state(value).objects.empty();
  out.suspended = view.suspended;
  out.invalid = describe(found.errors);
  const auto access = kubeconfig_of(key);
  if (!access) out.no_access = access.error().message;
  return out;
}

k8s::result<std::string> control_plane::kubeconfig_of(const object_key& key) const {
  const auto kyma = kyma_of(key);
  const auto& secrets = sources_.kubeconfigs.objects();
  if (!kyma.empty()) {
    const auto labelled = secrets.by_index(by_kyma, kyma);
    if (!labelled.empty()) return rw::kubeconfig_of(kyma, labelled);
  }
  const auto name = std::string(kubeconfig_prefix) + key.name;
  if (const auto secret = secrets.get(key.ns, name)) return kubeconfig_in(secret);
  return k8s::failure{.code = k8s::errc::not_configured,
                      .message = "neither a Secret with the label " + std::string(kyma_name_label) +
                                 " nor the Secret " + name + " gives access to the runtime"};
}

}  // namespace rw::bootstrapper
