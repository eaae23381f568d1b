#include "rw/reactors/bootstrapper/desired_set.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/content_digest.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

constexpr std::size_t manifest_bytes = 1u << 20;  ///< a ConfigMap can't hold more
/// Of all objects of a revision: aliases in manifests let a short text stand for a long one.
constexpr std::size_t revision_bytes = 8u << 20;

json::value new_object(std::string_view api_version, std::string_view kind,
                       const k8s::object_key& key) {
  json::object metadata{{"name", key.name}};
  if (!key.ns.empty()) metadata["namespace"] = key.ns;
  return {{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}};
}

void copy_fields(const json::value& from, std::initializer_list<std::string_view> fields,
                 json::value& to) {
  for (const auto field : fields) {
    const auto* const value = k8s::find(from, {field});
    if (value != nullptr && !value->is_null()) to.as_object()[field] = *value;
  }
}

/// The first 64 bits, which distinguish revisions.
std::string short_digest(std::string_view digest) {
  return std::string(digest.substr(0, 16));
}

/// Removes what only the API server sets, and sets the namespace as the scope demands, for kinds
/// that every cluster has. Returns the object's identity: where only discovery knows the scope, no
/// namespace counts as `ns`, since two objects that differ in this alone are one.
std::string normalize_manifest(json::value& object, std::string_view ns) {
  auto& all = object.as_object();
  all.erase("status");
  auto& metadata = all["metadata"].as_object();
  for (const auto* field : {"creationTimestamp", "deletionTimestamp", "generation", "managedFields",
                            "resourceVersion", "selfLink", "uid"}) {
    metadata.erase(field);
  }
  const auto version = find_string(object, {"apiVersion"});
  const auto kind = find_string(object, {"kind"});
  const auto type = k8s::well_known_type(version, kind);
  if (type && !type->namespaced) metadata.erase("namespace");
  auto key = k8s::key_of(object);
  if (key.ns.empty() && (!type || type->namespaced)) key.ns = ns;
  if (type && type->namespaced) metadata["namespace"] = key.ns;
  k8s::group_version_kind gvk;
  k8s::parse_api_version(version, gvk);
  return gvk.group + "/" + std::string(kind) + " " + to_string(key);
}

/// True if `imagePullSecrets` of this name are anywhere in an object.
bool pulls_with(const json::value& in, std::string_view secret) {
  if (const auto* const array = in.if_array()) {
    return std::ranges::any_of(*array,
                               [&](const json::value& each) { return pulls_with(each, secret); });
  }
  const auto* const object = in.if_object();
  if (object == nullptr) return false;
  return std::ranges::any_of(*object, [&](const auto& member) {
    const auto* const names = member.value().if_array();
    if (member.key() != "imagePullSecrets" || names == nullptr) {
      return pulls_with(member.value(), secret);
    }
    return std::ranges::any_of(
        *names, [&](const json::value& each) { return find_string(each, {"name"}) == secret; });
  });
}

/// One call of `render`.
class renderer {
 public:
  renderer(const render_input& from, std::chrono::system_clock::time_point now)
      : from_(from), now_(now) {}

  revision run(unit of) {
    if (of == unit::credentials) {
      add_pull_secret();
    } else {
      add_manifests();
      add_trust_bundle();
      add_configuration();
    }
    finish();
    return std::move(out_);
  }

 private:
  field_path path(source_kind kind) { return {out_.found, from_.at(kind).name}; }

  /// Null if there is nothing to render.
  const json::value* source_of(source_kind kind) {
    const auto& source = from_.at(kind);
    if (source.name.empty()) return nullptr;
    if (!source.object.is_null()) {
      if (const auto error = size_error(content_of(source.object))) path(kind).error(*error);
      return &source.object;
    }
    const std::string missing = "does not exist, and no valid content of it is stored";
    if (kind == source_kind::trust_bundle &&
        !uses_trust_bundle(from_.at(source_kind::config).object)) {
      path(kind).warning(missing + "; installed without one");
    } else {
      path(kind).error(missing);
    }
    return nullptr;
  }

  /// Adds the object of a source: its `fields`, under the target's name.
  void add(source_kind kind, const json::value& source, const k8s::object_key& target,
           std::initializer_list<std::string_view> fields) {
    const auto& gvk = type_of(kind).gvk;
    auto object = new_object(gvk.api_version(), gvk.kind, target);
    copy_fields(source, fields, object);
    out_.objects.push_back({kind, std::move(object)});
  }

  void add_pull_secret() {
    const auto* const source = source_of(source_kind::pull_secret);
    if (source == nullptr) return;
    validate_pull_secret(*source, path(source_kind::pull_secret));
    add(source_kind::pull_secret, *source, {from_.to.ns, from_.to.pull_secret}, {"type", "data"});
  }

  std::string bundle_name(const json::value& source) const {
    return from_.to.trust_bundle.empty() ? k8s::key_of(source).name : from_.to.trust_bundle;
  }

  void add_trust_bundle() {
    const auto* const source = source_of(source_kind::trust_bundle);
    if (source == nullptr) return;
    validate_trust_bundle(*source, now_, path(source_kind::trust_bundle));
    bundle_ = bundle_name(*source);
    add(source_kind::trust_bundle, *source, {{}, bundle_}, {"spec"});
  }

  void add_configuration() {
    const auto* const source = source_of(source_kind::config);
    if (source == nullptr) return;
    const auto field = path(source_kind::config);
    if (k8s::find(*source, {"data", configuration_key}) == nullptr) {
      field.at("data[" + std::string(configuration_key) + "]").error("is missing");
    } else {
      const auto config = field.at(configuration_key);
      const auto configured =
          validate_configuration(find_string(*source, {"data", configuration_key}), runs_, config);
      if (!bundle_.empty() && !configured.trust_bundle.empty() &&
          bundle_ != configured.trust_bundle) {
        config.at("clusterTrustBundle.name")
            .error("is \"" + configured.trust_bundle + "\", but the bundle is called \"" + bundle_ +
                   "\" on the runtime");
      }
      out_.features = configured.features;
      out_.uses_pull_secret |= std::ranges::find(configured.available, pull_secret_feature) !=
                               configured.available.end();
    }
    add(source_kind::config, *source, {from_.to.ns, from_.to.configuration},
        {"data", "binaryData"});
  }

  /// True if another source's target has this name.
  bool gives_way(const json::value& object) const {
    const auto kind = find_string(object, {"kind"});
    const auto key = k8s::key_of(object);
    const auto is_target = [&](source_kind source, std::string_view of_kind,
                               const k8s::object_key& target) {
      return !from_.at(source).name.empty() && kind == of_kind && key == target;
    };
    const auto& bundle = from_.at(source_kind::trust_bundle).object;
    return is_target(source_kind::config, "ConfigMap", {from_.to.ns, from_.to.configuration}) ||
           is_target(source_kind::pull_secret, "Secret", {from_.to.ns, from_.to.pull_secret}) ||
           is_target(source_kind::trust_bundle, "ClusterTrustBundle", {{}, bundle_name(bundle)});
  }

  void add_manifests() {
    std::string text = from_.inline_manifests;
    auto name = std::string("spec.manifests.inline");
    if (text.empty()) {
      const auto* const source = source_of(source_kind::manifests);
      if (source == nullptr) return;
      if (from_.unlabelled) {
        return path(source_kind::manifests)
            .error("needs the label " + std::string(manifests_label) + "=true");
      }
      text = find_string(*source, {"data", manifests_key});
      name = from_.at(source_kind::manifests).name + ", " + std::string(manifests_key);
    }
    const field_path field(out_.found, name);
    if (text.empty()) return field.error("is missing or empty");
    auto parsed = k8s::parse_manifests(text, {.bytes = manifest_bytes});
    if (!parsed) return field.error(parsed.error().message());
    std::set<std::string> identities;
    const auto deployment =
        "apps/Deployment " + to_string(k8s::object_key{from_.to.ns, from_.to.deployment});
    for (auto& object : *parsed) {
      const auto identity = normalize_manifest(object, from_.to.ns);
      if (!identities.insert(identity).second) {
        field.error(identity.substr(identity.find('/') + 1) + " is defined twice");
      }
      if (identity == deployment) {
        out_.version = version_of(object);
        runs_ = abilities_of(object);
      }
      out_.uses_pull_secret |= pulls_with(object, from_.to.pull_secret);
      if (!gives_way(object)) out_.objects.push_back({source_kind::manifests, std::move(object)});
    }
    if (!identities.contains(deployment)) {
      field.error("there is no " + deployment.substr(deployment.find('/') + 1));
    }
  }

  /// Sets labels and digests.
  void finish() {
    std::size_t bytes = 0;
    std::vector<std::string> digests;
    for (auto& each : out_.objects) {
      bytes += json::serialize(each.object).size();
      k8s::set_label(each.object, synced_by_label, synced_by);
      digests.push_back(digest_of(each.object));
      k8s::set_label(each.object, digest_label, short_digest(digests.back()));
    }
    std::ranges::sort(digests);
    content_digest all;
    for (const auto& each : digests) all.add(each);
    out_.digest = short_digest(all.hex());
    if (bytes <= revision_bytes) return;
    field_path(out_.found, "the objects")
        .error("have " + std::to_string(bytes) + " bytes, more than " +
               std::to_string(revision_bytes));
  }

  const render_input& from_;
  const std::chrono::system_clock::time_point now_;
  revision out_;
  std::string bundle_;  ///< name on the runtime
  abilities runs_;      ///< of the Deployment
};

}  // namespace

std::string_view to_string(unit of) noexcept {
  return of == unit::credentials ? "credentials" : "bootstrapper";
}

std::optional<unit> parse_unit(std::string_view text) noexcept {
  const auto found = std::ranges::find(all_units, text, [](unit each) { return to_string(each); });
  return found == all_units.end() ? std::nullopt : std::optional(*found);
}

content_digests digests_of(const content_set& of) {
  content_digests out;
  std::ranges::transform(
      of, out.begin(), [](const content_ptr& each) { return each ? each->digest : std::string(); });
  return out;
}

unit unit_of(source_kind kind) noexcept {
  return kind == source_kind::pull_secret ? unit::credentials : unit::bootstrapper;
}

std::string version_of(const json::value& deployment) {
  return std::string(k8s::label(deployment, version_label));
}

namespace {

/// True if a container has the argument --landscape with a value, as Go's flag package reads it.
bool has_landscape(const json::value& deployment) {
  const auto* const all = k8s::find_array(deployment, {"spec", "template", "spec", "containers"});
  for (const auto& container : all == nullptr ? json::array() : *all) {
    bool value_follows = false;
    for (const auto* const field : {"command", "args"}) {
      const auto* const arguments = k8s::find_array(container, {field});
      for (const auto& each : arguments == nullptr ? json::array() : *arguments) {
        std::string_view text = each.is_string() ? std::string_view(each.get_string()) : "";
        if (value_follows) return !text.empty();
        if (!text.starts_with('-')) continue;
        text.remove_prefix(text.starts_with("--") ? 2 : 1);
        constexpr std::string_view name = "landscape";
        value_follows = text == name;
        if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
          return text.size() > name.size() + 1;
        }
      }
    }
  }
  return false;
}

}  // namespace

abilities abilities_of(const json::value& deployment) {
  abilities can{.landscape = has_landscape(deployment)};
  auto rest = k8s::annotation(deployment, features_annotation);
  if (!k8s::has_annotation(deployment, features_annotation)) return can;
  auto& out = can.features;
  out.clear();
  while (!rest.empty()) {
    const auto end = std::min(rest.find(','), rest.size());
    const auto feature = core::trimmed(rest.substr(0, end));
    if (!feature.empty()) out.emplace_back(feature);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return can;
}

revision render(unit of, const render_input& from, std::chrono::system_clock::time_point now) {
  return renderer(from, now).run(of);
}

bool uses_trust_bundle(const json::value& configuration) {
  diagnostics unused;
  const auto text = find_string(configuration, {"data", configuration_key});
  return !validate_configuration(text, {}, {unused, {}}).trust_bundle.empty();
}

json::value content_of(const json::value& source) {
  if (!source.is_object()) return nullptr;
  json::value out{{"metadata", {{"name", k8s::key_of(source).name}}}};
  copy_fields(source, {"type", "data", "binaryData", "spec"}, out);
  return out;
}

}  // namespace rw::bootstrapper
