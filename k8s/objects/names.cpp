#include "rw/k8s/objects/names.hpp"

#include "rw/core/sip_hash.hpp"
#include "rw/k8s/objects/url.hpp"

namespace rw::k8s {

std::string to_string(const object_key& key) {
  return key.ns.empty() ? key.name : key.ns + "/" + key.name;
}

std::size_t object_key_hash::operator()(const object_key& key) const noexcept {
  return core::foreign_hash(key.name, key.ns);
}

bool parse_api_version(std::string_view text, group_version_kind& into) {
  const auto slash = text.find('/');
  if (text.empty() || slash == 0 || slash == text.size() - 1) return false;
  if (slash == std::string_view::npos) {
    into.group.clear();
    into.version = text;
    return true;
  }
  if (text.find('/', slash + 1) != std::string_view::npos) return false;
  into.group = text.substr(0, slash);
  into.version = text.substr(slash + 1);
  return true;
}

std::string to_string(const resource_type& type) {
  return type.gvk.group.empty() ? type.plural : type.plural + "." + type.gvk.group;
}

std::string collection_path(const resource_type& type, std::string_view ns) {
  std::string path = type.gvk.group.empty() ? "/api/" : "/apis/" + type.gvk.group + "/";
  path += type.gvk.version;
  if (type.namespaced && !ns.empty()) {
    path += "/namespaces/";
    append_percent_encoded(path, ns, ":");
  }
  path += '/';
  path += type.plural;
  return path;
}

std::string object_path(const resource_type& type, const object_key& key,
                        std::string_view subresource) {
  auto path = collection_path(type, key.ns);
  path += '/';
  append_percent_encoded(path, key.name, ":");
  if (!subresource.empty()) {
    path += '/';
    path += subresource;
  }
  return path;
}

}  // namespace rw::k8s
