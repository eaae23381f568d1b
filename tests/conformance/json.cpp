#include "json.hpp"

#include <algorithm>

namespace rw::conformance {
namespace {

/// One name of a pointer, without its escapes.
std::string unescaped(std::string_view token) {
  std::string plain;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const bool escape = token[i] == '~' && i + 1 < token.size();
    plain += !escape ? token[i] : token[++i] == '1' ? '/' : '~';
  }
  return plain;
}

}  // namespace

const json* find(const json& from, std::string_view pointer) {
  boost::system::error_code error;
  return from.find_pointer(pointer, error);
}

std::string text(const json& from, std::string_view pointer) {
  const auto* found = find(from, pointer);
  if (found == nullptr) return {};
  if (found->is_string()) return std::string(found->as_string());
  return boost::json::serialize(*found);
}

json with(json object, std::string_view pointer, json what) {
  auto* at = &object;
  while (!pointer.empty()) {
    const auto end = std::min(pointer.find('/', 1), pointer.size());
    const auto name = unescaped(pointer.substr(1, end - 1));
    if (at->is_array()) {
      at = &at->as_array().at(std::stoul(name));
    } else {
      if (!at->is_object()) at->emplace_object();
      at = &at->as_object()[name];
    }
    pointer.remove_prefix(end);
  }
  *at = std::move(what);
  return object;
}

json without(json object, std::string_view pointer) {
  const auto slash = pointer.rfind('/');
  boost::system::error_code error;
  auto* parent = object.find_pointer(pointer.substr(0, slash), error);
  if (parent != nullptr && parent->is_object()) {
    parent->as_object().erase(pointer.substr(slash + 1));
  }
  return object;
}

const json* element(const json& from, std::string_view pointer, std::string_view key,
                    std::string_view value) {
  const auto* list = find(from, pointer);
  if (list == nullptr || !list->is_array()) return nullptr;
  for (const auto& one : list->as_array()) {
    const auto* member = one.is_object() ? one.as_object().if_contains(key) : nullptr;
    if (member != nullptr && member->is_string() && member->as_string() == value) return &one;
  }
  return nullptr;
}

std::vector<std::string> names(const json& list) {
  std::vector<std::string> found;
  for (const auto& item : list.at("items").as_array()) {
    found.push_back(text(item, "/metadata/name"));
  }
  return found;
}

std::vector<std::string> sorted_names(const json& list) {
  auto found = names(list);
  std::ranges::sort(found);
  return found;
}

unsigned long long version(const json& object) {
  const auto written = text(object, "/metadata/resourceVersion");
  return written.empty() ? 0 : std::stoull(written);
}

const json* managed_by(const json& object, std::string_view manager, std::string_view operation) {
  const auto* entries = find(object, "/metadata/managedFields");
  if (entries == nullptr || !entries->is_array()) return nullptr;
  for (const auto& one : entries->as_array()) {
    if (text(one, "/manager") == manager && text(one, "/operation") == operation) return &one;
  }
  return nullptr;
}

}  // namespace rw::conformance
