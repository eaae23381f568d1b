#include "rw/k8s/objects/projection.hpp"

#include <algorithm>
#include <stdexcept>

namespace rw::k8s {
namespace {

using rule = projection::rule;
using fate = projection::rule::fate;

const std::vector<std::vector<std::string>>& always_kept() {
  static const std::vector<std::vector<std::string>> paths = {
      {"apiVersion"},       {"kind"},
      {"metadata", "name"}, {"metadata", "namespace"},
      {"metadata", "uid"},  {"metadata", "resourceVersion"}};
  return paths;
}

/// Reads one element of a path, up to a dot or the end. Returns false if there is none.
bool take_element(std::string_view& rest, std::string& element) {
  const bool quoted = rest.starts_with('"');
  if (quoted) rest.remove_prefix(1);
  const auto end = std::min(rest.find(quoted ? '"' : '.'), rest.size());
  if (quoted && end == rest.size()) return false;
  element = rest.substr(0, end);
  rest.remove_prefix(end + (quoted ? 1 : 0));
  return !element.empty() && (quoted || element.find('"') == std::string::npos);
}

std::vector<std::string> parse_path(const std::string& path) {
  std::vector<std::string> elements;
  std::string_view rest = path;
  for (;;) {
    std::string element;
    if (!take_element(rest, element)) break;
    elements.push_back(std::move(element));
    if (rest.empty()) return elements;
    if (!rest.starts_with('.')) break;
    rest.remove_prefix(1);
  }
  throw std::invalid_argument("projection: '" + path + "' is not a path of fields");
}

/// Makes `root`, which drops unnamed members, keep the value at `path`.
void keep(rule& root, const std::vector<std::string>& path) {
  auto* at = &root;
  for (const auto& element : path) {
    if (at->treatment == fate::keep) return;
    at->treatment = fate::look_inside;
    auto& inside = at->inside;
    const auto found = std::find_if(inside.begin(), inside.end(),
                                    [&](const rule& each) { return each.name == element; });
    if (found == inside.end()) {
      inside.push_back({.name = element, .treatment = fate::drop, .unnamed = fate::drop});
      at = &inside.back();
    } else {
      at = &*found;
    }
  }
  *at = {.name = at->name};
}

rule everything_but(std::string name, std::vector<rule> inside) {
  return {.name = std::move(name), .treatment = fate::look_inside, .inside = std::move(inside)};
}

rule dropping(std::string name) {
  return {.name = std::move(name), .treatment = fate::drop};
}

}  // namespace

const rule& rule::kept() noexcept {
  static const rule instance;
  return instance;
}

const rule& rule::dropped() noexcept {
  static const rule instance = dropping({});
  return instance;
}

projection projection::whole() {
  static const auto root = std::make_shared<const rule>();
  return projection(root);
}

projection projection::without_managed_fields() {
  static const auto root = std::make_shared<const rule>(
      everything_but({}, {everything_but("metadata", {dropping("managedFields")})}));
  return projection(root);
}

projection projection::metadata(const std::vector<std::string>& also) {
  auto annotations =
      everything_but("annotations", {dropping("kubectl.kubernetes.io/last-applied-configuration")});
  rule all{.treatment = fate::look_inside, .unnamed = fate::drop};
  all.inside = {rule{.name = "apiVersion"}, rule{.name = "kind"},
                everything_but("metadata", {dropping("managedFields"), std::move(annotations)})};
  for (const auto& path : also) keep(all, parse_path(path));
  return projection(std::make_shared<const rule>(std::move(all)));
}

projection projection::fields(const std::vector<std::string>& paths) {
  rule root{.treatment = fate::look_inside, .unnamed = fate::drop};
  for (const auto& path : paths) keep(root, parse_path(path));
  for (const auto& path : always_kept()) keep(root, path);
  return projection(std::make_shared<const rule>(std::move(root)));
}

}  // namespace rw::k8s
