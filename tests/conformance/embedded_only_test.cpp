// What Kubernetes has learned since 1.20, so that the suite's real server cannot say it, and what
// takes a controller manager, which a kube-apiserver alone has not. The source of each fact stands
// beside it.

#include "watching.hpp"
#include "webhook.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(embedded_only)

using namespace rw;
using namespace rw::conformance;

namespace {

json owned_by(json object, const json& owner, bool blocks = false) {
  return with(std::move(object), "/metadata/ownerReferences",
              boost::json::array{{{"apiVersion", owner.at("apiVersion")},
                                  {"kind", owner.at("kind")},
                                  {"name", owner.at_pointer("/metadata/name")},
                                  {"uid", owner.at_pointer("/metadata/uid")},
                                  {"blockOwnerDeletion", blocks}}});
}

json field_definition(sandbox& in) {
  return definition(in.server.unique("u") + ".example.com", "Field", "fields",
                    parse(R"({"type": "object", "properties": {"spec": {"type": "object"}}})"));
}

json service(std::string_view name, int port) {
  return object(services, name,
                {{"spec",
                  {{"selector", {{"app", "a"}}},
                   {"ports", boost::json::array{{{"name", "http"}, {"port", port}}}}}}});
}

/// Creates an object of a cluster and deletes it; the warning of the creation.
std::string warning_of_creating(sandbox& in, const k8s::resource_type& type, const json& object) {
  const auto answer = in.server.http("POST", in.path(type), serialize(object));
  BOOST_TEST(answer.status == 201u);
  in.ok(in.api.remove(type, {"", text(object, "/metadata/name")}));
  return std::string(answer.headers.get("warning"));
}

std::string strict(const std::string& path) {
  return path + "?fieldManager=x&fieldValidation=Strict";
}

}  // namespace

// Kubernetes documentation, "Well-Known Labels": kubernetes.io/metadata.name, since 1.21.
BOOST_FIXTURE_TEST_CASE(namespace_is_labelled_with_its_name, sandbox) {
  BOOST_TEST(text(get(namespaces, ns), "/metadata/labels/kubernetes.io~1metadata.name") == ns);
}

// Kubernetes documentation, "API Concepts", "Streaming lists": since 1.32 by default.
BOOST_FIXTURE_TEST_CASE(watch_may_begin_with_a_list_that_a_bookmark_ends, sandbox) {
  create(config_maps, config_map("a"));
  const auto last = create(config_maps, config_map("b"));
  watching seen(*this, config_maps, all(), {.bookmarks = true, .send_initial_events = true});
  seen.expect("ADDED", "a");
  seen.expect("ADDED", "b");
  const auto mark = seen.next();
  BOOST_TEST(mark.type == "BOOKMARK");
  BOOST_TEST(text(mark.object, "/metadata/annotations/k8s.io~1initial-events-end") == "true");
  BOOST_TEST(version(mark.object) >= version(last));
  create(config_maps, config_map("c"));
  seen.expect("ADDED", "c");
}

// The same: sendInitialEvents needs resourceVersionMatch=NotOlderThan.
BOOST_FIXTURE_TEST_CASE(streamed_list_says_how_old_it_may_be, sandbox) {
  refuse(api.raw("GET", path(config_maps) + "?watch=true&sendInitialEvents=true", "", ""),
         {422, "Invalid", "sendInitialEvents"});
}

// kubernetes PR 103532: an address that is left out is carried over, since 1.20.11, 1.21.5, 1.22.
BOOST_FIXTURE_TEST_CASE(service_keeps_its_address_when_it_is_replaced, sandbox) {
  const auto made = create(services, service("a", 80));
  const auto address = text(made, "/spec/clusterIP");
  BOOST_TEST(!address.empty());
  auto next = service("a", 81);
  next =
      with(std::move(next), "/metadata/resourceVersion", text(made, "/metadata/resourceVersion"));
  const auto replaced = update(services, next);
  BOOST_TEST(text(replaced, "/spec/clusterIP") == address);
  BOOST_TEST(text(replaced, "/spec/ports/0/port") == "81");
}

// Kubernetes 1.21: ports that are applied without a protocol get the default.
BOOST_FIXTURE_TEST_CASE(service_that_was_created_can_be_applied, sandbox) {
  const auto made = create(services, service("a", 80), {.field_manager = "m"});
  const auto applied = apply(services, service("a", 80), {.field_manager = "other"});
  BOOST_TEST(text(applied, "/spec/clusterIP") == text(made, "/spec/clusterIP"));
}

// KEP-3352, "Aggregated Discovery", since 1.27: one answer for all groups.
BOOST_FIXTURE_TEST_CASE(discovery_may_be_read_at_once, sandbox) {
  const auto answer = server.http(
      "GET", "/apis", {},
      {{"accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}});
  BOOST_TEST_REQUIRE(answer.status == 200u);
  const auto all_groups = parse(answer.body);
  BOOST_TEST(text(all_groups, "/kind") == "APIGroupDiscoveryList");
  bool deployments_found = false;
  for (const auto& group : all_groups.at("items").as_array()) {
    if (text(group, "/metadata/name") != "apps") continue;
    deployments_found =
        element(group, "/versions/0/resources", "resource", "deployments") != nullptr;
  }
  BOOST_TEST(deployments_found);
}

// Kubernetes documentation, "API Concepts", "Field validation", since 1.27.
BOOST_FIXTURE_TEST_CASE(fields_that_no_one_knows_may_be_refused, sandbox) {
  refuse(api.raw("POST", strict(path(gadgets())), "application/json",
                 serialize(gadget("a", {{"unknown", 1}}))),
         {400, "BadRequest", "strict decoding error: unknown field \"spec.unknown\""});
  BOOST_TEST(!there(gadgets(), "a"));
}

BOOST_FIXTURE_TEST_CASE(fields_that_no_one_knows_may_be_warned_of, sandbox) {
  const auto answer = server.http("POST", path(gadgets()) + "?fieldValidation=Warn",
                                  serialize(gadget("a", {{"unknown", 1}})));
  BOOST_TEST(answer.status == 201u);
  BOOST_TEST(answer.headers.get("warning") == "299 - \"unknown field \\\"spec.unknown\\\"\"");
}

// What this server does not do is rejected, or admitted with a warning; the real one does it.

BOOST_FIXTURE_TEST_CASE(features_beyond_this_server_are_not_implemented, sandbox) {
  const auto definition =
      with(field_definition(*this), "/spec/conversion", {{"strategy", "Webhook"}});
  refuse(api.create(crds, definition), {501, "NotImplemented", "conversion webhooks"});
  for (const auto* const path :
       {"/apis/certificates.k8s.io/v1/certificatesigningrequests",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
        "/apis/autoscaling/v1/horizontalpodautoscalers"}) {
    refuse(api.raw("GET", path, "", ""), {501, "NotImplemented", "not supported"});
  }
  const std::string services_of_api = "/apis/apiregistration.k8s.io/v1/apiservices";
  ok(api.raw("GET", services_of_api + "/v1.apps", "", ""));
  refuse(api.raw("DELETE", services_of_api + "/v1.apps", "", ""),
         {501, "NotImplemented", "changes of apiservices"});
}

// Kubernetes 1.32: the objects that each cluster has; before, flow control was beta.
BOOST_FIXTURE_TEST_CASE(flow_control_is_served, sandbox) {
  const k8s::resource_type levels{
      {"flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration"},
      "prioritylevelconfigurations",
      false};
  BOOST_TEST(sorted_names(ok(api.list(levels, {}))).size() == 8u);
  const auto flow =
      ok(api.get({{"flowcontrol.apiserver.k8s.io", "v1", "FlowSchema"}, "flowschemas", false},
                 {"", "catch-all"}));
  BOOST_TEST(text(flow, "/spec/priorityLevelConfiguration/name") == "catch-all");
  const auto mine = server.unique("level");
  ok(api.create(levels, object(levels, mine, {{"spec", {{"type", "Exempt"}}}})));
  ok(api.remove(levels, {"", mine}));
}

// Discovery of endpoints is stable since 1.21.
BOOST_FIXTURE_TEST_CASE(api_server_has_an_endpoint_slice, sandbox) {
  const auto slice =
      ok(api.get({{"discovery.k8s.io", "v1", "EndpointSlice"}, "endpointslices", true},
                 {"default", "kubernetes"}));
  BOOST_TEST(text(slice, "/metadata/labels/kubernetes.io~1service-name") == "kubernetes");
  BOOST_TEST(text(slice, "/ports/0/name") == "https");
}

// kube-openapi, validation/validate/slice_validator.go: items have an index, since 1.25.
BOOST_FIXTURE_TEST_CASE(path_of_an_error_in_a_list_has_the_index, sandbox) {
  refuse(api.create(gadgets(), here(gadget("a", parse(R"({"tags": ["a", 5]})")))),
         {422, "Invalid", "spec.tags[1]: Invalid value: \"integer\": spec.tags[1] in body"});
}

// kubernetes PR 98377: apply of the scale subresource, since 1.22.
BOOST_FIXTURE_TEST_CASE(scale_is_applied, sandbox) {
  create(deployments, deployment("a"), {.field_manager = "creator"});
  const auto scaled = [&](int replicas, std::string_view more) {
    return api.raw("PATCH", path(deployments, "a", "scale") + "?fieldManager=m" + std::string(more),
                   "application/apply-patch+yaml",
                   serialize(json{{"apiVersion", "autoscaling/v1"},
                                  {"kind", "Scale"},
                                  {"metadata", {{"name", "a"}}},
                                  {"spec", {{"replicas", replicas}}}}));
  };
  refuse(scaled(3, ""), {409, "Conflict", "conflict with \"creator\""});
  BOOST_TEST(text(parse(ok(scaled(3, "&force=true"))), "/spec/replicas") == "3");
  const auto owned = get(deployments, "a");
  const auto* const entry = managed_by(owned, "m", "Apply");
  BOOST_TEST_REQUIRE(entry != nullptr);
  BOOST_TEST(text(*entry, "/subresource") == "scale");
  BOOST_TEST(text(*entry, "/apiVersion") == "apps/v1");
  BOOST_TEST(entry->at("fieldsV1") == parse(R"({"f:spec": {"f:replicas": {}}})"));
  BOOST_TEST(text(parse(ok(scaled(4, ""))), "/spec/replicas") == "4");
}

BOOST_FIXTURE_TEST_CASE(rules_with_unknown_functions_are_admitted_with_a_warning, sandbox) {
  const auto made =
      with(field_definition(*this),
           "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations",
           boost::json::array{{{"rule", "self.size > 1 || isURL(string(self.size))"}}});
  BOOST_TEST(warning_of_creating(*this, crds, made) ==
             "299 - \"openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: this API "
             "server does not know isURL(); the rule is not evaluated\"");
}

BOOST_FIXTURE_TEST_CASE(rules_about_texts_with_a_format_are_admitted_with_a_warning, sandbox) {
  const auto crd = definition(server.unique("u") + ".example.com", "Time", "times", parse(R"x({
      "type": "object", "properties": {"at": {"type": "string", "format": "date-time"}},
      "x-kubernetes-validations": [{"rule": "!has(self.at)"},
                                   {"rule": "self.at == '2024-01-01T00:00:00Z'"}]})x"));
  BOOST_TEST(warning_of_creating(*this, crds, crd) ==
             "299 - \"openAPIV3Schema.x-kubernetes-validations[1].rule: this API server does not "
             "know the type of format date-time; the rule is not evaluated\"");
}

BOOST_FIXTURE_TEST_CASE(quota_that_a_new_object_counts_for_is_a_warning, sandbox) {
  create({{"", "v1", "ResourceQuota"}, "resourcequotas", true},
         with(object({{"", "v1", "ResourceQuota"}, "resourcequotas", true}, "q"), "/spec/hard",
              {{"configmaps", "0"}}));
  const auto warned = server.http("POST", path(config_maps), serialize(config_map("a")));
  BOOST_TEST(warned.headers.get("warning") ==
             R"(299 - "ResourceQuota \"q\": this API server enforces no quotas")");
  const auto other = server.http("POST", path(secrets), serialize(object(secrets, "a")));
  BOOST_TEST(other.status == 201u);
  BOOST_TEST(other.headers.get("warning") == "");
}

BOOST_FIXTURE_TEST_CASE(plugins_of_pods_that_do_nothing_are_warnings, sandbox) {
  const k8s::resource_type ranges{{"", "v1", "LimitRange"}, "limitranges", true};
  create(ranges, with(object(ranges, "r"), "/spec",
                      parse(R"({"limits": [{"type": "Container", "default": {"cpu": "1"}}]})")));
  const auto pod = parse(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
      "spec": {"runtimeClassName": "none", "containers": [{"name": "a", "image": "a"}]}})");
  const auto made = server.http("POST", "/api/v1/namespaces/" + ns + "/pods", serialize(pod));
  BOOST_TEST(made.status == 201u);
  std::string warnings;
  for (std::size_t i = 0; i < made.headers.size(); ++i) {
    if (http::iequals(made.headers[i].name, "warning")) warnings += made.headers[i].value;
  }
  BOOST_TEST(warnings.find("LimitRange \\\"r\\\": this API server applies no limits") !=
             std::string::npos);
  BOOST_TEST(warnings.find("spec.runtimeClassName") != std::string::npos);

  const auto restricted = with(object(namespaces, server.unique("restricted")), "/metadata/labels",
                               {{"pod-security.kubernetes.io/enforce", "restricted"}});
  BOOST_TEST(warning_of_creating(*this, namespaces, restricted)
                 .find("pod-security.kubernetes.io/enforce") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(default_class_that_is_not_set_is_a_warning, sandbox) {
  const k8s::resource_type classes{
      {"storage.k8s.io", "v1", "StorageClass"}, "storageclasses", false};
  const auto name = server.unique("class");
  const auto annotations = parse(R"({"storageclass.kubernetes.io/is-default-class": "true"})");
  create(classes, with(with(object(classes, name), "/provisioner", "example.com/p"),
                       "/metadata/annotations", annotations));
  const auto claim = parse(R"({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
      "metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"],
      "resources": {"requests": {"storage": "1Gi"}}}})");
  const auto made =
      server.http("POST", "/api/v1/namespaces/" + ns + "/persistentvolumeclaims", serialize(claim));
  BOOST_TEST(made.status == 201u);
  BOOST_TEST(made.headers.get("warning").find(name) != std::string::npos);
  ok(api.remove(classes, {"", name}));
}

BOOST_FIXTURE_TEST_CASE(webhook_of_another_version_is_a_warning, hooked) {
  auto crd = definition(server.unique("e") + ".example.com", "Thing", "things",
                        parse(R"({"type": "object"})"));
  auto& versions = crd.at_pointer("/spec/versions").as_array();
  versions.push_back(with(with(versions.front(), "/name", "v2"), "/storage", false));
  const auto things = define(crd);
  auto of_v1 = rule(things, {"CREATE"});
  hook.call_for(boost::json::array{of_v1});
  const auto write = [&](const std::string& version) {
    const json thing{{"apiVersion", things.gvk.group + "/" + version},
                     {"kind", "Thing"},
                     {"metadata", {{"generateName", "a"}}}};
    return server.http(
        "POST", "/apis/" + things.gvk.group + "/" + version + "/namespaces/" + ns + "/things",
        serialize(thing));
  };
  BOOST_TEST(write("v1").headers.get("warning") == "");
  const auto other = write("v2");
  BOOST_TEST(other.status == 201u);
  BOOST_TEST(other.headers.get("warning").find("its rules name another version") !=
             std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(change_of_a_scale_by_a_webhook_is_an_error, sandbox) {
  create(deployments, deployment("a"));
  webhook hook(*this, webhook_kind::mutating);
  hook.call_for(boost::json::array{rule(deployments, {"*"}, "deployments/scale")});
  hook.answer(
      patch_by(boost::json::array{{{"op", "replace"}, {"path", "/spec/replicas"}, {"value", 7}}}));
  const auto why =
      failed(api.patch(deployments, {ns, "a"}, k8s::patch_type::merge,
                       parse(R"({"spec": {"replicas": 4}})"), {.subresource = "scale"}));
  BOOST_TEST(why.status == 500u);
  BOOST_TEST(why.message.find("by a mutating webhook") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(match_conditions_are_admitted_with_a_warning, sandbox) {
  const k8s::resource_type type{
      {"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration"},
      "validatingwebhookconfigurations",
      false};
  const json made{
      {"apiVersion", "admissionregistration.k8s.io/v1"},
      {"kind", "ValidatingWebhookConfiguration"},
      {"metadata", {{"name", server.unique("m")}}},
      {"webhooks",
       boost::json::array{
           {{"name", "a.example.com"},
            {"admissionReviewVersions", boost::json::array{"v1"}},
            {"sideEffects", "None"},
            {"clientConfig", {{"url", "https://127.0.0.1:1/"}}},
            {"matchConditions", boost::json::array{{{"name", "a"}, {"expression", "true"}}}}}}}};
  BOOST_TEST(warning_of_creating(*this, type, made) ==
             "299 - \"matchConditions: this API server evaluates no rules\"");
}

BOOST_FIXTURE_TEST_CASE(unknown_field_of_a_built_in_kind_is_handled_as_requested, sandbox) {
  const auto write = [&](const std::string& name, const std::string& parameters) {
    const auto object = with(config_map(name), "/unknown", json(1));
    return server.http("POST", path(config_maps) + parameters, serialize(object));
  };
  BOOST_TEST(write("a", "?fieldValidation=Strict").status == 400u);
  for (const auto* parameters : {"", "?fieldValidation=Warn"}) {
    const auto answer = write(*parameters == '\0' ? "b" : "c", parameters);
    BOOST_TEST(answer.status == 201u);
    BOOST_TEST(answer.headers.get("warning") == R"(299 - "unknown field \"unknown\"")");
    BOOST_TEST(!has(parse(answer.body), "/unknown"));
  }
  const auto ignored = write("d", "?fieldValidation=Ignore");
  BOOST_TEST(ignored.status == 201u);
  BOOST_TEST(ignored.headers.get("warning") == "");
}

// Kubernetes API reference, "ManagedFieldsEntry", subresource, since 1.22.
BOOST_FIXTURE_TEST_CASE(managed_fields_tell_the_subresource, sandbox) {
  create(gadgets(), gadget("a", {{"size", 1}}), {.field_manager = "one"});
  const auto next = merge(gadgets(), "a", R"({"status": {"ready": true}})",
                          {.field_manager = "one", .subresource = "status"});
  bool told = false;
  for (const auto& entry : next.at_pointer("/metadata/managedFields").as_array()) {
    told |= text(entry, "/subresource") == "status";
  }
  BOOST_TEST(told);
}

// Kubernetes documentation, "Garbage Collection"; the collector is part of the controller manager.
BOOST_FIXTURE_TEST_CASE(dependents_of_a_deleted_object_are_deleted, sandbox) {
  const auto owner = create(config_maps, config_map("owner"));
  create(secrets, owned_by(object(secrets, "owned"), owner));
  create(secrets, object(secrets, "free"));
  remove(config_maps, "owner");
  eventually([&] { return !there(secrets, "owned"); });
  BOOST_TEST(there(secrets, "free"));
}

BOOST_FIXTURE_TEST_CASE(dependent_with_another_owner_stays, sandbox) {
  const auto first = create(config_maps, config_map("first"));
  const auto second = create(config_maps, config_map("second"));
  auto both = owned_by(object(secrets, "both"), first);
  both.at_pointer("/metadata/ownerReferences")
      .as_array()
      .push_back(owned_by(object(secrets, "x"), second).at_pointer("/metadata/ownerReferences/0"));
  create(secrets, both);
  create(secrets, owned_by(object(secrets, "one"), first));
  remove(config_maps, "first");
  eventually([&] { return !there(secrets, "one"); });
  BOOST_TEST(there(secrets, "both"));
  remove(config_maps, "second");
  eventually([&] { return !there(secrets, "both"); });
}

BOOST_FIXTURE_TEST_CASE(deletion_in_the_foreground_takes_the_dependents_first, sandbox) {
  const auto owner = create(config_maps, config_map("owner"));
  auto owned = owned_by(object(secrets, "owned"), owner, true);
  create(secrets,
         with(std::move(owned), "/metadata/finalizers", boost::json::array{"example.com/hold"}));
  remove(config_maps, "owner", {.propagation = "Foreground"});
  eventually([&] { return has(get(secrets, "owned"), "/metadata/deletionTimestamp"); });
  BOOST_TEST(there(config_maps, "owner"));
  merge(secrets, "owned", R"({"metadata": {"finalizers": null}})");
  eventually([&] { return !there(config_maps, "owner"); });
}

BOOST_FIXTURE_TEST_CASE(deletion_may_leave_orphans, sandbox) {
  const auto owner = create(config_maps, config_map("owner"));
  create(secrets, owned_by(object(secrets, "owned"), owner));
  remove(config_maps, "owner", {.propagation = "Orphan"});
  eventually([&] { return !there(config_maps, "owner"); });
  BOOST_TEST(!has(get(secrets, "owned"), "/metadata/ownerReferences"));
}

// Kubernetes documentation, "Namespaces"; the namespace controller is part of the controller
// manager.
BOOST_FIXTURE_TEST_CASE(namespace_goes_with_all_that_is_in_it, sandbox) {
  const auto name = server.unique("conformance");
  create(namespaces, object(namespaces, name));
  ok(api.create(config_maps, with(config_map("a"), "/metadata/namespace", name)));
  ok(api.create(gadgets(), with(gadget("b"), "/metadata/namespace", name)));
  remove(namespaces, name);
  eventually([&] { return !there(namespaces, name); });
  BOOST_TEST(names(ok(api.list(config_maps, {.ns = name}))).empty());
  BOOST_TEST(names(ok(api.list(gadgets(), {.ns = name}))).empty());
}

BOOST_FIXTURE_TEST_CASE(namespace_waits_for_finalizers_in_it, sandbox) {
  const auto name = server.unique("conformance");
  create(namespaces, object(namespaces, name));
  auto held = with(config_map("a"), "/metadata/namespace", name);
  ok(api.create(config_maps, with(std::move(held), "/metadata/finalizers",
                                  boost::json::array{"example.com/hold"})));
  remove(namespaces, name);
  eventually(
      [&] { return has(ok(api.get(config_maps, {name, "a"})), "/metadata/deletionTimestamp"); });
  BOOST_TEST(text(get(namespaces, name), "/status/phase") == "Terminating");
  const auto why =
      failed(api.create(config_maps, with(config_map("b"), "/metadata/namespace", name)));
  BOOST_TEST(why.is(k8s::errc::forbidden));
  ok(api.patch(config_maps, {name, "a"}, k8s::patch_type::merge,
               parse(R"({"metadata": {"finalizers": null}})")));
  eventually([&] { return !there(namespaces, name); });
}

// The namespace controller and the garbage collector are clients of the API server like others.
BOOST_FIXTURE_TEST_CASE(webhook_receives_deletions_of_a_namespaces_content, hooked) {
  create(config_maps, config_map("a"));
  watch_config_maps();
  remove(namespaces, ns);
  eventually([&] { return !there(namespaces, ns); });
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/operation") == "DELETE");
  BOOST_TEST(text(asked, "/name") == "a");
  BOOST_TEST(text(asked, "/userInfo/username") ==
             "system:serviceaccount:kube-system:namespace-controller");
}

// The real one reads whatever it is sent.
BOOST_FIXTURE_TEST_CASE(webhook_that_never_stops_talking_fails_the_request, hooked) {
  watch_config_maps();
  hook.send(200, std::string(20u << 20, ' '));
  const auto why = failed(api.create(config_maps, here(config_map("a"))));
  BOOST_TEST(why.status == 500u);
  BOOST_TEST(why.message.find("failed calling webhook") != std::string::npos);
  BOOST_TEST(!there(config_maps, "a"));
}

// What the status' strategy resets has no owner (KEP 555): an empty list in it changes nothing.
BOOST_FIXTURE_TEST_CASE(write_of_the_status_does_not_own_what_else_it_sends, sandbox) {
  const auto terms = [](std::string_view more) {
    return parse(
        R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Exists"}])" +
        std::string(more) + "}]}}}");
  };
  const auto* const at = "/spec/template/spec/affinity";
  apply(deployments, with(deployment("a"), at, terms("")), {.field_manager = "one"});
  auto sent = with(deployment("a"), at, terms(R"(, "matchFields": [])"));
  const auto next = update(deployments, with(std::move(sent), "/status", {{"replicas", 1}}),
                           {.field_manager = "two", .subresource = "status"});
  const auto* const two = managed_by(next, "two", "Update");
  BOOST_TEST_REQUIRE(two != nullptr);
  BOOST_TEST(has(*two, "/fieldsV1/f:status"));
  BOOST_TEST(!has(*two, "/fieldsV1/f:spec"));
}

BOOST_AUTO_TEST_SUITE_END()
