#include "rw/k8s/devserver/object_meta.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/devserver/builtin_rules.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/objects/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::size_t generated_suffix = 5;
constexpr std::size_t generated_most = 63;

/// As metav1.ObjectMeta's "names.SimpleNameGenerator": letters and digits that make no words.
std::string generated_name(std::string_view base, core::random_source& random) {
  constexpr std::string_view letters = "bcdfghjklmnpqrstvwxz2456789";
  std::string name(base.substr(0, generated_most - generated_suffix));
  for (std::size_t i = 0; i < generated_suffix; ++i) name += letters[random() % letters.size()];
  return name;
}

std::vector<std::string> name_errors(naming rule, std::string_view name) {
  switch (rule) {
    case naming::label:
      return dns_label_errors(name);
    case naming::label_1035:
      return dns_1035_label_errors(name);
    case naming::path_segment:
      return path_segment_errors(name);
    case naming::subdomain:
      break;
  }
  return dns_subdomain_errors(name);
}

void add(std::vector<cause>& found, std::string field, std::string_view value,
         const std::vector<std::string>& errors) {
  for (const auto& error : errors) {
    found.push_back(
        {field, "FieldValueInvalid", "Invalid value: \"" + std::string(value) + "\": " + error});
  }
}

void check_name(const resource& of, const json::value& object, std::vector<cause>& found) {
  const auto name = find_string(object, {"metadata", "name"});
  // A dash at its end is not the end of the name.
  auto base = std::string(find_string(object, {"metadata", "generateName"}));
  if (base.size() > 1 && base.ends_with('-')) base.replace(base.size() - 2, 2, "a");
  if (!base.empty()) add(found, "metadata.generateName", base, name_errors(of.names, base));
  if (name.empty()) {
    found.push_back({"metadata.name", "FieldValueRequired",
                     "Required value: name or generateName is required"});
    return;
  }
  add(found, "metadata.name", name, name_errors(of.names, name));
}

void check_labels(const json::value& object, std::vector<cause>& found) {
  const auto* labels = find(object, {"metadata", "labels"});
  if (labels == nullptr || !labels->is_object()) return;
  for (const auto& [key, value] : labels->get_object()) {
    const std::string_view name(key.data(), key.size());
    add(found, "metadata.labels", name, label_key_errors(name));
    if (!value.is_string()) continue;
    add(found, "metadata.labels", view(value.get_string()),
        label_value_errors(view(value.get_string())));
  }
}

void check_annotations(const json::value& object, std::vector<cause>& found) {
  constexpr std::size_t most = 256 * 1024;
  const auto* annotations = find(object, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object()) return;
  std::size_t bytes = 0;
  for (const auto& [key, value] : annotations->get_object()) {
    // Their keys may have capitals in the prefix.
    const auto name = core::lower(key);
    bytes += name.size() + (value.is_string() ? value.get_string().size() : 0);
    add(found, "metadata.annotations", name, label_key_errors(name));
  }
  if (bytes > most) {
    found.push_back({"metadata.annotations", "FieldValueTooLong",
                     "Too long: must have at most " + std::to_string(most) + " bytes"});
  }
}

void check_owners(const json::value& object, std::vector<cause>& found) {
  const auto& owners = array_at(object, {"metadata", "ownerReferences"});
  std::size_t index = 0;
  std::size_t controllers = 0;
  for (const auto& owner : owners) {
    const auto at = "metadata.ownerReferences[" + std::to_string(index++) + "]";
    for (const auto* field : {"apiVersion", "kind", "name", "uid"}) {
      if (!find_string(owner, {field}).empty()) continue;
      found.push_back(
          {at + "." + field, "FieldValueInvalid",
           "Invalid value: \"\": " +
               std::string(std::string_view(field) == "apiVersion" ? "version" : field) +
               " must not be empty"});
    }
    if (true_at(owner, {"controller"})) ++controllers;
  }
  if (controllers > 1) {
    found.push_back({"metadata.ownerReferences", "FieldValueInvalid",
                     "Invalid value: " + json::serialize(owners) +
                         ": Only one reference can have Controller set to true."});
  }
}

/// Custom resources, and kinds outside the API server's own code, may have any finalizer. Others
/// may have only known finalizers without a prefix.
bool may_have_plain_finalizers(const resource& of) {
  return of.custom || of.group == "apiextensions.k8s.io" || of.group == "coordination.k8s.io" ||
         of.group == "admissionregistration.k8s.io";
}

void check_finalizers(const resource& of, const json::value& object, std::vector<cause>& found) {
  constexpr std::array<std::string_view, 3> standard{"kubernetes", "orphan", "foregroundDeletion"};
  std::size_t index = 0;
  for (const auto& name : finalizers_of(object)) {
    const auto at = "metadata.finalizers[" + std::to_string(index++) + "]";
    const auto errors = label_key_errors(name);
    add(found, "metadata.finalizers", name, errors);
    if (!errors.empty() || may_have_plain_finalizers(of) || name.find('/') != std::string::npos ||
        std::ranges::find(standard, name) != standard.end()) {
      continue;
    }
    add(found, at, name, {"name is neither a standard finalizer name nor is it fully qualified"});
  }
}

std::string cannot_be_handled(const call& to, std::string_view kind, std::string_view version) {
  return std::string(kind) + " in version \"" + std::string(version) +
         "\" cannot be handled as a " + to.view.of->kind + ": ";
}

/// Checks the types of metadata's typed fields.
outcome<void> check_shape(const call& to, const json::value& object) {
  const auto bad = [&](std::string_view field, std::string_view expected) -> outcome<void> {
    return bad_request(cannot_be_handled(to, to.view.of->kind, to.view.version->name) +
                       "json: cannot unmarshal metadata." + std::string(field) +
                       " into Go struct field ObjectMeta." + std::string(field) + " of type " +
                       std::string(expected));
  };
  const auto& metadata = object.get_object().at("metadata").get_object();
  for (const auto* field : {"name", "generateName", "namespace", "uid", "resourceVersion"}) {
    const auto* value = metadata.if_contains(field);
    if (value != nullptr && !value->is_null() && !value->is_string()) return bad(field, "string");
  }
  for (const auto* field : {"labels", "annotations"}) {
    const auto* value = metadata.if_contains(field);
    if (value == nullptr || value->is_null()) continue;
    if (!value->is_object()) return bad(field, "map[string]string");
    for (const auto& [key, text] : value->get_object()) {
      if (!text.is_string() && !text.is_null()) return bad(field, "map[string]string");
    }
  }
  for (const auto* field : {"finalizers", "ownerReferences", "managedFields"}) {
    const auto* value = metadata.if_contains(field);
    if (value != nullptr && !value->is_null() && !value->is_array()) return bad(field, "array");
  }
  return {};
}

}  // namespace

outcome<void> check_decodable(const call& to, json::value& object) {
  if (!object.is_object()) {
    return bad_request("couldn't get version/kind; json parse error: the body is no object");
  }
  auto& fields = object.get_object();
  const auto expected = to.view.api_version();
  for (const std::string_view field : {"apiVersion", "kind"}) {
    const auto* const value = fields.if_contains(field);
    if (value == nullptr || value->is_null() || value->is_string()) continue;
    return bad_request(
        "couldn't get version/kind; json parse error: json: cannot unmarshal into Go "
        "struct field ." +
        std::string(field) + " of type string");
  }
  const auto version = std::string(find_string(object, {"apiVersion"}));
  const auto kind = std::string(find_string(object, {"kind"}));
  if (to.view.of->custom && kind.empty()) {
    return bad_request("Object 'Kind' is missing in '" + json::serialize(object) + "'");
  }
  if (to.view.of->custom && version.empty()) {
    return bad_request("Object 'apiVersion' is missing in '" + json::serialize(object) + "'");
  }
  if (!version.empty() && version != expected) {
    if (!to.view.of->custom) {
      const auto name = kind.empty() ? to.view.of->kind : kind;
      return bad_request(cannot_be_handled(to, name, version.substr(version.find('/') + 1)) +
                         "no kind \"" + name + "\" is registered for version \"" + version + "\"");
    }
    return bad_request("the API version in the data (" + version +
                       ") does not match the expected API version (" + expected + ")");
  }
  if (!kind.empty() && kind != to.view.of->kind) {
    return bad_request(cannot_be_handled(to, kind, to.view.version->name) + "converting (" +
                       to.view.version->name + "." + kind + ") to (" + to.view.of->kind +
                       "): unknown conversion");
  }
  fields["apiVersion"] = expected;
  fields["kind"] = to.view.of->kind;
  const auto* const metadata = fields.if_contains("metadata");
  if (metadata != nullptr && !metadata->is_object() && !metadata->is_null()) {
    return bad_request(cannot_be_handled(to, to.view.of->kind, to.view.version->name) +
                       "json: cannot unmarshal metadata into Go value of type v1.ObjectMeta");
  }
  object_in(fields, "metadata");
  return check_shape(to, object);
}

outcome<void> check_envelope(const call& to, json::value& object) {
  const auto good = check_decodable(to, object);
  if (good.has_error()) return good;
  auto& metadata = object_in(object.get_object(), "metadata");
  if (!to.view.of->namespaced) {
    metadata.erase("namespace");
    return {};
  }
  const auto ns = find_string(object, {"metadata", "namespace"});
  if (!ns.empty() && ns != to.key.ns) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  metadata["namespace"] = to.key.ns;
  return {};
}

void begin_life(json::value& object, const std::string& now, core::random_source& random) {
  auto& metadata = object.as_object()["metadata"].as_object();
  const auto base = std::string(find_string(object, {"metadata", "generateName"}));
  if (find_string(object, {"metadata", "name"}).empty() && !base.empty()) {
    metadata["name"] = generated_name(base, random);
  }
  for (const auto* field : {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
                            "resourceVersion", "generation"}) {
    metadata.erase(field);
  }
  metadata["uid"] = make_uid(random);
  metadata["creationTimestamp"] = now;
}

void keep_identity(const json::value& before, json::value& after) {
  const auto& old = before.as_object().at("metadata").as_object();
  auto& metadata = after.as_object()["metadata"].as_object();
  for (const auto* field : {"creationTimestamp", "deletionTimestamp"}) {
    if (const auto* was = old.if_contains(field)) metadata[field] = *was;
  }
  for (const auto* field : {"uid", "deletionGracePeriodSeconds"}) {
    const auto* was = old.if_contains(field);
    const auto* is = metadata.if_contains(field);
    // In protobuf an empty text is one that is not set.
    const bool is_unset = is == nullptr || is->is_null() || *is == "";
    if (was != nullptr && is_unset) metadata[field] = *was;
  }
  metadata.erase("selfLink");
  if (const auto* was = old.if_contains("generation")) {
    metadata["generation"] = *was;
  } else {
    metadata.erase("generation");
  }
}

void check_metadata(const resource& of, const json::value& object, std::vector<cause>& found) {
  check_name(of, object, found);
  check_labels(object, found);
  check_annotations(object, found);
  check_owners(object, found);
  check_finalizers(of, object, found);
}

void check_metadata_change(const json::value& before, const json::value& after,
                           std::vector<cause>& found) {
  for (const auto* field : {"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp",
                            "deletionGracePeriodSeconds"}) {
    const auto* was = find(before, {"metadata", field});
    const auto* is = find(after, {"metadata", field});
    const auto null = json::value();
    const auto& a = was == nullptr ? null : *was;
    const auto& b = is == nullptr ? null : *is;
    if (a == b) continue;
    found.push_back({"metadata." + std::string(field), "FieldValueInvalid",
                     "Invalid value: " + json::serialize(b) + ": field is immutable"});
  }
  if (!is_being_deleted(before)) return;
  const auto had = finalizers_of(before);
  std::string added;
  for (const auto& name : finalizers_of(after)) {
    if (std::find(had.begin(), had.end(), name) != had.end()) continue;
    if (!added.empty()) added += ", ";
    added += '"' + name + '"';
  }
  if (added.empty()) return;
  // Once for all kinds, and once by the kind's own strategy.
  const cause forbidden{
      "metadata.finalizers", "FieldValueForbidden",
      "Forbidden: no new finalizers can be added if the object is being deleted, found "
      "new finalizers []string{" +
          added + "}"};
  found.insert(found.end(), 2, forbidden);
}

bool is_being_deleted(const json::value& object) noexcept {
  return !find_string(object, {"metadata", "deletionTimestamp"}).empty();
}

std::vector<std::string> finalizers_of(const json::value& object) {
  std::vector<std::string> result;
  for (const auto& name : array_at(object, {"metadata", "finalizers"})) {
    if (name.is_string()) result.emplace_back(view(name.get_string()));
  }
  return result;
}

void set_finalizers(json::value& object, const std::vector<std::string>& names) {
  auto& metadata = object_in(object.as_object(), "metadata");
  if (names.empty()) {
    metadata.erase("finalizers");
  } else {
    metadata["finalizers"] = json::array(names.begin(), names.end());
  }
}

void tidy_metadata(json::value& object) {
  auto& metadata = object_in(object.as_object(), "metadata");
  for (const auto* field : {"labels", "annotations"}) {
    auto* const texts = metadata.if_contains(field);
    if (texts == nullptr || !texts->is_object()) continue;
    for (auto& [name, value] : texts->get_object()) {
      if (value.is_null()) value = "";  // Go's text
    }
  }
  const auto empty = [](const json::value& value) {
    return value.is_null() || (value.is_object() && value.get_object().empty()) ||
           (value.is_array() && value.get_array().empty()) ||
           (value.is_string() && value.get_string().empty());
  };
  for (auto at = metadata.begin(); at != metadata.end();) {
    if (empty(at->value()) && at->key() != "managedFields") {
      at = metadata.erase(at);
    } else {
      ++at;
    }
  }
}

std::string make_uid(core::random_source& random) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<std::uint64_t, 2> bits{random(), random()};
  bits[0] = (bits[0] & ~std::uint64_t{0xF000}) | 0x4000;
  bits[1] = (bits[1] & ~(std::uint64_t{3} << 62)) | (std::uint64_t{2} << 62);
  std::string text;
  for (const auto half : bits) {
    for (int shift = 60; shift >= 0; shift -= 4) {
      if (text.size() == 8 || text.size() == 13 || text.size() == 18 || text.size() == 23) {
        text += '-';
      }
      text += digits[(half >> shift) & 15];
    }
  }
  return text;
}

}  // namespace rw::k8s::devserver
