#include "rw/k8s/devserver/builtin_content.hpp"

#include "rw/k8s/devserver/builtin_rules.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/objects/base64.hpp"

#include <algorithm>
#include <string_view>

// ConfigMaps and Secrets (Kubernetes, "pkg/apis/core/validation").

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

constexpr std::size_t most_bytes = 1u << 20;  // of all values

/// Returns the bytes of all values, decoded if they are base64.
std::size_t bytes_in(const json::value& object, std::string_view field, bool bytes) {
  const auto* map = find(object, {field});
  std::size_t sum = 0;
  if (map == nullptr || !map->is_object()) return sum;
  for (const auto& [key, value] : map->get_object()) {
    if (!value.is_string()) continue;
    const auto text = view(value.get_string());
    const auto padding = text.ends_with("==") ? 2u : text.ends_with('=') ? 1u : 0u;
    sum += bytes ? text.size() / 4 * 3 - std::min<std::size_t>(padding, text.size()) : text.size();
  }
  return sum;
}

void check_size(std::size_t bytes, const std::string& field, std::vector<cause>& found) {
  if (bytes <= most_bytes) return;
  found.push_back({field, "FieldValueTooLong",
                   "Too long: must have at most " + std::to_string(most_bytes) + " bytes"});
}

/// `immutable: true` of ConfigMaps and Secrets.
void check_immutable(const json::value& before, const json::value& object,
                     std::vector<cause>& found) {
  if (!true_at(before, {"immutable"})) return;
  const auto same = [&](std::string_view field) {
    const auto* was = find(before, {field});
    const auto* is = find(object, {field});
    return was == is || (was != nullptr && is != nullptr && *was == *is);
  };
  for (const auto* field : {"immutable", "data", "binaryData"}) {
    if (same(field)) continue;
    found.push_back(
        {field, "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set"});
  }
}

bool is_key(std::string_view name) {
  return !name.empty() && name != "." && !name.starts_with("..") && name.size() <= 253 &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

void check_keys(const json::value& object, std::string_view field, std::vector<cause>& found) {
  const auto* map = find(object, {field});
  if (map == nullptr || !map->is_object()) return;
  for (const auto& [key, value] : map->get_object()) {
    const std::string name(key);
    if (is_key(name)) continue;
    found.push_back({std::string(field) + "[" + name + "]", "FieldValueInvalid",
                     "Invalid value: \"" + name +
                         "\": a valid config key must consist of alphanumeric characters, '-', "
                         "'_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used "
                         "for validation is '[-._a-zA-Z0-9]+')"});
  }
}

enum class key_content : std::uint8_t { any, some, json };

struct secret_key {
  std::string_view type;
  std::string_view key;
  key_content content = key_content::any;
  std::string_view path = "data";
};

/// kube-apiserver writes the paths of some keys like this.
constexpr std::string_view odd_path = "data[%s]";

constexpr secret_key secret_keys[] = {
    {"kubernetes.io/tls", "tls.crt"},
    {"kubernetes.io/tls", "tls.key"},
    {"kubernetes.io/ssh-auth", "ssh-privatekey", key_content::some, odd_path},
    {"kubernetes.io/dockercfg", ".dockercfg", key_content::json},
    {"kubernetes.io/dockerconfigjson", ".dockerconfigjson", key_content::json},
};

void check_secret_type(std::string_view type, const json::value& object,
                       std::vector<cause>& found) {
  for (const auto& row : secret_keys) {
    if (row.type != type) continue;
    const auto field = std::string(row.path) + "[" + std::string(row.key) + "]";
    const auto* const value = find(object, {"data", row.key});
    if (value == nullptr || (row.content == key_content::some && *value == "")) {
      require(found, field);
    } else if (row.content == key_content::json) {
      std::string reason;
      const auto content = parse_json(base64_decode(view(value->as_string())).value_or(""), reason);
      if (content && (content->is_object() || content->is_null())) continue;
      found.push_back(
          {field, "FieldValueInvalid", "Invalid value: \"<secret contents redacted>\": " + reason});
    }
  }
  const auto lacks = [&](std::string_view key) { return find(object, {"data", key}) == nullptr; };
  if (type == "kubernetes.io/basic-auth" && lacks("username") && lacks("password")) {
    require(found, std::string(odd_path) + "[username]");
    require(found, std::string(odd_path) + "[password]");
  }
  const std::string account = "kubernetes.io/service-account.name";
  if (type == "kubernetes.io/service-account-token" &&
      find_string(object, {"metadata", "annotations", account}).empty()) {
    require(found, "metadata.annotations[" + account + "]");
  }
}

}  // namespace

void check_config_map(const json::value& before, const json::value& object,
                      std::vector<cause>& found) {
  check_immutable(before, object, found);
  check_keys(object, "data", found);
  check_keys(object, "binaryData", found);
  if (const auto* const data = find(object, {"data"}); data != nullptr && data->is_object()) {
    for (const auto& [key, value] : data->get_object()) {
      if (find(object, {"binaryData", key}) == nullptr) continue;
      found.push_back(
          {"data[" + std::string(key) + "]", "FieldValueInvalid",
           "Invalid value: \"" + std::string(key) + "\": duplicate of key present in binaryData"});
    }
  }
  check_size(bytes_in(object, "data", false) + bytes_in(object, "binaryData", true), "", found);
}

void check_secret(const json::value& before, const json::value& object, std::vector<cause>& found) {
  check_immutable(before, object, found);
  check_keys(object, "data", found);
  check_size(bytes_in(object, "data", true), "data", found);
  const auto type = find_string(object, {"type"});
  const auto had = find_string(before, {"type"});
  if (!had.empty() && type != had) {
    found.push_back({"type", "FieldValueInvalid",
                     "Invalid value: \"" + std::string(type) + "\": field is immutable"});
  }
  check_secret_type(type, object, found);
}

}  // namespace rw::k8s::devserver
