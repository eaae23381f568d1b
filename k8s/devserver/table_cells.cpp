#include "rw/k8s/devserver/table_cells.hpp"

#include "rw/core/text.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/table.hpp"
#include "rw/k8s/objects/types.hpp"

#include <map>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;
using when = std::chrono::system_clock::time_point;
using path = std::initializer_list<std::string_view>;

json::string name_of(const json::value& object) {
  return json::string(find_string(object, {"metadata", "name"}));
}

json::string age(const json::value& object, when now) {
  return json::string(age_of(object, "creationTimestamp", now));
}

std::string text_or(const json::value& object, path at, std::string_view otherwise) {
  const auto text = find_string(object, at);
  return std::string(text.empty() ? otherwise : text);
}

std::size_t size_of(const json::value& object, path at) {
  const auto* value = find(object, at);
  if (value == nullptr) return 0;
  if (value->is_array()) return value->get_array().size();
  return value->is_object() ? value->get_object().size() : 0;
}

std::int64_t number(const json::value& object, path at) {
  return integer_at(object, at).value_or(0);
}

std::string fraction(std::int64_t of, std::int64_t all) {
  return std::to_string(of) + "/" + std::to_string(all);
}

json::array plain(const json::value& object, when now) {
  return {name_of(object), age(object, now)};
}

json::array created_at(const json::value& object, when) {
  return {name_of(object), json::string(find_string(object, {"metadata", "creationTimestamp"}))};
}

json::array config_map(const json::value& object, when now) {
  return {name_of(object), size_of(object, {"data"}) + size_of(object, {"binaryData"}),
          age(object, now)};
}

json::array secret(const json::value& object, when now) {
  return {name_of(object), json::string(find_string(object, {"type"})), size_of(object, {"data"}),
          age(object, now)};
}

json::array namespace_(const json::value& object, when now) {
  return {name_of(object), json::string(find_string(object, {"status", "phase"})),
          age(object, now)};
}

json::array service_account(const json::value& object, when now) {
  return {name_of(object), size_of(object, {"secrets"}), age(object, now)};
}

json::array pod(const json::value& object, when now) {
  std::int64_t ready = 0;
  std::int64_t restarts = 0;
  const auto* statuses = find(object, {"status", "containerStatuses"});
  if (statuses != nullptr && statuses->is_array()) {
    for (const auto& status : statuses->get_array()) {
      if (true_at(status, {"ready"})) ++ready;
      restarts += number(status, {"restartCount"});
    }
  }
  const auto all = static_cast<std::int64_t>(size_of(object, {"spec", "containers"}));
  const bool going = !find_string(object, {"metadata", "deletionTimestamp"}).empty();
  const auto phase = text_or(object, {"status", "phase"}, "Pending");
  return {name_of(object),
          json::string(fraction(ready, all)),
          json::string(going ? "Terminating" : phase),
          std::to_string(restarts),
          age(object, now),
          json::string(text_or(object, {"status", "podIP"}, "<none>")),
          json::string(text_or(object, {"spec", "nodeName"}, "<none>")),
          json::string(text_or(object, {"status", "nominatedNodeName"}, "<none>")),
          size_of(object, {"spec", "readinessGates"}) == 0
              ? json::string("<none>")
              : json::string(fraction(
                    0, static_cast<std::int64_t>(size_of(object, {"spec", "readinessGates"}))))};
}

/// Names and images of a pod template's containers.
std::string each_container(const json::value& object, std::string_view field) {
  std::string text;
  const auto* const all = find(object, {"spec", "template", "spec", "containers"});
  if (all == nullptr || !all->is_array()) return text;
  for (const auto& entry : all->get_array()) {
    if (!text.empty()) text += ',';
    text += find_string(entry, {field});
  }
  return text;
}

std::string selector_of(const json::value& object, path at) {
  std::string text;
  const auto* const labels = find(object, at);
  if (labels == nullptr || !labels->is_object()) return "<none>";
  for (const auto& [key, value] : labels->get_object()) {
    if (!text.empty()) text += ',';
    text += std::string(key) + "=" + (value.is_string() ? value.get_string().c_str() : "");
  }
  return text.empty() ? "<none>" : text;
}

void add_template(json::array& cells, const json::value& object, bool selector) {
  cells.push_back(json::string(each_container(object, "name")));
  cells.push_back(json::string(each_container(object, "image")));
  if (selector) {
    cells.push_back(json::string(selector_of(object, {"spec", "selector", "matchLabels"})));
  }
}

json::array deployment(const json::value& object, when now) {
  json::array cells{name_of(object),
                    json::string(fraction(number(object, {"status", "readyReplicas"}),
                                          number(object, {"spec", "replicas"}))),
                    number(object, {"status", "updatedReplicas"}),
                    number(object, {"status", "availableReplicas"}), age(object, now)};
  add_template(cells, object, true);
  return cells;
}

json::array stateful_set(const json::value& object, when now) {
  json::array cells{name_of(object),
                    json::string(fraction(number(object, {"status", "readyReplicas"}),
                                          number(object, {"spec", "replicas"}))),
                    age(object, now)};
  add_template(cells, object, false);
  return cells;
}

json::array replica_set(const json::value& object, when now) {
  json::array cells{name_of(object), number(object, {"spec", "replicas"}),
                    number(object, {"status", "replicas"}),
                    number(object, {"status", "readyReplicas"}), age(object, now)};
  add_template(cells, object, true);
  return cells;
}

json::array daemon_set(const json::value& object, when now) {
  json::array cells{name_of(object)};
  for (const auto* field : {"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                            "updatedNumberScheduled", "numberAvailable"}) {
    cells.push_back(number(object, {"status", field}));
  }
  cells.push_back(json::string(selector_of(object, {"spec", "template", "spec", "nodeSelector"})));
  cells.push_back(age(object, now));
  add_template(cells, object, true);
  return cells;
}

std::string ports_of(const json::value& object) {
  const auto* ports = find(object, {"spec", "ports"});
  if (ports == nullptr || !ports->is_array() || ports->get_array().empty()) return "<none>";
  std::string text;
  for (const auto& port : ports->get_array()) {
    if (!text.empty()) text += ',';
    text += std::to_string(number(port, {"port"}));
    const auto node = number(port, {"nodePort"});
    if (node > 0) text += ":" + std::to_string(node);
    text += "/" + text_or(port, {"protocol"}, "TCP");
  }
  return text;
}

json::array service(const json::value& object, when now) {
  return {name_of(object),
          json::string(text_or(object, {"spec", "type"}, "ClusterIP")),
          json::string(text_or(object, {"spec", "clusterIP"}, "<none>")),
          json::string(text_or(object, {"spec", "externalName"}, "<none>")),
          json::string(ports_of(object)),
          age(object, now),
          json::string(selector_of(object, {"spec", "selector"}))};
}

json::array event(const json::value& object, when now) {
  const auto kind = core::lower(text_or(object, {"involvedObject", "kind"}, ""));
  const auto last =
      find_string(object, {"lastTimestamp"}).empty()
          ? age(object, now)
          : json::string(human_duration(std::chrono::duration_cast<std::chrono::seconds>(
                now - parse_rfc3339(find_string(object, {"lastTimestamp"})).value_or(when{}))));
  return {last, json::string(find_string(object, {"type"})),
          json::string(find_string(object, {"reason"})),
          json::string(kind + "/" + text_or(object, {"involvedObject", "name"}, "")),
          json::string(find_string(object, {"message"}))};
}

json::array lease(const json::value& object, when now) {
  return {name_of(object), json::string(find_string(object, {"spec", "holderIdentity"})),
          age(object, now)};
}

json::array webhooks(const json::value& object, when now) {
  return {name_of(object), size_of(object, {"webhooks"}), age(object, now)};
}

json::array binding(const json::value& object, when now) {
  return {name_of(object),
          json::string(text_or(object, {"roleRef", "kind"}, "") + "/" +
                       text_or(object, {"roleRef", "name"}, "")),
          age(object, now)};
}

json::array node(const json::value& object, when now) {
  std::string status = "Unknown";
  const auto* conditions = find(object, {"status", "conditions"});
  if (conditions != nullptr && conditions->is_array()) {
    for (const auto& condition : conditions->get_array()) {
      if (find_string(condition, {"type"}) != "Ready") continue;
      status = find_string(condition, {"status"}) == "True" ? "Ready" : "NotReady";
    }
  }
  return {name_of(object), json::string(status), "<none>", age(object, now),
          json::string(find_string(object, {"status", "nodeInfo", "kubeletVersion"}))};
}

printer_column text(std::string name) {
  return {std::move(name), "string", {}};
}

printer_column count(std::string name) {
  return {std::move(name), "integer", {}};
}

/// A column of `kubectl get -o wide`.
printer_column wide(std::string name) {
  return {std::move(name), "string", {}, {}, {}, 1};
}

table_layout layout(std::vector<printer_column> middle, table_layout::cells_maker cells,
                    bool with_age = true, std::vector<printer_column> last = {}) {
  std::vector<printer_column> columns{{"Name", "string", {}, "name"}};
  for (auto& column : middle) columns.push_back(std::move(column));
  if (with_age) columns.push_back(text("Age"));
  for (auto& column : last) columns.push_back(std::move(column));
  return {std::move(columns), cells};
}

const std::map<std::string_view, table_layout>& layouts() {
  static const std::map<std::string_view, table_layout> all{
      {"configmaps", layout({count("Data")}, &config_map)},
      {"secrets", layout({text("Type"), count("Data")}, &secret)},
      {"namespaces", layout({text("Status")}, &namespace_)},
      {"serviceaccounts", layout({count("Secrets")}, &service_account)},
      {"pods", layout({text("Ready"), text("Status"), text("Restarts")}, &pod, true,
                      {wide("IP"), wide("Node"), wide("Nominated Node"), wide("Readiness Gates")})},
      {"services", layout({text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)")},
                          &service, true, {wide("Selector")})},
      {"nodes",
       {{{"Name", "string", {}, "name"},
         text("Status"),
         text("Roles"),
         text("Age"),
         text("Version")},
        &node}},
      {"events",
       {{text("Last Seen"), text("Type"), text("Reason"), text("Object"), text("Message")},
        &event}},
      {"deployments.apps",
       layout({text("Ready"), count("Up-to-date"), count("Available")}, &deployment, true,
              {wide("Containers"), wide("Images"), wide("Selector")})},
      {"statefulsets.apps",
       layout({text("Ready")}, &stateful_set, true, {wide("Containers"), wide("Images")})},
      {"replicasets.apps",
       layout({count("Desired"), count("Current"), count("Ready")}, &replica_set, true,
              {wide("Containers"), wide("Images"), wide("Selector")})},
      {"daemonsets.apps",
       layout({count("Desired"), count("Current"), count("Ready"), count("Up-to-date"),
               count("Available"), text("Node Selector")},
              &daemon_set, true, {wide("Containers"), wide("Images"), wide("Selector")})},
      {"leases.coordination.k8s.io", layout({text("Holder")}, &lease)},
      {"validatingwebhookconfigurations.admissionregistration.k8s.io",
       layout({count("Webhooks")}, &webhooks)},
      {"mutatingwebhookconfigurations.admissionregistration.k8s.io",
       layout({count("Webhooks")}, &webhooks)},
      {"rolebindings.rbac.authorization.k8s.io", layout({text("Role")}, &binding)},
      {"clusterrolebindings.rbac.authorization.k8s.io", layout({text("Role")}, &binding)},
      {"roles.rbac.authorization.k8s.io", layout({text("Created At")}, &created_at, false)},
      {"clusterroles.rbac.authorization.k8s.io", layout({text("Created At")}, &created_at, false)},
      {"customresourcedefinitions.apiextensions.k8s.io",
       layout({text("Created At")}, &created_at, false)},
  };
  return all;
}

}  // namespace

const table_layout& builtin_layout(std::string_view storage_key) {
  static const auto plain_layout = layout({}, &plain);
  const auto at = layouts().find(storage_key);
  return at == layouts().end() ? plain_layout : at->second;
}

std::string age_of(const json::value& object, std::string_view field, when now) {
  const auto text = find_string(object, {"metadata", field});
  if (text.empty()) return "<unknown>";
  return human_duration(
      std::chrono::duration_cast<std::chrono::seconds>(now - parse_rfc3339(text).value_or(when{})));
}

}  // namespace rw::k8s::devserver
