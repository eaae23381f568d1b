#include "rw/k8s/objects/object_reader.hpp"

#include "rw/core/json_text.hpp"

#include <stdexcept>

namespace rw::k8s {
namespace {

std::string as_member(std::string_view name, std::string_view value) {
  std::string text;
  core::append_json_string(text, name);
  text += ':';
  core::append_json_string(text, value);
  return text + ',';
}

}  // namespace

object_format::naming::naming(std::string an_api_version, std::string a_kind)
    : api_version(std::move(an_api_version)),
      kind(std::move(a_kind)),
      list_kind(kind + "List"),
      with_kind('{' + as_member("kind", kind)),
      with_api_version('{' + as_member("apiVersion", api_version)),
      with_both(with_kind + as_member("apiVersion", api_version)) {}

std::string_view object_format::naming::head(std::string_view of_api_version,
                                             std::string_view of_kind,
                                             std::string_view of_list) const noexcept {
  const bool has_api_version =
      of_api_version == api_version ||
      (!any_version_of.empty() && of_api_version.starts_with(any_version_of));
  const bool has_kind = of_kind == kind;
  if (has_api_version && has_kind) return "{";
  // The list must name the kind that an object omits.
  if (of_list != list_kind) return {};
  if (of_kind.empty() && of_api_version.empty()) return with_both;
  if (of_kind.empty() && has_api_version) return with_kind;
  return of_api_version.empty() && has_kind ? std::string_view(with_api_version)
                                            : std::string_view();
}

object_format::object_format(const resource_type& type, bool metadata_only, bool any_version)
    : whole_(type.gvk.api_version(), type.gvk.kind) {
  if (any_version) whole_.any_version_of = type.gvk.group + "/";
  if (metadata_only) partial_.emplace("meta.k8s.io/v1", "PartialObjectMetadata");
}

std::string_view object_format::head(std::string_view api_version, std::string_view kind,
                                     std::string_view list_kind) const noexcept {
  const auto found = whole_.head(api_version, kind, list_kind);
  return found.empty() && partial_ ? partial_->head(api_version, kind, list_kind) : found;
}

object object::from_text(std::string_view text) {
  auto& input = json_input::of_thread();
  object made;
  const std::string terminated(text);
  const auto error = input.read(terminated, "is not an object of Kubernetes", [&](auto& walk) {
    object_reader reader(walk, input.builder());
    if (!reader.read(projection::rule::kept())) return false;
    made = reader.finish();
    return static_cast<bool>(made);
  });
  if (!error.empty()) throw std::invalid_argument("k8s::object: the text " + error);
  return made;
}

}  // namespace rw::k8s
