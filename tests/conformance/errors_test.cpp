#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(errors)

using namespace rw;
using namespace rw::conformance;

BOOST_FIXTURE_TEST_CASE(failure_is_a_status, sandbox) {
  const auto answer = server.http("GET", path(config_maps, "none"));
  BOOST_TEST(answer.status == 404u);
  BOOST_TEST(answer.headers.get("content-type") == "application/json");
  BOOST_TEST(parse(answer.body) == parse(R"({
    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
    "message": "configmaps \"none\" not found", "reason": "NotFound",
    "details": {"name": "none", "kind": "configmaps"}, "code": 404})"));
}

BOOST_FIXTURE_TEST_CASE(failure_about_a_group_names_it, sandbox) {
  const auto answer = server.http("GET", path(gadgets(), "none"));
  const auto why = parse(answer.body);
  BOOST_TEST(text(why, "/message") == "gadgets." + gadgets().gvk.group + " \"none\" not found");
  BOOST_TEST(text(why, "/details/group") == gadgets().gvk.group);
}

BOOST_FIXTURE_TEST_CASE(invalid_object_has_one_cause_for_each_field, sandbox) {
  const auto answer = server.http("POST", path(config_maps), serialize(config_map("Upper")));
  BOOST_TEST(answer.status == 422u);
  const auto why = parse(answer.body);
  BOOST_TEST(text(why, "/details/name") == "Upper");
  BOOST_TEST(text(why, "/details/kind") == "ConfigMap");
  BOOST_TEST(text(why, "/details/causes/0/reason") == "FieldValueInvalid");
  BOOST_TEST(text(why, "/details/causes/0/field") == "metadata.name");
  BOOST_TEST(text(why, "/message")
                 .starts_with("ConfigMap \"Upper\" is invalid: metadata.name: "
                              "Invalid value: \"Upper\": "));
}

BOOST_FIXTURE_TEST_CASE(body_that_is_no_json_is_rejected, sandbox) {
  for (const auto* body : {"{not json", "[]", "5"}) {
    refuse(api.raw("POST", path(config_maps), "application/json", body), {400, "BadRequest"});
  }
  BOOST_TEST(server.http("POST", path(config_maps)).status == 400u);
}

BOOST_FIXTURE_TEST_CASE(body_of_an_unknown_type_is_rejected, sandbox) {
  refuse(api.raw("POST", path(config_maps), "text/plain", serialize(config_map("a"))),
         {415, "UnsupportedMediaType", "the body of the request was in an unknown format"});
}

BOOST_FIXTURE_TEST_CASE(response_of_an_unknown_type_is_rejected, sandbox) {
  const auto answer = server.http("GET", path(config_maps), {}, {{"accept", "text/plain"}});
  BOOST_TEST(answer.status == 406u);
  BOOST_TEST(text(parse(answer.body), "/reason") == "NotAcceptable");
}

BOOST_FIXTURE_TEST_CASE(response_may_be_of_any_type_that_is_named, sandbox) {
  for (const auto* accept : {"*/*", "application/json", "text/plain, application/json;q=0.5"}) {
    const auto answer = server.http("GET", path(config_maps), {}, {{"accept", accept}});
    BOOST_TEST(answer.status == 200u);
    BOOST_TEST(answer.headers.get("content-type") == "application/json");
  }
}

BOOST_FIXTURE_TEST_CASE(resource_that_is_not_served_is_not_found, sandbox) {
  refuse(api.raw("GET", "/api/v1/nonsense", "", ""),
         {404, "NotFound", "the server could not find the requested resource"});
  refuse(api.raw("GET", "/api/v1/namespaces/" + ns + "/nonsense/a", "", ""), {404, "NotFound"});
}

BOOST_FIXTURE_TEST_CASE(group_that_is_not_served_is_not_found, sandbox) {
  BOOST_TEST(server.http("GET", "/apis/none.example.com/v1").status == 404u);
  BOOST_TEST(server.http("GET", "/apis/none.example.com/v1/things").status == 404u);
}

BOOST_FIXTURE_TEST_CASE(subresource_that_is_not_served_is_not_found, sandbox) {
  create(config_maps, config_map("a"));
  refuse(api.raw("GET", path(config_maps, "a", "nonsense"), "", ""), {404, "NotFound"});
}

BOOST_FIXTURE_TEST_CASE(method_that_is_not_served_is_not_allowed, sandbox) {
  create(config_maps, config_map("a"));
  refuse(
      api.raw("PUT", path(config_maps), "application/json", serialize(config_map("a"))),
      {405, "MethodNotAllowed", "the server does not allow this method on the requested resource"});
  refuse(api.raw("POST", path(config_maps, "a"), "application/json", serialize(config_map("a"))),
         {405, "MethodNotAllowed"});
}

BOOST_FIXTURE_TEST_CASE(body_has_three_mebibytes_at_most, sandbox) {
  const auto answer = server.http("POST", path(config_maps),
                                  serialize(config_map("a", {{"k", std::string(3u << 20, 'x')}})));
  BOOST_TEST(answer.status == 413u);
  BOOST_TEST(text(parse(answer.body), "/reason") == "RequestEntityTooLarge");
}

BOOST_FIXTURE_TEST_CASE(object_that_is_too_large_is_rejected, sandbox) {
  // Etcd takes requests of 1.5 MiB; a gadget has no bound of its own.
  const auto why =
      failed(api.create(gadgets(), here(gadget("a", {{"color", std::string(1'700'000, 'x')}}))));
  BOOST_TEST(why.message.find("request is too large") != std::string::npos);
  BOOST_TEST(!there(gadgets(), "a"));
}

BOOST_FIXTURE_TEST_CASE(config_map_has_one_mebibyte_at_most, sandbox) {
  refuse(api.create(config_maps, here(config_map("a", {{"k", std::string(1'100'000, 'x')}}))),
         {422, "Invalid", "Too long: must have at most 1048576 bytes"});
}

BOOST_FIXTURE_TEST_CASE(text_of_any_language_comes_back_as_it_was, sandbox) {
  const std::string many =
      "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x9A\x80 \" \\ / \b\f\n\r\t <&> \xE2\x80\xA8";
  const auto made = create(config_maps, config_map("a", {{"k", many}}));
  BOOST_TEST(text(made, "/data/k") == many);
  BOOST_TEST(text(get(config_maps, "a"), "/data/k") == many);
}

BOOST_FIXTURE_TEST_CASE(numbers_of_a_custom_resource_come_back_as_they_were, sandbox) {
  const auto any = define(
      definition(server.unique("n") + ".example.com", "Number", "numbers",
                 parse(R"({"type": "object", "x-kubernetes-preserve-unknown-fields": true})")));
  const auto spec = parse(R"({"small": -9223372036854775808, "large": 9223372036854775807,
                              "half": 0.5, "none": null, "yes": true, "empty": {}, "list": []})");
  BOOST_TEST(create(any, object(any, "a", {{"spec", spec}})).at("spec") == spec);
}

namespace {

struct invalid_object {
  k8s::resource_type type;
  std::string_view content;
  std::string_view field;  ///< of the first cause
};

k8s::resource_type networking(const std::string& kind, const std::string& plural) {
  return {{"networking.k8s.io", "v1", kind}, plural, true};
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(invalid_value_of_a_built_in_kind_is_rejected, sandbox) {
  const auto ingresses = networking("Ingress", "ingresses");
  const auto policies = networking("NetworkPolicy", "networkpolicies");
  const k8s::resource_type pods{{"", "v1", "Pod"}, "pods", true};
  const k8s::resource_type claims{
      {"", "v1", "PersistentVolumeClaim"}, "persistentvolumeclaims", true};
  const k8s::resource_type bindings{
      {"rbac.authorization.k8s.io", "v1", "RoleBinding"}, "rolebindings", true};
  const invalid_object all[] = {
      {ingresses, R"({"spec": {}})", "spec"},
      {ingresses, R"({"spec": {"defaultBackend": {"service": {"name": "s"}}}})",
       "spec.defaultBackend"},
      {ingresses,
       R"({"spec": {"defaultBackend": {"service": {"name": "1", "port": {"number": 80}}}}})",
       "spec.defaultBackend.service.name"},
      {ingresses,
       R"({"spec": {"rules": [{"http": {"paths": [{"pathType": "Prefix", "path": "/",
           "backend": {"service": {"name": "1", "port": {"number": 80}}}}]}}]}})",
       "spec.rules[0].http.paths[0].backend.service.name"},
      {ingresses,
       R"({"spec": {"rules": [{"http": {"paths": [{"pathType": "Prefix", "path": "a",
           "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}})",
       "spec.rules[0].http.paths[0].path"},
      {policies, R"({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 65536}]}]}})",
       "spec.ingress[0].ports[0].port"},
      {pods,
       R"({"spec": {"containers": [{"name": "c", "image": "i"}],
           "tolerations": [{"key": "k", "operator": "text"}]}})",
       "spec.tolerations[0].operator"},
      {pods,
       R"({"spec": {"containers": [{"name": "c", "image": "i",
           "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "text"}}}]}]}})",
       "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
      {pods,
       R"({"spec": {"containers": [{"name": "c", "image": "i",
           "livenessProbe": {"httpGet": {"port": 0}}}]}})",
       "spec.containers[0].livenessProbe.httpGet.port"},
      {claims, R"({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {}}})",
       "spec.resources[storage]"},
      {claims,
       R"({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "UPPER",
           "resources": {"requests": {"storage": "1Gi"}}}})",
       "spec.storageClassName"},
      {claims,
       R"({"spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "text",
           "resources": {"requests": {"storage": "1Gi"}}}})",
       "spec.volumeMode"},
      {bindings,
       R"({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "text", "name": "r"}})",
       "roleRef.kind"},
      {services, R"({"spec": {"type": "ExternalName", "externalName": "UPPER"}})",
       "spec.externalName"},
  };
  for (const auto& invalid : all) {
    const auto answer =
        server.http("POST", path(invalid.type),
                    boost::json::serialize(
                        object(invalid.type, "invalid", parse(std::string(invalid.content)))));
    BOOST_TEST_CONTEXT(invalid.field << ": " << answer.body) {
      BOOST_TEST(answer.status == 422u);
      BOOST_TEST(text(parse(answer.body), "/details/causes/0/field") == invalid.field);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
