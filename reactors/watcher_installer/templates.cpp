#include "rw/reactors/watcher_installer/templates.hpp"

#include "rw/k8s/objects/manifests.hpp"
#include "rw/k8s/objects/types.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace rw::watcher_installer {

/// deploy/skr/*.yaml, one after the other; made by the build.
extern const char* const built_in_manifests;

namespace {

namespace json = boost::json;

const json::value* find_object(const std::vector<json::value>& in, std::string_view kind,
                               std::string_view name) {
  const auto found =
      std::ranges::find_if(in, [&](const json::value& object) { return is(object, kind, name); });
  return found == in.end() ? nullptr : &*found;
}

bool has_elements(const json::value* object, std::initializer_list<std::string_view> path) {
  const auto* list = object == nullptr ? nullptr : k8s::find(*object, path);
  const auto* array = list == nullptr ? nullptr : list->if_array();
  return array != nullptr && !array->empty() && array->front().is_object();
}

/// What is missing for the watcher; empty if nothing is.
std::string missing_in(const std::vector<json::value>& objects) {
  if (find_object(objects, "Secret", secret_name) == nullptr) {
    return "there is no Secret " + std::string(secret_name);
  }
  const auto* deployment = find_object(objects, "Deployment", skr_webhook_name);
  if (!has_elements(deployment, {"spec", "template", "spec", "containers"})) {
    return "there is no Deployment " + std::string(skr_webhook_name) + " with a container";
  }
  const auto* webhooks = find_object(objects, "ValidatingWebhookConfiguration", skr_webhook_name);
  if (!has_elements(webhooks, {"webhooks"})) {
    return "there is no ValidatingWebhookConfiguration " + std::string(skr_webhook_name) +
           " with a webhook as the pattern";
  }
  for (const auto& object : objects) {
    if (!k8s::well_known_type(k8s::find_string(object, {"apiVersion"}),
                              k8s::find_string(object, {"kind"}))) {
      return std::string(k8s::find_string(object, {"kind"})) + " of " +
             std::string(k8s::find_string(object, {"apiVersion"})) +
             " is no kind that every cluster has";
    }
  }
  return {};
}

/// What can't be meant; empty if nothing is.
std::string misplaced_in(const std::vector<json::value>& objects) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const auto& object : objects) {
    const std::string kind(k8s::find_string(object, {"kind"}));
    const auto key = k8s::key_of(object);
    if (!seen.emplace(kind, key.name).second) return kind + " " + key.name + " is there twice";
    const auto type = k8s::well_known_type(k8s::find_string(object, {"apiVersion"}), kind);
    if (type->namespaced && key.ns != skr_namespace) {
      return kind + " " + key.name + " is not in the namespace " + std::string(skr_namespace);
    }
  }
  return {};
}

}  // namespace

k8s::failure defect(std::string text) {
  return {.code = k8s::errc::not_configured, .message = std::move(text)};
}

k8s::resource_type type_of(const json::value& object) {
  return *k8s::well_known_type(k8s::find_string(object, {"apiVersion"}),
                               k8s::find_string(object, {"kind"}));
}

int rank_of(const json::value& object) {
  return k8s::apply_rank(k8s::find_string(object, {"apiVersion"}),
                         k8s::find_string(object, {"kind"}));
}

bool is(const json::value& object, std::string_view kind, std::string_view name) {
  return k8s::find_string(object, {"kind"}) == kind &&
         k8s::find_string(object, {"metadata", "name"}) == name;
}

in_words<templates> templates::parse(const std::string& text, const std::string& name) {
  auto objects = k8s::parse_manifests(text);
  if (!objects) return defect(name + ": " + objects.error().message());
  for (auto& object : *objects) k8s::set_label(object, managed_by_label, managed_by);
  k8s::sort_for_apply(*objects);
  if (auto missing = missing_in(*objects); !missing.empty()) return defect(name + ": " + missing);
  if (auto misplaced = misplaced_in(*objects); !misplaced.empty())
    return defect(name + ": " + misplaced);
  return templates(std::move(*objects));
}

const templates& templates::built_in() {
  static const auto all = [] {
    auto parsed = parse(built_in_manifests, "built-in manifests");
    if (!parsed) throw std::logic_error(parsed.error().message);
    return std::move(*parsed);
  }();
  return all;
}

templates templates::named(std::vector<json::value> objects) {
  k8s::sort_for_apply(objects);
  return templates(std::move(objects));
}

in_words<templates> templates::load(const std::string& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(directory, error)) {
    if (file.path().extension() == ".yaml") files.push_back(file.path());
  }
  if (error) return defect(directory + ": " + error.message());
  std::ranges::sort(files);
  std::string text;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return defect(file.string() + ": cannot be read");
    if (!text.empty()) text += "\n---\n";
    text.append(std::istreambuf_iterator<char>(in), {});
  }
  return parse(text, directory);
}

}  // namespace rw::watcher_installer
