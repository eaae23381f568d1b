#include "sandbox.hpp"

#include <algorithm>
#include <optional>

namespace rw::conformance {
namespace {

/// True once the kind is served and its definition says so.
bool served(backend& server, const json& crd) {
  const auto type = custom_type(crd);
  const auto now = server.here.call(server.api().get(crds, {"", text(crd, "/metadata/name")}));
  if (now.has_error()) return false;
  const auto* established = element(*now, "/status/conditions", "type", "Established");
  if (established == nullptr || text(*established, "/status") != "True") return false;
  return server.here.call(server.api().list(type, {})).has_value();
}

json gadget_schema() {
  return parse(R"({
    "type": "object",
    "properties": {
      "spec": {"type": "object", "properties": {
        "size": {"type": "integer"},
        "color": {"type": "string", "default": "red"},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                  "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"}, "n": {"type": "integer"}, "m": {"type": "integer"}}}},
        "plain": {"type": "array", "items": {"type": "string"}},
        "pair": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
          "x": {"type": "string"}, "y": {"type": "string"}}},
        "free": {"type": "object", "additionalProperties": {"type": "string"}}}},
      "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})");
}

/// None if that fails; then it would fail again for each test.
std::optional<k8s::resource_type> define_gadgets() {
  auto& server = backend::get();
  auto crd = definition(server.unique("g") + ".example.com", "Gadget", "gadgets", gadget_schema());
  crd = with(std::move(crd), "/spec/versions/0/subresources", parse(R"({"status": {}})"));
  const auto made = server.here.call(server.api().create(crds, crd));
  if (made.has_error() || !http::test::eventually([&] { return served(server, crd); })) return {};
  return custom_type(crd);
}

}  // namespace

sandbox::sandbox() {
  ok(api.create(namespaces,
                object(namespaces, ns, {{"metadata", {{"labels", {{"conformance", ns}}}}}})));
}

sandbox::~sandbox() {
  for (const auto& name : defined_) {
    static_cast<void>(server.here.call(api.remove(crds, {"", name})));
  }
  static_cast<void>(server.here.call(api.remove(namespaces, {"", ns})));
}

void sandbox::require(bool good, const std::string& otherwise, place from) {
  const std::string file(from.file_name());
  BOOST_REQUIRE_MESSAGE(good, file.substr(file.rfind('/') + 1)
                                  << ":" << from.line() << ": " << otherwise);
}

void sandbox::check(const k8s::failure& why, const refusal& as, place from) {
  const bool fits = why.status == as.status && why.reason == as.reason &&
                    why.message.find(as.says) != std::string::npos;
  require(fits,
          "refused as " + std::to_string(why.status) + " " + why.reason + " (" + why.message +
              ") and not as " + std::to_string(as.status) + " " + std::string(as.reason) + " (" +
              std::string(as.says) + ")",
          from);
}

json sandbox::here(json object) const {
  return with(std::move(object), "/metadata/namespace", ns);
}

json sandbox::cached(const k8s::resource_type& type, json object) {
  static_cast<void>(
      server.here.call(api.list(type,
                                {.ns = text(object, "/metadata/namespace"),
                                 .fields = "metadata.name=" + text(object, "/metadata/name")},
                                {.resource_version = text(object, "/metadata/resourceVersion")})));
  return object;
}

json sandbox::create(const k8s::resource_type& type, json object, k8s::write_options options,
                     place from) {
  if (type.namespaced) object = here(std::move(object));
  return cached(type, ok(api.create(type, std::move(object), std::move(options)), from));
}

json sandbox::get(const k8s::resource_type& type, std::string_view name, place from) {
  return ok(api.get(type, {type.namespaced ? ns : "", std::string(name)}), from);
}

json sandbox::update(const k8s::resource_type& type, json object, k8s::write_options options,
                     place from) {
  if (type.namespaced) object = here(std::move(object));
  return cached(type, ok(api.update(type, std::move(object), std::move(options)), from));
}

json sandbox::merge(const k8s::resource_type& type, std::string_view name, std::string_view change,
                    k8s::write_options options, place from) {
  return cached(type, ok(api.patch(type, {type.namespaced ? ns : "", std::string(name)},
                                   k8s::patch_type::merge, parse(change), std::move(options)),
                         from));
}

json sandbox::apply(const k8s::resource_type& type, json object, k8s::apply_options options,
                    place from) {
  if (type.namespaced) object = here(std::move(object));
  return cached(type, ok(api.apply(type, std::move(object), std::move(options)), from));
}

json sandbox::remove(const k8s::resource_type& type, std::string_view name,
                     k8s::delete_options options, place from) {
  return ok(api.remove(type, {type.namespaced ? ns : "", std::string(name)}, std::move(options)),
            from);
}

json sandbox::list(const k8s::resource_type& type, k8s::selection what, k8s::list_options page,
                   place from) {
  if (type.namespaced) what.ns = ns;
  return ok(api.list(type, std::move(what), std::move(page)), from);
}

bool sandbox::there(const k8s::resource_type& type, std::string_view name) {
  const auto got = server.here.call(api.get(type, {type.namespaced ? ns : "", std::string(name)}));
  BOOST_REQUIRE(got.has_value() || got.error().is(k8s::errc::not_found));
  return got.has_value();
}

std::string sandbox::path(const k8s::resource_type& type, std::string_view name,
                          std::string_view subresource) const {
  const auto where = type.namespaced ? ns : std::string();
  if (name.empty()) return k8s::collection_path(type, where);
  return k8s::object_path(type, {where, std::string(name)}, subresource);
}

k8s::resource_type sandbox::define(json crd, place from) {
  auto name = text(crd, "/metadata/name");
  ok(api.create(crds, crd), from);
  defined_.push_back(std::move(name));
  eventually([&] { return served(server, crd); }, from);
  return custom_type(crd);
}

const k8s::resource_type& gadgets() {
  static const auto type = define_gadgets();
  BOOST_REQUIRE_MESSAGE(type.has_value(), "gadgets are not served");
  return *type;
}

json gadget(std::string_view name, json spec) {
  return object(gadgets(), name, {{"spec", std::move(spec)}});
}

}  // namespace rw::conformance
