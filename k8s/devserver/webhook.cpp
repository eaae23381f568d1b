#include "rw/k8s/devserver/webhook.hpp"

#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/objects/base64.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;

const json::value* member(const json::object& of, std::string_view name) {
  const auto* const found = of.if_contains(name);
  return found != nullptr && !found->is_null() ? found : nullptr;
}

std::optional<std::int64_t> number(const json::object& of, std::string_view name) {
  const auto* const found = member(of, name);
  if (found == nullptr || !found->is_int64()) return std::nullopt;
  return found->get_int64();
}

std::vector<std::string> texts(const json::object& of, std::string_view name) {
  std::vector<std::string> out;
  const auto* const found = member(of, name);
  if (found == nullptr || !found->is_array()) return out;
  for (const auto& entry : found->get_array()) {
    if (entry.is_string()) out.emplace_back(entry.get_string());
  }
  return out;
}

bool lists(const std::vector<std::string>& all, std::string_view text) {
  return std::ranges::any_of(
      all, [text](const std::string& listed) { return listed == "*" || listed == text; });
}

/// A namespace has no namespace, but the API treats it as part of itself.
bool is_namespace(const admission_attributes& write) {
  return write.type.gvk.group.empty() && write.type.plural == "namespaces" &&
         write.subresource.empty();
}

webhook_rule read_rule(const json::object& from) {
  webhook_rule made{.operations = texts(from, "operations"),
                    .groups = texts(from, "apiGroups"),
                    .versions = texts(from, "apiVersions"),
                    .resources = texts(from, "resources")};
  const auto scope = text_of(from, "scope");
  if (scope == "Cluster") made.scope = webhook_rule::extent::cluster;
  if (scope == "Namespaced") made.scope = webhook_rule::extent::namespaced;
  return made;
}

}  // namespace

const json::value* labels_of(const json::value& object) {
  const auto* const fields = object.if_object();
  const auto* const metadata = fields != nullptr ? member(*fields, "metadata") : nullptr;
  if (metadata == nullptr || !metadata->is_object()) return nullptr;
  return member(metadata->get_object(), "labels");
}

bool webhook_rule::matches(const admission_attributes& write) const {
  const bool in_namespace = !write.key.ns.empty() && !is_namespace(write);
  if (scope == extent::cluster && in_namespace) return false;
  if (scope == extent::namespaced && !in_namespace) return false;
  if (!lists(operations, write.operation) || !lists(groups, write.type.gvk.group) ||
      !lists(versions, write.type.gvk.version)) {
    return false;
  }
  return std::ranges::any_of(resources, [&write](std::string_view listed) {
    const auto slash = std::min(listed.find('/'), listed.size());
    const auto main = listed.substr(0, slash);
    const auto sub = listed.substr(std::min(slash + 1, listed.size()));
    return (main == "*" || main == write.type.plural) && (sub == "*" || sub == write.subresource);
  });
}

webhook webhook::parse(const json::value& entry, bool mutates) {
  webhook made;
  made.mutates = mutates;
  if (!entry.is_object()) {
    made.error = "the webhook is no object";
    return made;
  }
  const auto& from = entry.get_object();
  made.name = text_of(from, "name");
  const auto* const rules = member(from, "rules");
  if (rules != nullptr && rules->is_array()) {
    for (const auto& rule : rules->get_array()) {
      if (rule.is_object()) made.rules.push_back(read_rule(rule.get_object()));
    }
  }
  made.read_client_config(from);
  made.read_selectors(from);
  made.read_policies(from);
  return made;
}

void webhook::read_client_config(const json::object& from) {
  const auto* const config = member(from, "clientConfig");
  if (config == nullptr || !config->is_object()) {
    error = "clientConfig is missing";
    return;
  }
  const auto& client = config->get_object();
  url = text_of(client, "url");
  const auto* const called = member(client, "service");
  if (called != nullptr && called->is_object()) {
    const auto& at = called->get_object();
    service = {text_of(at, "namespace"), text_of(at, "name")};
    service_port = static_cast<unsigned>(
        std::clamp<std::int64_t>(number(at, "port").value_or(443), 1, 65'535));
    service_path = text_of(at, "path");
  }
  if (url.empty() == service.name.empty()) error = "exactly one of url or service is required";
  const auto encoded = text_of(client, "caBundle");
  if (encoded.empty()) return;
  auto decoded = base64_decode(encoded);
  if (!decoded) {
    error = "unable to load root certificates: caBundle is not base64";
  } else {
    authorities = std::move(*decoded);
  }
}

void webhook::read_selectors(const json::object& from) {
  const auto read = [&](std::string_view field, label_selector& into) {
    const auto* const source = member(from, field);
    if (source == nullptr) return;
    auto parsed = label_selector::from_json(*source);
    if (parsed) {
      into = std::move(*parsed);
    } else {
      error = std::string(field) + ": " + parsed.error().message;
    }
  };
  read("namespaceSelector", namespaces);
  read("objectSelector", objects);
}

void webhook::read_policies(const json::object& from) {
  timeout = std::chrono::seconds(
      std::clamp<std::int64_t>(number(from, "timeoutSeconds").value_or(10), 1, 30));
  may_fail = text_of(from, "failurePolicy") == "Ignore";
  equivalent = text_of(from, "matchPolicy") != "Exact";
  const auto effects = text_of(from, "sideEffects");
  reinvoked = text_of(from, "reinvocationPolicy") == "IfNeeded";
  side_effects = effects != "None" && effects != "NoneOnDryRun";
  for (auto& text : texts(from, "admissionReviewVersions")) {
    if (text != "v1" && text != "v1beta1") continue;
    version = std::move(text);
    return;
  }
  if (error.empty()) {
    error = "webhook does not accept known AdmissionReview versions (v1, v1beta1)";
  }
}

bool webhook::concerns(const admission_attributes& write) const {
  // No webhook may prevent an administrator from changing webhooks.
  if (write.type.gvk.group == "admissionregistration.k8s.io") return false;
  if (std::ranges::none_of(rules, [&](const auto& rule) { return rule.matches(write); })) {
    return false;
  }
  if (is_namespace(write)) {
    const auto& own = write.object.is_null() ? write.old_object : write.object;
    if (!namespaces.matches(labels_of(own))) return false;
  } else if (!write.key.ns.empty() && !namespaces.matches(&write.namespace_labels)) {
    return false;
  }
  if (objects.empty()) return true;
  const auto chosen = [this](const json::value& object) {
    return !object.is_null() && objects.matches(labels_of(object));
  };
  return chosen(write.object) || chosen(write.old_object);
}

bool webhook::misses(admission_attributes write) const {
  if (!equivalent || concerns(write)) return false;
  return std::ranges::any_of(write.other_versions, [&](const std::string& other) {
    write.type.gvk.version = other;
    return concerns(write);
  });
}

}  // namespace rw::k8s::devserver
