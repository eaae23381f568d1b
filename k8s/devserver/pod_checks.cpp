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
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <utility>

namespace rw::k8s::devserver {
namespace {

namespace json = boost::json;
using texts = std::initializer_list<std::string_view>;

constexpr std::string_view header_characters =
    "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

class pod_checker {
 public:
  explicit pod_checker(std::vector<cause>& found) : found_(found) {}

  void check(const json::value& spec, const std::string& at) {
    std::size_t index = 0;
    for (const auto& pod_item : array_at(spec, {"volumes"})) {
      check_volume(pod_item, at + ".volumes[" + std::to_string(index++) + "]");
    }
    if (array_at(spec, {"containers"}).empty()) require(found_, at + ".containers");
    for (const auto* field : {"containers", "initContainers"}) {
      index = 0;
      for (const auto& pod_item : array_at(spec, {field})) {
        const bool ends = field == std::string_view("initContainers") &&
                          find_string(pod_item, {"restartPolicy"}) != "Always";
        check_container(pod_item, at + "." + field + "[" + std::to_string(index++) + "]", ends);
      }
    }
    check_security(spec, at);
    check_between(1, integer_at(spec, {"activeDeadlineSeconds"}).value_or(1),
                  at + ".activeDeadlineSeconds");
    each(spec, "tolerations", at, [&](const json::value& toleration, const std::string& path) {
      check_toleration(toleration, path);
    });
    for (const auto& [field, errors_of] :
         {std::pair("serviceAccountName", &dns_subdomain_errors),
          std::pair("nodeName", &dns_subdomain_errors),
          std::pair("priorityClassName", &dns_subdomain_errors),
          std::pair("hostname", &dns_label_errors), std::pair("subdomain", &dns_label_errors)}) {
      const auto name = find_string(spec, {field});
      if (name.empty()) continue;
      for (const auto& error : errors_of(name)) {
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

  void check_between(std::int64_t least, std::int64_t number, const std::string& field) {
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    if (number >= least && number <= most) return;
    invalid(field, number,
            "must be between " + std::to_string(least) + " and " + std::to_string(most) +
                ", inclusive");
  }

  /// Checks the users, groups and seccomp profile of a Pod or a container.
  void check_security(const json::value& of, const std::string& at) {
    const auto* const context = find(of, {"securityContext"});
    if (context == nullptr) return;
    const auto where = at + ".securityContext";
    for (const std::string field : {"runAsUser", "runAsGroup", "fsGroup"}) {
      check_between(0, integer_at(*context, {field}).value_or(0), where + "." + field);
    }
    each(*context, "supplementalGroups", where,
         [&](const json::value& id, const std::string& path) {
           if (id.is_int64()) check_between(0, id.get_int64(), path);
         });
    const auto policy = find_string(*context, {"fsGroupChangePolicy"});
    if (!policy.empty()) {
      supported(policy, {"Always", "OnRootMismatch"}, where + ".fsGroupChangePolicy");
    }
    const auto seccomp = find_string(*context, {"seccompProfile", "type"});
    if (!seccomp.empty()) {
      supported(seccomp, {"Localhost", "RuntimeDefault", "Unconfined"},
                where + ".seccompProfile.type");
    }
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

  /// Checks a container; one that `ends` before others begin has neither probes nor hooks.
  void check_container(const json::value& container, const std::string& at, bool ends) {
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
    for (const std::string field :
         {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      const auto* const is = find(container, {field});
      if (is == nullptr) continue;
      if (ends) {
        found_.push_back({at + "." + field, "FieldValueForbidden",
                          "Forbidden: may not be set for init containers without "
                          "restartPolicy=Always"});
      } else if (field == "lifecycle") {
        for (const auto* hook : {"postStart", "preStop"}) {
          const auto* const handler = find(*is, {hook});
          if (handler != nullptr) check_handler(*handler, at + ".lifecycle." + hook);
        }
      } else {
        check_probe(*is, at + "." + field, field != "readinessProbe");
      }
    }
    const auto pull = find_string(container, {"imagePullPolicy"});
    if (!pull.empty()) {
      supported(pull, {"Always", "IfNotPresent", "Never"}, at + ".imagePullPolicy");
    }
    check_resources(container, at + ".resources");
    check_security(container, at);
  }

  template <class Check>
  static void each(const json::value& of, std::string_view field, const std::string& at,
                   Check check) {
    std::size_t index = 0;
    for (const auto& pod_item : array_at(of, {field})) {
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

  /// Checks a probe; all but those of readiness succeed `once`.
  void check_probe(const json::value& probe, const std::string& at, bool once) {
    check_handler(probe, at);
    for (const std::string field : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                    "successThreshold", "failureThreshold"}) {
      const auto number = integer_at(probe, {field}).value_or(0);
      if (number < 0) invalid(at + "." + field, number, "must be greater than or equal to 0");
    }
    const auto successes = integer_at(probe, {"successThreshold"}).value_or(1);
    if (once && successes != 1) invalid(at + ".successThreshold", successes, "must be 1");
  }

  /// Checks what a probe or a hook does.
  void check_handler(const json::value& of, const std::string& at) {
    std::size_t handlers = 0;
    for (const std::string name : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
      const auto* const action = find(of, {name});
      if (action == nullptr) continue;
      if (++handlers == 1) {
        check_action(name, *action, at + "." + name);
      } else {
        found_.push_back({at + "." + name, "FieldValueForbidden",
                          "Forbidden: may not specify more than 1 handler type"});
      }
    }
    if (handlers != 0) return;
    found_.push_back({at, "FieldValueRequired", "Required value: must specify a handler type"});
  }

  void check_action(std::string_view name, const json::value& action, const std::string& at) {
    if (name == "exec" && array_at(action, {"command"}).empty()) require(found_, at + ".command");
    if (name != "httpGet" && name != "tcpSocket") return;
    static const json::value zero(0);
    const auto* const port = find(action, {"port"});
    check_port_value(port == nullptr ? zero : *port, at + ".port", found_);
    const auto scheme = find_string(action, {"scheme"});
    if (!scheme.empty()) supported(scheme, {"HTTP", "HTTPS"}, at + ".scheme");
    for (const auto& header : array_at(action, {"httpHeaders"})) {
      const std::string field(find_string(header, {"name"}));
      if (!field.empty() && field.find_first_not_of(header_characters) == field.npos) continue;
      invalid(at + ".httpHeaders", json::string(field),
              "a valid HTTP header must consist of alphanumeric characters or '-'");
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

}  // namespace rw::k8s::devserver
