#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(builtin)

using namespace rw;
using namespace rw::conformance;

// What a controller-runtime operator does with built-in kinds: protobuf, Services, wrong values.

namespace {

constexpr auto protobuf = "application/vnd.kubernetes.protobuf";

}  // namespace

BOOST_FIXTURE_TEST_CASE(object_that_was_read_in_protobuf_can_be_written_back, sandbox) {
  create(deployments, deployment("a"));
  create(leases, object(leases, "l", {{"spec", {{"holderIdentity", "x"}}}}));
  for (const auto& at : {path(deployments, "a"), path(leases, "l")}) {
    const auto read = server.http("GET", at, {}, {{"accept", protobuf}});
    BOOST_TEST(read.status == 200u);
    BOOST_TEST(read.headers.get("content-type") == protobuf);
    BOOST_TEST(read.body.starts_with("k8s"));
    const auto written =
        server.http("PUT", at, read.body, {{"accept", protobuf}, {"content-type", protobuf}});
    BOOST_TEST(written.status == 200u, at << ": " << written.body);
    BOOST_TEST(written.headers.get("content-type") == protobuf);
  }
}

BOOST_FIXTURE_TEST_CASE(values_of_another_type_are_a_bad_request, sandbox) {
  refuse(api.create(deployments, here(with(deployment("a"), "/spec/replicas", "three"))),
         {400, "BadRequest", "Deployment in version \"v1\" cannot be handled as a Deployment"});
}

BOOST_FIXTURE_TEST_CASE(values_that_no_object_may_have_are_invalid, sandbox) {
  const auto far = parse(R"({"spec": {"ports": [{"port": 70000}]}})");
  refuse(api.create(services, here(object(services, "a", far))),
         {422, "Invalid", "spec.ports[0].port"});
  refuse(api.create(deployments, here(with(deployment("a"), "/spec/template/spec/containers",
                                           boost::json::array()))),
         {422, "Invalid", "spec.template.spec.containers: Required value"});
  refuse(api.create(deployments, here(with(deployment("a"), "/spec/replicas", -1))),
         {422, "Invalid", "spec.replicas"});
}

BOOST_FIXTURE_TEST_CASE(quantities_are_written_in_their_canonical_form, sandbox) {
  auto wanted = with(deployment("a"), "/spec/template/spec/containers/0/resources",
                     {{"requests", {{"cpu", "0.5"}, {"memory", "1024Mi"}}}});
  const auto made = create(deployments, wanted);
  const auto& requests = made.at_pointer("/spec/template/spec/containers/0/resources/requests");
  BOOST_TEST(requests == parse(R"({"cpu": "500m", "memory": "1Gi"})"));
}

// apimachinery, runtime/converter.go: strategic merge patches are converted, modulo the type's
// range.
BOOST_FIXTURE_TEST_CASE(numbers_of_a_patch_are_converted_beside_unknown_fields, sandbox) {
  create(leases, object(leases, "l", {{"spec", {{"holderIdentity", "x"}}}}));
  refuse(api.patch(leases, key("l"), k8s::patch_type::strategic_merge,
                   parse(R"({"spec": {"leaseDurationSeconds": 1099511627776,
                                      "unknownField": {"a": "b"}}})")),
         {422, "Invalid", "spec.leaseDurationSeconds: Invalid value: 0"});
}

BOOST_FIXTURE_TEST_CASE(values_outside_a_closed_set_are_invalid, sandbox) {
  const auto rejects = [this](const std::string& group, const std::string& kind,
                              const std::string& plural, std::string_view rest,
                              std::string_view why) {
    const k8s::resource_type type{{group, "v1", kind}, plural, true};
    refuse(api.create(type, here(object(type, "a", parse(rest)))), {422, "Invalid", why});
  };
  const auto service = [&](std::string_view spec, std::string_view why) {
    rejects("", "Service", "services", R"({"spec": )" + std::string(spec) + "}", why);
  };
  service(R"({"ports": [{"port": 1, "protocol": "tcp"}]})",
          "spec.ports[0].protocol: Unsupported value: \"tcp\"");
  service(R"({"ports": [{"port": 1}], "sessionAffinity": "x"})",
          "spec.sessionAffinity: Unsupported value: \"x\"");
  service(R"({"ports": [{"port": 1}], "type": "NodePort", "externalTrafficPolicy": "x"})",
          "spec.externalTrafficPolicy: ");
  const auto workload = [&](const std::string& kind, const std::string& plural,
                            const std::string& fields, std::string_view why) {
    const std::string rest =
        R"("selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
           "spec": {"containers": [{"name": "c", "image": "i"}]}}, )";
    rejects("apps", kind, plural, R"({"spec": {)" + rest + fields + "}}", why);
  };
  workload("Deployment", "deployments", R"("strategy": {"type": "x"})",
           "spec.strategy: Unsupported value");
  workload("DaemonSet", "daemonsets", R"("updateStrategy": {"type": "x"})",
           "spec.updateStrategy: Unsupported value");
  workload("StatefulSet", "statefulsets", R"("updateStrategy": {"type": "x"})",
           "spec.updateStrategy: Invalid value");
  workload("StatefulSet", "statefulsets", R"("podManagementPolicy": "x")",
           "spec.podManagementPolicy: Invalid value: \"x\"");
}

BOOST_FIXTURE_TEST_CASE(binding_to_what_rbac_does_not_know_is_invalid, sandbox) {
  const k8s::resource_type bindings{
      {"rbac.authorization.k8s.io", "v1", "RoleBinding"}, "rolebindings", true};
  const auto rejects = [&](const std::string& role, const std::string& subject,
                           std::string_view why) {
    const auto fields = R"({"roleRef": {"kind": "Role", "name": "r")" + role +
                        R"(}, "subjects": [{)" + subject + "}]}";
    refuse(api.create(bindings, here(object(bindings, "a", parse(fields)))), {422, "Invalid", why});
  };
  rejects(R"(, "apiGroup": "x")", R"("name": "s", "kind": "User")",
          "roleRef.apiGroup: Unsupported value");
  rejects("", R"("name": "s", "kind": "User", "apiGroup": "x")",
          "subjects[0].apiGroup: Unsupported value");
  rejects("", R"("name": "s", "kind": "ServiceAccount", "apiGroup": "x")",
          "subjects[0].apiGroup: Unsupported value");
  rejects("", R"("name": "s", "kind": "Robot")", "subjects[0].kind: Unsupported value");
  rejects("", R"("kind": "ServiceAccount", "name": "Not a name")",
          "subjects[0].name: Invalid value");
}

BOOST_FIXTURE_TEST_CASE(variable_from_no_source_is_invalid, sandbox) {
  const auto variables = parse(R"([{"name": "A", "valueFrom": {}}])");
  refuse(api.create(deployments,
                    here(with(deployment("a"), "/spec/template/spec/containers/0/env", variables))),
         {422, "Invalid", "spec.template.spec.containers[0].env[0].valueFrom: Invalid value"});
}

BOOST_FIXTURE_TEST_CASE(name_of_two_ports_of_a_container_is_invalid, sandbox) {
  const auto ports =
      parse(R"([{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}])");
  refuse(
      api.create(deployments,
                 here(with(deployment("a"), "/spec/template/spec/containers/0/ports", ports))),
      {422, "Invalid", "spec.template.spec.containers[0].ports[1].name: Duplicate value: \"a\""});
}

BOOST_FIXTURE_TEST_CASE(port_whose_name_is_no_service_name_is_invalid, sandbox) {
  const auto rejects = [this](const k8s::resource_type& type, std::string_view field,
                              std::string_view spec) {
    for (const auto& [name, why] :
         {std::pair("1", "must contain at least one letter"),
          std::pair("UPPER",
                    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
          std::pair("a--b", "must not contain consecutive hyphens"),
          std::pair("-a", "must not begin or end with a hyphen"),
          std::pair("sixteen-letters-", "must be no more than 15 characters")}) {
      auto text = R"({"spec": )" + std::string(spec) + "}";
      text.replace(text.find("NAME"), 4, name);
      refuse(api.create(type, here(object(type, "a", parse(text)))),
             {422, "Invalid",
              std::string(field) + ": Invalid value: \"" + name + "\": " + std::string(why)});
    }
  };
  const auto container = [](std::string_view with) {
    return R"({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", )" +
           std::string(with) + "}]}";
  };
  const std::string ports = R"("ports": [{"containerPort": 1, "name": "NAME"}])";
  const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
  rejects(pods, "spec.containers[0].ports[0].name", container(ports));
  rejects(pods, "spec.initContainers[0].ports[0].name",
          R"({"containers": [{"name": "c", "image": "i"}],
              "initContainers": [{"name": "d", "image": "i", )" +
              ports + "}]}");
  for (const auto* const probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    rejects(pods, "spec.containers[0]." + std::string(probe) + ".tcpSocket.port",
            container("\"" + std::string(probe) + R"(": {"tcpSocket": {"port": "NAME"}})"));
  }
  for (const auto* const hook : {"postStart", "preStop"}) {
    rejects(pods, "spec.containers[0].lifecycle." + std::string(hook) + ".httpGet.port",
            container(R"("lifecycle": {")" + std::string(hook) +
                      R"(": {"httpGet": {"path": "/", "port": "NAME"}}})"));
  }
  for (const auto& [group, kind, plural] :
       {std::tuple("apps", "Deployment", "deployments"),
        std::tuple("apps", "ReplicaSet", "replicasets"),
        std::tuple("apps", "DaemonSet", "daemonsets"), std::tuple("batch", "Job", "jobs")}) {
    rejects({{group, "v1", kind}, plural, true}, "spec.template.spec.containers[0].ports[0].name",
            R"({"template": {"spec": )" + container(ports) + "}}");
  }
  rejects(services, "spec.ports[0].targetPort",
          R"({"ports": [{"port": 1, "targetPort": "NAME"}]})");
  rejects({{"networking.k8s.io", "v1", "NetworkPolicy"}, "networkpolicies", true},
          "spec.ingress[0].ports[0].port",
          R"({"podSelector": {}, "ingress": [{"ports": [{"port": "NAME"}]}]})");
  rejects({{"networking.k8s.io", "v1", "Ingress"}, "ingresses", true},
          "spec.defaultBackend.service.port.name",
          R"({"defaultBackend": {"service": {"name": "s", "port": {"name": "NAME"}}}})");
}

BOOST_FIXTURE_TEST_CASE(probe_or_hook_that_does_nothing_sensible_is_invalid, sandbox) {
  const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
  const auto rejects = [&](const std::string& spec, std::string_view says) {
    refuse(api.create(pods, here(object(pods, "a", parse(R"({"spec": )" + spec + "}")))),
           {422, "Invalid", says});
  };
  const auto container = [](const std::string& with) {
    return R"({"containers": [{"name": "c", "image": "i", )" + with + "}]}";
  };
  for (const std::string at :
       {"livenessProbe", "readinessProbe", "startupProbe", "postStart", "preStop"}) {
    const bool hook = at.starts_with("p");
    const std::string path = "spec.containers[0]." + (hook ? "lifecycle." + at : at);
    for (const auto& [does, says] :
         {std::pair(R"({})", ": Required value: must specify a handler type"),
          std::pair(R"({"exec": {}})", ".exec.command: Required value"),
          std::pair(R"({"httpGet": {"path": "/", "port": 1, "scheme": "FTP"}})",
                    ".httpGet.scheme: Unsupported value: \"FTP\""),
          std::pair(R"({"httpGet": {"path": "/", "port": 1, "httpHeaders": [{"name": "a b"}]}})",
                    ".httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must"),
          std::pair(R"({"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}})",
                    ".tcpSocket: Forbidden: may not specify more than 1 handler type")}) {
      const auto field = "\"" + at + "\": " + does;
      rejects(container(hook ? R"("lifecycle": {)" + field + "}" : field), path + says);
    }
    const auto twice = R"(": {"exec": {"command": ["a"]}, "successThreshold": 2})";
    if (!hook && at != "readinessProbe") {
      rejects(container("\"" + at + twice),
              path + ".successThreshold: Invalid value: 2: must be 1");
    }
    for (const std::string number : {"initialDelaySeconds", "timeoutSeconds", "periodSeconds",
                                     "successThreshold", "failureThreshold"}) {
      if (hook) continue;
      rejects(container("\"" + at + R"(": {"exec": {"command": ["a"]}, ")" + number + R"(": -1})"),
              path + "." + number + ": Invalid value: -1: must be greater than or equal to 0");
    }
    rejects(R"({"containers": [{"name": "c", "image": "i"}],
                "initContainers": [{"name": "d", "image": "i", ")" +
                (hook ? R"(lifecycle": {")" : std::string()) + at +
                R"(": {"exec": {"command": ["a"]}})" + (hook ? "}" : "") + "}]}",
            "spec.initContainers[0]." + (hook ? "lifecycle" : at) + ": ");
  }
}

BOOST_FIXTURE_TEST_CASE(deadline_of_a_pod_is_positive, sandbox) {
  const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
  for (const std::string seconds : {"-1", "0", "2147483648"}) {
    const auto spec = R"({"spec": {"containers": [{"name": "c", "image": "i"}],
                          "activeDeadlineSeconds": )" +
                      seconds + "}}";
    refuse(api.create(pods, here(object(pods, "a", parse(spec)))),
           {422, "Invalid",
            "spec.activeDeadlineSeconds: Invalid value: " + seconds +
                ": must be between 1 and 2147483647, inclusive"});
  }
}

BOOST_FIXTURE_TEST_CASE(host_name_of_a_pod_is_a_label, sandbox) {
  const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
  for (const std::string field : {"hostname", "subdomain"}) {
    for (const std::string name : {"UPPER", "a.b"}) {
      const auto spec = R"({"spec": {"containers": [{"name": "c", "image": "i"}], ")" + field +
                        "\": \"" + name + "\"}}";
      refuse(api.create(pods, here(object(pods, "a", parse(spec)))),
             {422, "Invalid", "spec." + field + ": Invalid value: \"" + name + "\""});
    }
  }
}

BOOST_FIXTURE_TEST_CASE(identity_that_no_process_has_is_invalid, sandbox) {
  const auto rejects = [this](std::string_view at, const json& value, std::string_view says) {
    const auto made = with(deployment("a"), "/spec/template/spec" + std::string(at), value);
    refuse(api.create(deployments, here(made)), {422, "Invalid", says});
  };
  for (const auto* const at : {"", "/containers/0"}) {
    const std::string context = std::string(at) + "/securityContext";
    const std::string path = std::string("spec.template.spec") +
                             (*at == 0 ? "" : ".containers[0]") + ".securityContext.";
    for (const std::string field : {"runAsUser", "runAsGroup"}) {
      for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{2'147'483'648}}) {
        rejects(context, {{field, id}},
                path + field + ": Invalid value: " + std::to_string(id) +
                    ": must be between 0 and 2147483647, inclusive");
      }
    }
    rejects(context, {{"seccompProfile", {{"type", "x"}}}},
            path + "seccompProfile.type: Unsupported value: \"x\"");
  }
  const std::string path = "spec.template.spec.securityContext.";
  rejects("/securityContext", {{"fsGroup", -1}}, path + "fsGroup: Invalid value: -1");
  rejects("/securityContext", {{"supplementalGroups", {0, -1}}},
          path + "supplementalGroups[1]: Invalid value: -1");
  rejects("/securityContext", {{"fsGroupChangePolicy", "x"}},
          path + "fsGroupChangePolicy: Unsupported value: \"x\"");
}

BOOST_FIXTURE_TEST_CASE(backend_that_is_no_resource_is_invalid, sandbox) {
  const k8s::resource_type ingresses{{"networking.k8s.io", "v1", "Ingress"}, "ingresses", true};
  for (const auto& [field, value] :
       {std::pair("apiGroup", "A"), std::pair("kind", "a/b"), std::pair("name", "a/b")}) {
    auto resource = parse(R"({"apiGroup": "a", "kind": "b", "name": "c"})");
    resource.as_object()[field] = value;
    refuse(
        api.create(ingresses,
                   here(object(ingresses, "a",
                               {{"spec", {{"defaultBackend", {{"resource", resource}}}}}}))),
        {422, "Invalid", "spec.defaultBackend.resource." + std::string(field) + ": Invalid value"});
  }
}

BOOST_FIXTURE_TEST_CASE(service_account_that_is_removed_is_that_of_the_older_field, sandbox) {
  create(deployments, with(deployment("a"), "/spec/template/spec/serviceAccountName", "sa"));
  const auto changed = ok(
      api.patch(deployments, key("a"), k8s::patch_type::json,
                parse(R"([{"op": "remove", "path": "/spec/template/spec/serviceAccountName"}])")));
  BOOST_TEST(text(changed, "/spec/template/spec/serviceAccountName") == "sa");
  BOOST_TEST(text(changed, "/metadata/generation") == "1");
}

BOOST_FIXTURE_TEST_CASE(null_as_a_label_is_an_empty_text, sandbox) {
  create(gadgets(), with(gadget("a"), "/metadata/labels", parse(R"({"l": "1"})")));
  const auto changed =
      ok(api.patch(gadgets(), key("a"), k8s::patch_type::json,
                   parse(R"([{"op": "replace", "path": "/metadata/labels/l", "value": null}])")));
  BOOST_TEST(changed.at_pointer("/metadata/labels") == parse(R"({"l": ""})"));
}

BOOST_FIXTURE_TEST_CASE(null_among_quantities_is_zero, sandbox) {
  auto wanted = with(deployment("a"), "/spec/template/spec/containers/0/resources",
                     parse(R"({"limits": {"cpu": null, "memory": "1Gi"}})"));
  const auto made = create(deployments, wanted);
  BOOST_TEST(made.at_pointer("/spec/template/spec/containers/0/resources/limits") ==
             parse(R"({"cpu": "0", "memory": "1Gi"})"));
}

// An empty list counts for this kind, but not in a field that is dropped.
BOOST_FIXTURE_TEST_CASE(unknown_field_of_a_network_policy_is_no_new_generation, sandbox) {
  const k8s::resource_type policies{
      {"networking.k8s.io", "v1", "NetworkPolicy"}, "networkpolicies", true};
  create(policies, object(policies, "a", parse(R"({"spec": {"podSelector": {}}})")));
  const auto change = [&](std::string_view fields) {
    const auto answer = ok(api.patch(policies, key("a"), k8s::patch_type::strategic_merge,
                                     parse(R"({"spec": )" + std::string(fields) + "}")));
    return text(answer, "/metadata/generation");
  };
  BOOST_TEST(change(R"({"unknown": []})") == "1");
  BOOST_TEST(change(R"({"podSelector": {"unknown": [{"x": []}]}})") == "1");
  BOOST_TEST(change(R"({"ingress": []})") == "2");
  BOOST_TEST(change(R"({"podSelector": {"matchLabels": {}}})") == "3");
}

BOOST_FIXTURE_TEST_CASE(claim_of_no_storage_is_invalid, sandbox) {
  const k8s::resource_type claims{
      {"", "v1", "PersistentVolumeClaim"}, "persistentvolumeclaims", true};
  for (const std::string_view size : {R"("0")", R"("-1")", "null"}) {
    const auto spec =
        R"({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": )" +
        std::string(size) + "}}}}";
    refuse(api.create(claims, here(object(claims, "a", parse(spec)))),
           {422, "Invalid", "spec.resources[storage]: Invalid value: "});
  }
}

BOOST_FIXTURE_TEST_CASE(volume_without_what_its_source_needs_is_invalid, sandbox) {
  const auto rejects = [this](std::string_view source, std::string_view why) {
    const auto volumes = R"([{"name": "v", )" + std::string(source) + "}]";
    refuse(api.create(deployments,
                      here(with(deployment("a"), "/spec/template/spec/volumes", parse(volumes)))),
           {422, "Invalid", "spec.template.spec.volumes[0]." + std::string(why)});
  };
  rejects(R"("emptyDir": {}, "secret": {"secretName": "s"})",
          "secret: Forbidden: may not specify more than 1 volume type");
  rejects(R"("hostPath": {})", "hostPath.path: Required value");
  rejects(R"("hostPath": {"path": "/a/../b"})", "hostPath.path: Invalid value: \"/a/../b\"");
  rejects(R"("hostPath": {"path": "/a", "type": "x"})", "hostPath.type: Unsupported value: \"x\"");
  rejects(R"("persistentVolumeClaim": {})", "persistentVolumeClaim.claimName: Required value");
  rejects(R"("secret": {})", "secret.secretName: Required value");
  rejects(R"("configMap": {})", "configMap.name: Required value");
}

// The template's generation is a field of the object for kube-apiserver: 0 where it is left out.
BOOST_FIXTURE_TEST_CASE(daemon_set_that_is_replaced_without_its_annotation_has_it_owned, sandbox) {
  const k8s::resource_type daemon_sets{{"apps", "v1", "DaemonSet"}, "daemonsets", true};
  const auto set = object(daemon_sets, "a", parse(R"({"spec": {
      "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
      "spec": {"containers": [{"name": "c", "image": "i"}]}}}})"));
  const auto at = "/fieldsV1/f:metadata/f:annotations/f:deprecated.daemonset.template.generation";
  const auto value = "/metadata/annotations/deprecated.daemonset.template.generation";
  const auto applied = apply(daemon_sets, set, {.field_manager = "one"});
  BOOST_TEST(text(applied, value) == "1");
  BOOST_TEST(!has(*managed_by(applied, "one", "Apply"), at));
  const auto replaced = update(daemon_sets, set, {.field_manager = "two"});
  BOOST_TEST(text(replaced, value) == "1");
  BOOST_REQUIRE(managed_by(replaced, "two", "Update") != nullptr);
  BOOST_TEST(has(*managed_by(replaced, "two", "Update"), at));
}

BOOST_FIXTURE_TEST_CASE(rules_that_a_role_leaves_out_have_no_owner_and_empty_ones_have, sandbox) {
  const k8s::resource_type roles{{"rbac.authorization.k8s.io", "v1", "Role"}, "roles", true};
  const auto made =
      create(roles, object(roles, "a", parse(R"({"metadata": {"labels": {"a": "b"}}})")),
             {.field_manager = "one"});
  BOOST_TEST(made.at("rules").is_null());
  BOOST_TEST(!has(*managed_by(made, "one", "Update"), "/fieldsV1/f:rules"));
  const auto empty =
      create(roles, object(roles, "b", parse(R"({"rules": []})")), {.field_manager = "one"});
  BOOST_TEST(empty.at("rules").is_null());
  BOOST_TEST(has(*managed_by(empty, "one", "Update"), "/fieldsV1/f:rules"));
}

// Until it is stored, a list that is empty differs from one that is left out.
BOOST_FIXTURE_TEST_CASE(sending_an_empty_list_in_what_is_owned_as_a_whole_is_a_change, sandbox) {
  const k8s::resource_type policies{
      {"networking.k8s.io", "v1", "NetworkPolicy"}, "networkpolicies", true};
  const k8s::resource_type roles{{"rbac.authorization.k8s.io", "v1", "Role"}, "roles", true};
  const auto takes_over = [this](const k8s::resource_type& type, std::string_view name,
                                 std::string_view had, std::string_view sends, const char* at) {
    apply(type, object(type, name, parse(had)), {.field_manager = "one"});
    const auto next = ok(
        api.patch(type, key(name), k8s::patch_type::merge, parse(sends), {.field_manager = "two"}));
    const auto* const two = managed_by(next, "two", "Update");
    const auto* const one = managed_by(next, "one", "Apply");
    BOOST_TEST((one != nullptr && has(*one, at)) == (two == nullptr));
    return two != nullptr && has(*two, at);
  };
  const auto* const ingress = "/fieldsV1/f:spec/f:ingress";
  const auto policy = [&](std::string_view name, const std::string& had, const std::string& sends) {
    return takes_over(policies, name, R"({"spec": {"podSelector": {}, "ingress": [)" + had + "]}}",
                      R"({"spec": {"ingress": [)" + sends + "]}}", ingress);
  };
  BOOST_TEST(!policy("a", "{}", "{}"));
  BOOST_TEST(policy("b", "{}", R"({"ports": []})"));
  BOOST_TEST(policy("c", R"({"from": [{"podSelector": {}}]})",
                    R"({"from": [{"podSelector": {"matchLabels": {}}}]})"));
  const std::string rule = R"("verbs": ["get"], "apiGroups": [""], "resources": ["pods"])";
  BOOST_TEST(takes_over(roles, "a", R"({"rules": [{)" + rule + "}]}",
                        R"({"rules": [{)" + rule + R"(, "resourceNames": []}]})",
                        "/fieldsV1/f:rules"));
}

BOOST_AUTO_TEST_SUITE_END()
