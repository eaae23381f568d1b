#include "rw/reactors/watcher_installer/render.hpp"

#include "rw/core/config.hpp"
#include "rw/k8s/objects/base64.hpp"
#include "rw/k8s/objects/qualified_name.hpp"
#include "rw/k8s/objects/types.hpp"
#include "rw/reactors/shared/content_digest.hpp"
#include "rw/reactors/shared/heartbeat.hpp"
#include "rw/reactors/shared/kyma_resources.hpp"
#include "rw/reactors/shared/probe.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace rw::watcher_installer {
namespace {

namespace json = boost::json;

/// The mapping of that name, made if it is not there.
json::object& child(json::object& of, std::string_view name) {
  auto& value = of[name];
  return value.is_object() ? value.get_object() : value.emplace_object();
}

json::object& at(json::value& object, std::initializer_list<std::string_view> path) {
  auto* here = &object.as_object();
  for (const auto name : path) here = &child(*here, name);
  return *here;
}

/// The container with the variable of the address, or else the first; null: there is none.
json::object* container_of(json::object& pod) {
  json::object* out = nullptr;
  auto* const all = pod["containers"].if_array();
  if (all == nullptr) return nullptr;
  for (auto& container : *all) {
    const auto* env = k8s::find_array(container, {"env"});
    const bool told = env != nullptr && std::ranges::any_of(*env, [](const json::value& variable) {
                        return k8s::find_string(variable, {"name"}) == "KCP_ADDR";
                      });
    if (container.is_object() && (told || out == nullptr)) out = &container.get_object();
    if (told) break;
  }
  return out;
}

void set_variable(json::object& container, std::string_view name, const std::string& to) {
  auto& env = container["env"];
  if (!env.is_array()) env.emplace_array();
  auto& all = env.get_array();
  const auto found = std::ranges::find_if(
      all, [&](const json::value& member) { return k8s::find_string(member, {"name"}) == name; });
  json::value variable = {{"name", name}, {"value", to}};
  if (found != all.end()) {
    *found = std::move(variable);
  } else {
    all.push_back(std::move(variable));
  }
}

void fill_content(json::value& object, const manifest_settings& with) {
  auto& pod = at(object, {"spec", "template", "spec"});
  auto& container = *container_of(pod);
  container["image"] = with.image;
  auto& resources = child(container, "resources");
  resources["requests"] = {{"cpu", with.cpu_request}, {"memory", with.memory_request}};
  resources["limits"] = {{"cpu", with.cpu_limit}, {"memory", with.memory_limit}};
  if (with.pull_secrets.empty()) return;
  auto& secrets = pod["imagePullSecrets"].emplace_array();
  for (const auto& name : with.pull_secrets) secrets.emplace_back(json::object{{"name", name}});
}

void fill_secret(json::value& object, const inputs& runtime) {
  k8s::set_secret_data(object, "ca.crt", runtime.ca_bundle);
  k8s::set_secret_data(object, "tls.crt", runtime.certificate);
  k8s::set_secret_data(object, "tls.key", runtime.key);
  k8s::set_secret_data(object, managers_entry,
                       render_managers(runtime.managers, runtime.managers_since));
  const auto annotate = [&](std::string_view name, const std::string& since) {
    if (!since.empty()) k8s::set_annotation(object, name, since);
  };
  annotate(certificate_since_annotation, runtime.certificate_since);
  annotate(managers_since_annotation, runtime.managers_since);
}

json::value fill_webhook(json::object from, const watcher& watcher, const std::string& bundle) {
  from["name"] = webhook_name(watcher.key);
  auto& client = child(from, "clientConfig");
  client["caBundle"] = bundle;
  auto& service = child(client, "service");
  service["name"] = skr_webhook_name;
  service["namespace"] = skr_namespace;
  service["path"] = "/validate/" + watcher.manager;
  json::object labels;
  for (const auto& [name, value] : watcher.labels) labels.emplace(name, value);
  from["objectSelector"] = json::object();
  if (!labels.empty()) from["objectSelector"] = {{"matchLabels", std::move(labels)}};
  auto resource = watcher.watched.plural;
  if (!watcher.watched.subresource.empty()) resource += "/" + watcher.watched.subresource;
  if (watcher.field == watched_field::status) resource += "/status";
  from["rules"] = json::array{{{"apiGroups", json::array{watcher.watched.group}},
                               {"apiVersions", json::array{watcher.watched.version}},
                               {"resources", json::array{resource}},
                               {"operations", json::array{"CREATE", "UPDATE", "DELETE"}}}};
  return from;
}

/// The webhook that the manager's probes call (shared/probe.hpp). It alone fails where it can't be
/// called, so that a probe learns why.
json::value probe_webhook(json::object from, const std::string& bundle) {
  watcher probed;
  probed.key = {std::string(skr_namespace), "watcher-probe"};
  probed.manager = heartbeat_component;
  probed.watched = {"", "v1", "configmaps"};
  probed.labels = {{std::string(probe_label), "true"}};
  auto out = fill_webhook(std::move(from), probed, bundle);
  auto& fields = out.as_object();
  fields["namespaceSelector"] = {{"matchLabels", {{"kubernetes.io/metadata.name", skr_namespace}}}};
  fields["rules"].at(0).as_object()["operations"] = json::array{"CREATE"};
  fields["failurePolicy"] = "Fail";
  fields["timeoutSeconds"] = 3;
  return out;
}

void fill_configuration(json::value& object, const manifest_settings& with, const inputs& runtime) {
  auto& webhooks = object.as_object()["webhooks"].as_array();
  const auto pattern = webhooks.front().as_object();
  const auto bundle = k8s::base64_encode(runtime.ca_bundle);
  webhooks.clear();
  auto sorted = runtime.watchers;
  std::ranges::sort(sorted, {}, [](const watcher& watcher) {
    return std::tie(watcher.key.ns, watcher.key.name);
  });
  for (const auto& watcher : sorted) webhooks.push_back(fill_webhook(pattern, watcher, bundle));
  if (with.probed) webhooks.push_back(probe_webhook(pattern, bundle));
  for (auto webhook : runtime.kept_webhooks) {
    child(webhook.as_object(), "clientConfig")["caBundle"] = bundle;
    webhooks.push_back(std::move(webhook));
  }
  if (runtime.bundle_since.empty()) return;
  k8s::set_annotation(object, bundle_since_annotation, runtime.bundle_since);
}

void fill_egress(json::value& object, std::uint16_t port) {
  auto& egress = at(object, {"spec"})["egress"];
  if (!egress.is_array()) egress.emplace_array();
  egress.get_array() = {{{"ports", json::array{{{"protocol", "TCP"}, {"port", port}}}}}};
}

/// One rule for each API group.
void fill_rights(json::value& role, const known_managers& observed) {
  std::map<std::string, std::set<std::string>> resources;
  for (const auto& watch : observed.watches()) {
    if (!unobserved_reason(watch, false).empty()) continue;
    resources[watch.watched.group].insert(watch.watched.plural);
  }
  auto& rules = role.as_object()["rules"].emplace_array();
  for (const auto& [group, names] : resources) {
    rules.push_back({{"apiGroups", json::array{group}},
                     {"resources", json::array(names.begin(), names.end())},
                     {"verbs", json::array{"get", "list", "watch"}}});
  }
}

/// The pairs of "a=b,c=d".
json::object labels_of(std::string_view text) {
  json::object out;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find(','));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto equals = std::min(line.find('='), line.size());
    out[line.substr(0, equals)] = line.substr(std::min(equals + 1, line.size()));
  }
  return out;
}

void fill_ingress(json::value& object, const std::string& sources) {
  auto* const rules = at(object, {"spec"})["ingress"].if_array();
  if (sources.empty() || rules == nullptr) return;
  for (auto& rule : *rules) {
    rule.as_object().erase("from");
    if (sources == "any") continue;
    rule.as_object()["from"] = json::array{
        {{"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", "kube-system"}}}}},
         {"podSelector", {{"matchLabels", labels_of(sources)}}}}};
  }
}

void set_applied(json::value& object) {
  k8s::set_annotation(object, applied_annotation, content_digest().add(object).hex());
}

}  // namespace

std::string webhook_sources_error(const std::string& text) {
  const auto labels = labels_of(text);
  const bool good = text == "any" || std::ranges::all_of(labels, [](const auto& label) {
                      return k8s::label_key_errors(label.key()).empty() &&
                             k8s::label_value_errors(label.value().as_string()).empty() &&
                             !label.value().as_string().empty();
                    });
  return good ? "" : "must be labels of pods such as app=vpn-shoot, or any, not: " + text;
}

bool same_webhook(const watcher& a, const watcher& b) {
  return a.key == b.key && a.manager == b.manager && a.watched == b.watched &&
         a.labels == b.labels && a.field == b.field;
}

json::value shared_deployment(const templates& from, const manifest_settings& with) {
  auto out = *std::ranges::find_if(from.objects(), [](const auto& object) {
    return is(object, "Deployment", skr_webhook_name);
  });
  fill_content(out, with);
  k8s::set_annotation(out, content_annotation, content_digest().add(out).add(with.scope).hex());
  return out;
}

std::string content_of(const json::value& deployment) {
  return std::string(k8s::annotation(deployment, content_annotation));
}

void fill_facts(json::value& deployment, const inputs& runtime) {
  auto& pod = at(deployment, {"spec", "template", "spec"});
  if (auto* const container = container_of(pod)) {
    set_variable(*container, "KCP_ADDR",
                 core::to_string({runtime.address.host, runtime.address.port}));
  }
  if (runtime.restart_trigger.empty()) return;
  at(deployment, {"spec", "template", "metadata", "labels"})[restart_label] =
      runtime.restart_trigger;
}

void keep_rights(json::value& role, const json::value& present) {
  const auto* const there = k8s::find_array(present, {"rules"});
  if (there == nullptr) return;
  auto& rules = role.as_object()["rules"].as_array();
  for (const auto& webhook : *there) {
    if (std::ranges::find(rules, webhook) == rules.end()) rules.push_back(webhook);
  }
}

json::value render_deployment(const json::value& shared, const inputs& runtime) {
  auto out = shared;
  fill_facts(out, runtime);
  set_applied(out);
  return out;
}

std::vector<json::value> render(const templates& from, const manifest_settings& with,
                                const inputs& runtime) {
  auto objects = from.objects();
  for (auto& object : objects) {
    if (is(object, "Secret", secret_name)) {
      // Without a digest: of a Secret it would say something about the key.
      fill_secret(object, runtime);
      continue;
    }
    if (is(object, "Deployment", skr_webhook_name)) {
      object = render_deployment(shared_deployment(from, with), runtime);
      continue;
    }
    if (is(object, "ValidatingWebhookConfiguration", skr_webhook_name))
      fill_configuration(object, with, runtime);
    if (is(object, "ClusterRole", observer_role)) fill_rights(object, runtime.observed);
    if (is(object, "NetworkPolicy", ingress_policy)) fill_ingress(object, with.webhook_sources);
    if (is(object, "NetworkPolicy", egress_policy)) fill_egress(object, runtime.address.port);
    set_applied(object);
  }
  return objects;
}

}  // namespace rw::watcher_installer
