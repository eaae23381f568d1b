#include "rw/k8s/devserver/pod_checks.hpp"

#include "rw/k8s/devserver/builtin_content.hpp"
#include "rw/k8s/devserver/json_access.hpp"
#include "rw/k8s/devserver/network_checks.hpp"
#include "rw/k8s/devserver/quantity.hpp"
#include "rw/k8s/objects/qualified_name.hpp"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;
using texts = std::initializer_list<std::string_view>;

const json::array& pod_items(const json::value& of, std::string_view field) {
  static const json::array none;
  const auto* const found = find(of, {field});
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

class pod_checker {
 public:
  explicit pod_checker(std::vector<cause>& found) : found_(found) {}

  void check(const json::value& spec, const std::string& at) {
    std::size_t index = 0;
    for (const auto& pod_item : pod_items(spec, "volumes")) {
      check_volume(pod_item, at + ".volumes[" + std::to_string(index++) + "]");
    }
    if (pod_items(spec, "containers").empty()) require(found_, at + ".containers");
    for (const auto* field : {"containers", "initContainers"}) {
      index = 0;
      for (const auto& pod_item : pod_items(spec, field)) {
        check_container(pod_item, at + "." + field + "[" + std::to_string(index++) + "]");
      }
    }
    each(spec, "tolerations", at, [&](const json::value& toleration, const std::string& path) {
      check_toleration(toleration, path);
    });
    for (const auto* field : {"serviceAccountName", "nodeName", "priorityClassName"}) {
      const auto name = find_string(spec, {field});
      if (name.empty()) continue;
      for (const auto& error : dns_subdomain_errors(name)) {
        invalid(at + "." + field, json::string(name), error);
      }
    }
    const auto policy = find_string(spec, {"restartPolicy"});
    if (!policy.empty()) {
      supported(policy, {"Always", "OnFailure", "Never"}, at + ".restartPolicy");
    }
    const auto dns = find_string(spec, {"dnsPolicy"});
    if (!dns.empty()) {
      supported(dns, {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"},
                at + ".dnsPolicy");
    }
  }

 private:
  void invalid(const std::string& field, const json::value& value, std::string_view reason) {
    found_.push_back({field, "FieldValueInvalid",
                      "Invalid value: " + json::serialize(value) + ": " + std::string(reason)});
  }

  void supported(std::string_view value, texts among, const std::string& field) {
    check_choice(found_, field, value, among);
  }

  /// A DNS label that no other item of its kind has.
  void check_name(const json::value& of, const std::string& at, std::set<std::string>& taken) {
    const std::string name(find_string(of, {"name"}));
    if (name.empty()) return require(found_, at + ".name");
    for (const auto& error : dns_label_errors(name)) {
      invalid(at + ".name", json::string(name), error);
    }
    if (!taken.insert(name).second) {
      found_.push_back({at + ".name", "FieldValueDuplicate", "Duplicate value: \"" + name + "\""});
    }
  }

  void check_volume(const json::value& volume, const std::string& at) {
    check_name(volume, at, volumes_);
    bool has_source = false;
    for (const auto* name : {"emptyDir",
                             "hostPath",
                             "gitRepo",
                             "gcePersistentDisk",
                             "awsElasticBlockStore",
                             "secret",
                             "nfs",
                             "iscsi",
                             "glusterfs",
                             "flocker",
                             "persistentVolumeClaim",
                             "rbd",
                             "cephfs",
                             "quobyte",
                             "downwardAPI",
                             "fc",
                             "azureFile",
                             "configMap",
                             "vsphereVolume",
                             "photonPersistentDisk",
                             "portworxVolume",
                             "azureDisk",
                             "storageos",
                             "projected",
                             "scaleIO",
                             "cinder",
                             "csi",
                             "ephemeral",
                             "image"}) {
      if (find(volume, {name}) == nullptr || !std::exchange(has_source, true)) continue;
      found_.push_back({at + "." + name, "FieldValueForbidden",
                        "Forbidden: may not specify more than 1 volume type"});
    }
    if (const auto* const secret = find(volume, {"secret"});
        secret != nullptr && find_string(*secret, {"secretName"}).empty()) {
      require(found_, at + ".secret.secretName");
    }
    if (const auto* const map = find(volume, {"configMap"});
        map != nullptr && find_string(*map, {"name"}).empty()) {
      require(found_, at + ".configMap.name");
    }
    if (const auto* const claim = find(volume, {"persistentVolumeClaim"});
        claim != nullptr && find_string(*claim, {"claimName"}).empty()) {
      require(found_, at + ".persistentVolumeClaim.claimName");
    }
    if (const auto* const host = find(volume, {"hostPath"})) check_host(*host, at + ".hostPath");
  }

  void check_host(const json::value& host, const std::string& at) {
    const std::string path(find_string(host, {"path"}));
    if (path.empty()) {
      require(found_, at + ".path");
    } else if (("/" + path + "/").find("/../") != std::string::npos) {
      invalid(at + ".path", json::string(path), "must not contain '..'");
    }
    const auto type = find_string(host, {"type"});
    if (type.empty()) return;
    supported(type,
              {"BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
               "FileOrCreate", "Socket"},
              at + ".type");
  }

  void check_toleration(const json::value& toleration, const std::string& at) {
    const std::string key(find_string(toleration, {"key"}));
    const auto term = find_string(toleration, {"operator"});
    const auto effect = find_string(toleration, {"effect"});
    if (!key.empty()) {
      for (const auto& error : label_key_errors(key))
        invalid(at + ".key", json::string(key), error);
    } else if (term != "Exists") {
      invalid(at + ".operator", json::value(term),
              "operator must be Exists when `key` is empty, which means \"match all values and all "
              "keys\"");
    }
    if (!term.empty()) supported(term, {"Equal", "Exists"}, at + ".operator");
    if (term == "Exists" && !find_string(toleration, {"value"}).empty()) {
      invalid(at + ".operator", json::value(term),
              "value must be empty when `operator` is 'Exists'");
    }
    if (!effect.empty()) {
      supported(effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"}, at + ".effect");
    }
    if (find(toleration, {"tolerationSeconds"}) != nullptr && effect != "NoExecute") {
      invalid(at + ".effect", json::value(effect),
              "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
  }

  /// Checks where a variable's value comes from.
  void check_source(const json::value& source, const std::string& at) {
    std::size_t sources = 0;
    for (const auto* name :
         {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}) {
      if (find(source, {name}) != nullptr) ++sources;
    }
    if (sources == 0) {
      invalid(at, "",
              "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or "
              "`secretKeyRef`");
    } else if (sources > 1) {
      invalid(at, "", "may not have more than one field specified at a time");
    }
    const auto* const field = find(source, {"fieldRef"});
    if (field == nullptr) return;
    const std::string path(find_string(*field, {"fieldPath"}));
    if (path.empty()) return require(found_, at + ".fieldRef.fieldPath");
    static constexpr std::array<std::string_view, 8> all{
        "metadata.name",           "metadata.namespace", "metadata.uid", "spec.nodeName",
        "spec.serviceAccountName", "status.hostIP",      "status.podIP", "status.podIPs"};
    const bool of_map =
        (path.starts_with("metadata.labels['") || path.starts_with("metadata.annotations['")) &&
        path.ends_with("']");
    if (of_map || path == "status.hostIPs" || std::ranges::find(all, path) != all.end()) return;
    invalid(at + ".fieldRef.fieldPath", json::string(path),
            "error converting fieldPath: field label not supported: " + path);
  }

  /// Checks the port of a probe, a number or the name of a container's port.
  void check_probed_port(const json::value& probe, std::string_view handler,
                         const std::string& at) {
    const auto* const handled = find(probe, {handler});
    if (handled == nullptr || !handled->is_object()) return;
    static const json::value zero(0);
    const auto* const port = find(*handled, {"port"});
    check_port_value(port == nullptr ? zero : *port, at + "." + std::string(handler) + ".port",
                     found_);
  }

  void check_container(const json::value& container, const std::string& at) {
    check_name(container, at, containers_);
    if (find_string(container, {"image"}).empty()) require(found_, at + ".image");
    std::set<std::string> names;
    each(container, "ports", at, [&](const json::value& port, const std::string& path) {
      check_port(port, path);
      const std::string name(find_string(port, {"name"}));
      if (name.empty()) return;
      const auto errors = port_name_errors(name);
      for (const auto& error : errors) invalid(path + ".name", json::string(name), error);
      if (!errors.empty() || names.insert(name).second) return;
      found_.push_back(
          {path + ".name", "FieldValueDuplicate", "Duplicate value: \"" + name + "\""});
    });
    each(container, "env", at, [&](const json::value& variable, const std::string& path) {
      if (find_string(variable, {"name"}).empty()) require(found_, path + ".name");
      if (!find_string(variable, {"value"}).empty() && find(variable, {"valueFrom"}) != nullptr) {
        invalid(path + ".valueFrom", "", "may not be specified when `value` is not empty");
      }
      if (const auto* const source = find(variable, {"valueFrom"})) {
        check_source(*source, path + ".valueFrom");
      }
    });
    std::set<std::string> paths;
    each(container, "volumeMounts", at, [&](const json::value& mount, const std::string& path) {
      check_mount(mount, path, paths);
    });
    for (const auto* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
      if (const auto* const is = find(container, {probe})) check_handler(*is, at + "." + probe);
    }
    for (const auto* hook : {"postStart", "preStop"}) {
      const auto* const is = find(container, {"lifecycle", hook});
      if (is != nullptr) check_handler(*is, at + ".lifecycle." + hook);
    }
    const auto pull = find_string(container, {"imagePullPolicy"});
    if (!pull.empty()) {
      supported(pull, {"Always", "IfNotPresent", "Never"}, at + ".imagePullPolicy");
    }
    check_resources(container, at + ".resources");
  }

  template <class Check>
  static void each(const json::value& of, std::string_view field, const std::string& at,
                   Check check) {
    std::size_t index = 0;
    for (const auto& pod_item : pod_items(of, field)) {
      check(pod_item, at + "." + std::string(field) + "[" + std::to_string(index++) + "]");
    }
  }

  void check_port(const json::value& port, const std::string& at) {
    const auto number = integer_at(port, {"containerPort"}).value_or(0);
    if (number == 0) {
      require(found_, at + ".containerPort");
    } else if (number < 1 || number > 65'535) {
      invalid(at + ".containerPort", number, "must be between 1 and 65535, inclusive");
    }
    const auto host = integer_at(port, {"hostPort"}).value_or(1);
    if (host < 0 || host > 65'535) {
      invalid(at + ".hostPort", host, "must be between 1 and 65535, inclusive");
    }
    const auto protocol = find_string(port, {"protocol"});
    if (!protocol.empty()) supported(protocol, {"SCTP", "TCP", "UDP"}, at + ".protocol");
  }

  void check_mount(const json::value& mount, const std::string& at, std::set<std::string>& paths) {
    const std::string name(find_string(mount, {"name"}));
    if (name.empty()) {
      require(found_, at + ".name");
    } else if (!volumes_.contains(name)) {
      found_.push_back({at + ".name", "FieldValueNotFound", "Not found: \"" + name + "\""});
    }
    const std::string path(find_string(mount, {"mountPath"}));
    if (path.empty()) {
      require(found_, at + ".mountPath");
    } else if (!paths.insert(path).second) {
      invalid(at + ".mountPath", json::string(path), "must be unique");
    }
  }

  /// Checks what a probe or a hook does.
  void check_handler(const json::value& probe, const std::string& at) {
    std::size_t handlers = 0;
    for (const auto* name : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
      if (find(probe, {name}) != nullptr) ++handlers;
    }
    check_probed_port(probe, "httpGet", at);
    check_probed_port(probe, "tcpSocket", at);
    if (handlers == 0) {
      found_.push_back({at, "FieldValueRequired", "Required value: must specify a handler type"});
    } else if (handlers > 1) {
      found_.push_back(
          {at, "FieldValueForbidden", "Forbidden: may not specify more than 1 handler type"});
    }
  }

  /// Names without a prefix are those that Kubernetes knows.
  void check_resource_names(const json::value& container, const std::string& at,
                            const std::string& field) {
    const auto* const all = find(container, {"resources", field});
    if (all == nullptr || !all->is_object()) return;
    for (const auto& [key, value] : all->get_object()) {
      const std::string name(key);
      if (value.is_string() && compare_quantities(view(value.get_string()), "0") < 0) {
        invalid(at + "." + field + "[" + name + "]", value, "must be greater than or equal to 0");
      }
      if (name == "cpu" || name == "memory" || name == "ephemeral-storage" ||
          name.starts_with("hugepages-") || name.find('/') != std::string::npos) {
        continue;
      }
      const auto where = at + "." + field + "[" + name + "]";
      invalid(where, json::string(name), "must be a standard resource type or fully qualified");
      invalid(where, json::string(name), "must be a standard resource for containers");
    }
  }

  void check_resources(const json::value& container, const std::string& at) {
    check_resource_names(container, at, "limits");
    check_resource_names(container, at, "requests");
    const auto* const requests = find(container, {"resources", "requests"});
    if (requests == nullptr || !requests->is_object()) return;
    for (const auto& [name, value] : requests->get_object()) {
      const auto* const limit = find(container, {"resources", "limits", name});
      if (limit == nullptr || !limit->is_string() || !value.is_string()) continue;
      if (compare_quantities(view(value.get_string()), view(limit->get_string())) <= 0) {
        continue;
      }
      invalid(at + ".requests", value,
              "must be less than or equal to " + std::string(name) + " limit of " +
                  std::string(limit->get_string()));
    }
  }

  std::vector<cause>& found_;
  std::set<std::string> volumes_;
  std::set<std::string> containers_;
};

/// Returns true if each toleration is still there, with any tolerationSeconds.
bool keeps_tolerations(const json::value& before, const json::value& pod) {
  const auto tolerations_of = [](const json::value& of) {
    json::array all;
    const auto* const list = find(of, {"spec", "tolerations"});
    if (list == nullptr || !list->is_array()) return all;
    for (auto toleration : list->get_array()) {
      if (toleration.is_object()) toleration.get_object().erase("tolerationSeconds");
      all.push_back(std::move(toleration));
    }
    return all;
  };
  const auto now = tolerations_of(pod);
  return std::ranges::all_of(tolerations_of(before), [&now](const json::value& toleration) {
    return std::ranges::find(now, toleration) != now.end();
  });
}

/// A Pod's spec without what an update may change.
json::object fixed_part(const json::value& pod) {
  const auto* const spec = find(pod, {"spec"});
  if (spec == nullptr || !spec->is_object()) return {};
  auto fixed = spec->get_object();
  for (const auto* field : {"activeDeadlineSeconds", "tolerations", "schedulingGates",
                            "terminationGracePeriodSeconds"}) {
    fixed.erase(field);
  }
  for (const auto* field : {"containers", "initContainers"}) {
    auto* const list = fixed.if_contains(field);
    if (list == nullptr || !list->is_array()) continue;
    for (auto& entry : list->get_array()) {
      if (entry.is_object()) entry.get_object().erase("image");
    }
  }
  return fixed;
}

}  // namespace

void check_pod_spec(const json::value& spec, const std::string& at, std::vector<cause>& found) {
  pod_checker(found).check(spec, at);
}

void warn_of_pod_spec(const json::value& spec, const std::string& at,
                      std::vector<std::string>& warnings) {
  const auto check = [&](std::initializer_list<std::string_view> path, std::string_view term) {
    const auto* const list = find(spec, path);
    if (list == nullptr || !list->is_array()) return;
    std::string field = at;
    for (const auto part : path) field += "." + std::string(part);
    for (std::size_t i = 0; i < list->get_array().size(); ++i) {
      const auto& entry = list->get_array()[i];
      const auto* const selects = term.empty() ? &entry : find(entry, {term});
      if (selects == nullptr || find(*selects, {"labelSelector"}) != nullptr) continue;
      warnings.push_back(field + "[" + std::to_string(i) + "]" +
                         (term.empty() ? "" : "." + std::string(term)) +
                         ".labelSelector: a null labelSelector results in matching no pod");
    }
  };
  check({"topologySpreadConstraints"}, "");
  for (const std::string_view kind : {"podAffinity", "podAntiAffinity"}) {
    check({"affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"}, "");
    check({"affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution"}, "podAffinityTerm");
  }
}

void check_pod(const json::value& before, const json::value& object, std::vector<cause>& found) {
  const auto* const spec = find(object, {"spec"});
  check_pod_spec(spec == nullptr ? json::value() : *spec, "spec", found);
  if (before.is_null()) return;
  if (!keeps_tolerations(before, object)) {
    found.push_back({"spec.tolerations", "FieldValueForbidden",
                     "Forbidden: existing toleration can not be modified except its "
                     "tolerationSeconds"});
  }
  if (fixed_part(before) == fixed_part(object)) return;
  found.push_back({"spec", "FieldValueForbidden",
                   "Forbidden: pod updates may not change fields other than "
                   "`spec.containers[*].image`,`spec.initContainers[*].image`,"
                   "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
                   "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if "
                   "it was previously negative)"});
}

}  // namespace rw::k8s::devserver
