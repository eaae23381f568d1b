#include "rw/k8s/devserver/scale.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/json_path.hpp"
#include "rw/k8s/devserver/refusals.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <limits>
#include <vector>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

const json::value* value_at(const json::value& object, const std::string& path) {
  const auto parsed = path.empty() ? std::nullopt : json_path::parse(path);
  if (!parsed) return nullptr;
  const auto found = parsed->find(object);
  return found.empty() ? nullptr : found.front();
}

std::int64_t number_at(const json::value& object, const std::string& path) {
  const auto* found = value_at(object, path);
  return found != nullptr && found->is_int64() ? found->get_int64() : 0;
}

std::string joined(const json::array& values) {
  std::vector<std::string> all;
  for (const auto& value : values) {
    if (value.is_string()) all.emplace_back(view(value.get_string()));
  }
  std::sort(all.begin(), all.end());
  std::string out;
  for (const auto& each : all) out.append(out.empty() ? "" : ",").append(each);
  return out;
}

/// Formats one of matchExpressions for a query parameter.
std::string text_of(const json::value& expression) {
  const std::string key(find_string(expression, {"key"}));
  const auto operation = find_string(expression, {"operator"});
  if (operation == "Exists") return key;
  if (operation == "DoesNotExist") return "!" + key;
  return key + (operation == "NotIn" ? " notin (" : " in (") +
         joined(array_at(expression, {"values"})) + ")";
}

void add_labels(const json::object& labels, std::vector<std::pair<std::string, std::string>>& to) {
  for (const auto& [key, value] : labels) {
    if (!value.is_string()) continue;
    to.emplace_back(key, std::string(key) + "=" + std::string(view(value.get_string())));
  }
}

problem wrong_replicas(const served_resource& of, const json::value& object, std::int64_t replicas,
                       const std::string& reason) {
  const auto name = find_string(object, {"metadata", "name"});
  return invalid({of.of->group, of.of->kind, name},
                 {{"spec.replicas", "FieldValueInvalid",
                   "Invalid value: " + std::to_string(replicas) + ": " + reason}});
}

}  // namespace

std::string selector_text(const json::value& selector) {
  if (selector.is_string()) return std::string(view(selector.get_string()));
  if (!selector.is_object()) return {};
  const auto* labels = find(selector, {"matchLabels"});
  const auto& expressions = array_at(selector, {"matchExpressions"});
  std::vector<std::pair<std::string, std::string>> terms;
  if (labels == nullptr && expressions.empty()) add_labels(selector.get_object(), terms);
  if (labels != nullptr && labels->is_object()) add_labels(labels->get_object(), terms);
  for (const auto& expression : expressions) {
    terms.emplace_back(find_string(expression, {"key"}), text_of(expression));
  }
  std::sort(terms.begin(), terms.end());
  std::string out;
  for (const auto& [key, text] : terms) out.append(out.empty() ? "" : ",").append(text);
  return out;
}

group_version_kind scale_kind() {
  return {"autoscaling", "v1", "Scale"};
}

json::value scale_of(const served_resource& of, const json::value& object) {
  const auto& paths = *of.version->scale;
  json::object metadata;
  for (const auto* field : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    const auto* value = find(object, {"metadata", field});
    if (value != nullptr) metadata[field] = *value;
  }
  json::object spec;
  const auto wanted = number_at(object, paths.spec_replicas);
  if (wanted != 0) spec["replicas"] = wanted;
  json::object status{{"replicas", number_at(object, paths.status_replicas)}};
  const auto* selector = value_at(object, paths.label_selector);
  const auto text = selector == nullptr ? std::string() : selector_text(*selector);
  if (!text.empty()) status["selector"] = text;
  return {{"kind", "Scale"},
          {"apiVersion", "autoscaling/v1"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)},
          {"status", std::move(status)}};
}

outcome<void> set_scale(const served_resource& of, json::value& object, const json::value& scale) {
  const auto* given = find(scale, {"spec", "replicas"});
  if (given != nullptr && !given->is_null() && !given->is_int64()) {
    return bad_request(
        "Scale in version \"v1\" cannot be handled as a Scale: spec.replicas is no "
        "number");
  }
  const auto replicas = integer_at(scale, {"spec", "replicas"}).value_or(0);
  if (replicas < 0) {
    return wrong_replicas(of, object, replicas, "must be greater than or equal to 0");
  }
  if (replicas > std::numeric_limits<std::int32_t>::max()) {
    return wrong_replicas(of, object, replicas, "must be less than 2147483648");
  }
  const auto path = json_path::parse(of.version->scale->spec_replicas);
  if (!path || !path->set(object, replicas)) {
    return internal_error("the path of the replicas, \"" + of.version->scale->spec_replicas +
                          "\", can't be written");
  }
  return {};
}

}  // namespace rw::k8s::devserver
