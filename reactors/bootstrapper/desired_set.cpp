#include "reactors/bootstrapper/desired_set.hpp"

#include "k8s/types.hpp"
#include "reactors/bootstrapper/manifest_set.hpp"
#include "reactors/bootstrapper/validation.hpp"
#include "reactors/content_digest.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace rw::bootstrapper {
namespace {

namespace json = boost::json;
using k8s::find_string;

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
      if (json::serialize(content_of(source.object)).size() > source_bytes) {
        path(kind).error("is larger than " + std::to_string(source_bytes) + " bytes");
      }
      return &source.object;
    }
    if (from_.remove_missing) return nullptr;
    const std::string missing = "does not exist, and no valid content of it is stored";
    if (kind == source_kind::trust_bundle && !uses_trust_bundle()) {
      path(kind).warning(missing + "; installed without one");
    } else {
      path(kind).error(missing);
    }
    return nullptr;
  }

  bool uses_trust_bundle() const {
    diagnostics unused;
    const auto& config_map = from_.at(source_kind::configuration).object;
    const std::string text(find_string(config_map, {"data", configuration_key}));
    return !validate_configuration(text, features_, {unused, {}}).trust_bundle.empty();
  }

  void add(source_kind from, json::value object) {
    out_.objects.push_back({from, std::move(object)});
  }

  void add_pull_secret() {
    const auto* const source = source_of(source_kind::pull_secret);
    if (source == nullptr) return;
    validate_pull_secret(*source, path(source_kind::pull_secret));
    auto object = new_object("v1", "Secret", {from_.to.ns, from_.to.pull_secret});
    copy_fields(*source, {"type", "data"}, object);
    add(source_kind::pull_secret, std::move(object));
  }

  std::string bundle_name(const json::value& source) const {
    return from_.to.trust_bundle.empty() ? k8s::key_of(source).name : from_.to.trust_bundle;
  }

  void add_trust_bundle() {
    const auto* const source = source_of(source_kind::trust_bundle);
    if (source == nullptr) return;
    validate_trust_bundle(*source, now_, path(source_kind::trust_bundle));
    bundle_ = bundle_name(*source);
    auto object =
        new_object(find_string(*source, {"apiVersion"}), "ClusterTrustBundle", {{}, bundle_});
    copy_fields(*source, {"spec"}, object);
    add(source_kind::trust_bundle, std::move(object));
  }

  void add_configuration() {
    const auto* const source = source_of(source_kind::configuration);
    if (source == nullptr) return;
    const auto field = path(source_kind::configuration);
    if (k8s::find(*source, {"data", configuration_key}) == nullptr) {
      field.error("data[" + std::string(configuration_key) + "]", "is missing");
    } else {
      const std::string text(find_string(*source, {"data", configuration_key}));
      const auto config = field.at(std::string(configuration_key));
      const auto configured = validate_configuration(text, features_, config);
      if (!bundle_.empty() && !configured.trust_bundle.empty() &&
          bundle_ != configured.trust_bundle) {
        config.at("clusterTrustBundle.name")
            .error("is \"" + configured.trust_bundle + "\", but the bundle is called \"" + bundle_ +
                   "\" on the runtime");
      }
      out_.features = configured.features;
    }
    auto object = new_object("v1", "ConfigMap", {from_.to.ns, from_.to.configuration});
    copy_fields(*source, {"data", "binaryData"}, object);
    add(source_kind::configuration, std::move(object));
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
    return is_target(source_kind::configuration, "ConfigMap",
                     {from_.to.ns, from_.to.configuration}) ||
           is_target(source_kind::pull_secret, "Secret", {from_.to.ns, from_.to.pull_secret}) ||
           is_target(source_kind::trust_bundle, "ClusterTrustBundle", {{}, bundle_name(bundle)});
  }

  void add_manifests() {
    std::string text = from_.inline_manifests;
    auto name = std::string("spec.manifests.inline");
    if (text.empty()) {
      const auto* const source = source_of(source_kind::manifests);
      if (source == nullptr) return;
      text = find_string(*source, {"data", from_.manifests_key});
      name = from_.at(source_kind::manifests).name + ", " + from_.manifests_key;
    }
    const field_path field(out_.found, name);
    if (text.empty()) return field.error("is missing or empty");
    auto parsed = parse_manifest_set(text, from_.to.ns, field);
    out_.version = std::move(parsed.version);
    features_ = std::move(parsed.features);
    for (auto& object : parsed.objects) {
      if (!gives_way(object)) add(source_kind::manifests, std::move(object));
    }
  }

  /// Labels and digests. Aliases in the manifests let a short text stand for a long one.
  void finish() {
    constexpr std::size_t most = 8u << 20;
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
    if (bytes <= most) return;
    field_path(out_.found, "the objects")
        .error("have " + std::to_string(bytes) + " bytes, more than " + std::to_string(most));
  }

  const render_input& from_;
  const std::chrono::system_clock::time_point now_;
  revision out_;
  std::string bundle_;                                      ///< name on the runtime
  std::vector<std::string> features_ = default_features();  ///< that the version knows
};

}  // namespace

std::string_view to_string(unit of) noexcept {
  return of == unit::credentials ? "credentials" : "bootstrapper";
}

std::optional<unit> parse_unit(std::string_view text) noexcept {
  for (const auto each : all_units) {
    if (to_string(each) == text) return each;
  }
  return std::nullopt;
}

unit unit_of(source_kind kind) noexcept {
  return kind == source_kind::pull_secret ? unit::credentials : unit::bootstrapper;
}

std::string_view to_string(source_kind kind) noexcept {
  constexpr std::array<std::string_view, 4> names = {"pullSecret", "trustBundle", "config",
                                                     "manifests"};
  return names[static_cast<std::size_t>(kind)];
}

revision render(unit of, const render_input& from, std::chrono::system_clock::time_point now) {
  return renderer(from, now).run(of);
}

json::value content_of(const json::value& source) {
  if (!source.is_object()) return nullptr;
  json::value out{{"metadata", {{"name", k8s::key_of(source).name}}}};
  copy_fields(source, {"apiVersion", "kind", "type", "data", "binaryData", "spec"}, out);
  return out;
}

std::string digest_of(const json::value& value) {
  return content_digest().add(value).hex();
}

std::string short_digest(std::string_view digest) {
  return std::string(digest.substr(0, 16));
}

}  // namespace rw::bootstrapper
