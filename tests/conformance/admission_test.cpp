#include "webhook.hpp"
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(admission)

using namespace rw;
using namespace rw::conformance;

BOOST_FIXTURE_TEST_CASE(webhook_is_asked_about_a_creation, hooked) {
  watch_config_maps();
  const auto made = create(config_maps, config_map("a", {{"k", "v"}}));
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/operation") == "CREATE");
  BOOST_TEST(text(asked, "/name") == "a");
  BOOST_TEST(text(asked, "/namespace") == ns);
  BOOST_TEST(asked.at("kind") == parse(R"({"group": "", "version": "v1", "kind": "ConfigMap"})"));
  BOOST_TEST(asked.at("resource") ==
             parse(R"({"group": "", "version": "v1", "resource": "configmaps"})"));
  BOOST_TEST(asked.at("requestKind") == asked.at("kind"));
  BOOST_TEST(asked.at("requestResource") == asked.at("resource"));
  BOOST_TEST(!text(asked, "/uid").empty());
  BOOST_TEST(text(asked, "/dryRun") == "false");
  BOOST_TEST(text(asked, "/object/data/k") == "v");
  BOOST_TEST(text(asked, "/object/kind") == "ConfigMap");
  BOOST_TEST(asked.at("oldObject").is_null());
  BOOST_TEST(text(asked, "/options/kind") == "CreateOptions");
}

BOOST_FIXTURE_TEST_CASE(webhook_path_is_cleaned, hooked) {
  watch_config_maps();
  const auto path_of = [&](std::string_view name, const std::string& path) {
    const auto host = hook.url().substr(0, hook.url().rfind('/'));
    merge(webhook_configurations, hook.name(),
          R"({"webhooks": [{"name": ")" + hook.name() +
              R"(", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 5,
                  "namespaceSelector": {"matchLabels": {"conformance": ")" +
              ns + R"("}}, "rules": )" + serialize(boost::json::array{rule(config_maps)}) +
              R"(, "clientConfig": {"url": ")" + host + path + R"(", "caBundle": ")" +
              hook.ca_bundle() + "\"}}]}");
    const auto before = hook.target();
    eventually([&] {
      ok(api.create(config_maps, here(config_map(name)), {.dry_run = true}));
      return hook.target() != before;
    });
    return hook.target();
  };
  BOOST_TEST(path_of("a", "//v") == "/v?timeout=5s");
  BOOST_TEST(path_of("a", "/a/./b//../c%20d/%2e%2e/x%2fy~+/") == "/a/x/y~+?timeout=5s");
}

BOOST_FIXTURE_TEST_CASE(redirect_of_a_webhook_is_followed_with_the_review, hooked) {
  watch_config_maps();
  for (const auto status : {307u, 308u}) {
    hook.redirect(status, "/moved/" + std::to_string(status));
    create(config_maps, config_map("a" + std::to_string(status)));
    BOOST_TEST(text(hook.request(), "/name") == "a" + std::to_string(status));
  }
  BOOST_TEST(hook.target() == "/moved/308");
}

BOOST_FIXTURE_TEST_CASE(webhook_receives_the_user, hooked) {
  watch_config_maps();
  create(config_maps, config_map("a"));
  const auto asked = hook.request();
  BOOST_TEST(!text(asked, "/userInfo/username").empty());
  const auto groups = serialize(asked.at_pointer("/userInfo/groups"));
  BOOST_TEST(groups.find("system:authenticated") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(webhook_sees_both_objects_of_an_update, hooked) {
  create(config_maps, config_map("a", {{"k", "1"}}));
  watch_config_maps();
  update(config_maps, config_map("a", {{"k", "2"}}));
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/operation") == "UPDATE");
  BOOST_TEST(text(asked, "/object/data/k") == "2");
  BOOST_TEST(text(asked, "/oldObject/data/k") == "1");
}

BOOST_FIXTURE_TEST_CASE(webhook_sees_a_patch_as_an_update, hooked) {
  create(config_maps, config_map("a", {{"k", "1"}}));
  watch_config_maps();
  merge(config_maps, "a", R"({"data": {"l": "2"}})");
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/operation") == "UPDATE");
  BOOST_TEST(asked.at_pointer("/object/data") == parse(R"({"k": "1", "l": "2"})"));
  BOOST_TEST(text(asked, "/options/kind") == "UpdateOptions");
}

BOOST_FIXTURE_TEST_CASE(webhook_receives_an_apply_as_creation_or_update, hooked) {
  watch_config_maps();
  apply(config_maps, config_map("a", {{"k", "1"}}));
  BOOST_TEST(text(hook.request(), "/operation") == "CREATE");
  apply(config_maps, config_map("a", {{"k", "2"}}));
  BOOST_TEST(text(hook.request(), "/operation") == "UPDATE");
}

BOOST_FIXTURE_TEST_CASE(webhook_sees_the_object_of_a_deletion_as_the_old_one, hooked) {
  create(config_maps, config_map("a", {{"k", "1"}}));
  watch_config_maps();
  remove(config_maps, "a");
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/operation") == "DELETE");
  BOOST_TEST(asked.at("object").is_null());
  BOOST_TEST(text(asked, "/oldObject/data/k") == "1");
  BOOST_TEST(text(asked, "/options/kind") == "DeleteOptions");
}

BOOST_FIXTURE_TEST_CASE(webhook_receives_the_options_of_a_deletion, hooked) {
  const auto made = create(config_maps, config_map("a"));
  watch_config_maps();
  const json options{{"gracePeriodSeconds", 7},
                     {"preconditions", {{"uid", text(made, "/metadata/uid")}}},
                     {"orphanDependents", false}};
  ok(api.raw("DELETE", path(config_maps, "a"), "application/json", serialize(options)));
  auto asked = hook.request();
  auto given = asked.at("options").as_object();
  BOOST_TEST(text(given, "/apiVersion") == "meta.k8s.io/v1");
  given.erase("apiVersion");
  given.erase("kind");
  BOOST_TEST(json(given) == options);
}

BOOST_FIXTURE_TEST_CASE(webhook_receives_the_options_of_a_deletion_in_the_query, hooked) {
  create(config_maps, config_map("a"));
  watch_config_maps();
  ok(api.raw("DELETE", path(config_maps, "a") + "?gracePeriodSeconds=3&dryRun=All", "", ""));
  auto given = hook.request().at("options").as_object();
  given.erase("apiVersion");
  given.erase("kind");
  BOOST_TEST(json(given) == parse(R"({"gracePeriodSeconds": 3, "dryRun": ["All"]})"));
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(webhook_receives_the_grace_period_of_a_pod, hooked) {
  create(pods, simple_pod("a"));
  hook.call_for(boost::json::array{rule(pods)});
  remove(pods, "a");
  for (const auto& asked : hook.requests()) {
    BOOST_TEST(text(asked, "/options/gracePeriodSeconds") == "0");
  }
}

BOOST_FIXTURE_TEST_CASE(webhook_is_asked_about_each_object_of_a_collection, hooked) {
  create(config_maps, config_map("a"));
  create(config_maps, config_map("b"));
  watch_config_maps();
  ok(api.remove_all(config_maps, all()));
  const auto asked = hook.requests();
  BOOST_TEST_REQUIRE(asked.size() == 2u);
  // The request names no object.
  BOOST_TEST(!has(asked[0], "/name"));
  BOOST_TEST(text(asked[0], "/operation") == "DELETE");
  BOOST_TEST(text(asked[0], "/oldObject/metadata/name") == "a");
}

BOOST_FIXTURE_TEST_CASE(collection_stays_when_a_webhook_denies_its_deletion, hooked) {
  create(config_maps, config_map("a"));
  watch_config_maps();
  hook.answer(deny);
  refuse(api.remove_all(config_maps, all()), {400, "", "not like this"});
  BOOST_TEST(there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(webhook_receives_the_generated_name, hooked) {
  watch_config_maps();
  auto wanted = config_map("a");
  wanted.at("metadata").as_object().erase("name");
  const auto made = create(config_maps, with(std::move(wanted), "/metadata/generateName", "g-"));
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/name") == text(made, "/metadata/name"));
  BOOST_TEST(text(asked, "/object/metadata/uid") == text(made, "/metadata/uid"));
}

BOOST_FIXTURE_TEST_CASE(webhook_sees_a_scale_as_such, hooked) {
  create(deployments, deployment("a"));
  hook.call_for(boost::json::array{rule(deployments, {"*"}, "deployments/scale")});
  merge(deployments, "a", R"({"spec": {"replicas": 4}})", {.subresource = "scale"});
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/kind/kind") == "Scale");
  BOOST_TEST(text(asked, "/resource/resource") == "deployments");
  BOOST_TEST(text(asked, "/subResource") == "scale");
  BOOST_TEST(text(asked, "/object/spec/replicas") == "4");
  BOOST_TEST(text(asked, "/oldObject/spec/replicas") == "1");
}

BOOST_FIXTURE_TEST_CASE(write_denied_by_a_webhook_is_not_stored, hooked) {
  watch_config_maps();
  hook.answer(deny);
  refuse(api.create(config_maps, here(config_map("a"))),
         {400, "", "admission webhook \"" + hook.name() + "\" denied the request: not like this"});
  BOOST_TEST(!there(config_maps, "a"));
}

BOOST_FIXTURE_TEST_CASE(update_that_a_webhook_denies_is_not_done, hooked) {
  const auto made = create(config_maps, config_map("a", {{"k", "1"}}));
  watch_config_maps();
  hook.answer(deny);
  refuse(api.update(config_maps, here(config_map("a", {{"k", "2"}}))), {400, ""});
  refuse(api.patch(config_maps, key("a"), k8s::patch_type::merge, parse(R"({"data": {"k": "2"}})")),
         {400, ""});
  refuse(api.remove(config_maps, key("a")), {400, ""});
  BOOST_TEST(get(config_maps, "a") == made);
}

BOOST_FIXTURE_TEST_CASE(webhook_may_say_how_it_denies, hooked) {
  watch_config_maps();
  hook.answer([](const json&) {
    return parse(
        R"({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": "odd"}})");
  });
  refuse(api.create(config_maps, here(config_map("a"))),
         {422, "Invalid", "denied the request: odd"});
}

BOOST_FIXTURE_TEST_CASE(webhook_that_gives_no_reason_denies_without_explanation, hooked) {
  watch_config_maps();
  hook.answer([](const json&) { return json{{"allowed", false}}; });
  refuse(api.create(config_maps, here(config_map("a"))),
         {400, "",
          "admission webhook \"" + hook.name() + "\" denied the request without explanation"});
}

BOOST_FIXTURE_TEST_CASE(write_with_a_webhooks_warning_is_stored_and_returns_it, hooked) {
  watch_config_maps();
  hook.answer(
      [](const json&) { return parse(R"({"allowed": true, "warnings": ["mind the gap"]})"); });
  const auto answer = server.http("POST", path(config_maps), serialize(config_map("a")));
  BOOST_TEST(answer.status == 201u);
  BOOST_TEST(answer.headers.get("warning") == "299 - \"mind the gap\"");
}

BOOST_FIXTURE_TEST_CASE(webhook_warns_of_a_write_that_it_denies, hooked) {
  watch_config_maps();
  hook.answer(
      [](const json&) { return parse(R"({"allowed": false, "warnings": ["mind the gap"]})"); });
  const auto answer = server.http("POST", path(config_maps), serialize(config_map("a")));
  BOOST_TEST(answer.status == 400u);
  BOOST_TEST(answer.headers.get("warning") == "299 - \"mind the gap\"");
}

BOOST_FIXTURE_TEST_CASE(webhook_warns_of_a_collection_once_for_each_text, hooked) {
  for (const auto* const name : {"a", "b", "c"}) create(config_maps, config_map(name));
  watch_config_maps();
  hook.answer([](const json& asked) {
    const bool last = text(asked, "/oldObject/metadata/name") == "c";
    return json{{"allowed", true},
                {"warnings", boost::json::array{last ? "of the last" : "of the others"}}};
  });
  const auto answer = server.http("DELETE", path(config_maps));
  BOOST_TEST(answer.status == 200u);
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < answer.headers.size(); ++i) {
    if (answer.headers[i].name == "warning") warnings.emplace_back(answer.headers[i].value);
  }
  std::ranges::sort(warnings);
  BOOST_TEST(
      warnings == (std::vector<std::string>{"299 - \"of the last\"", "299 - \"of the others\""}),
      boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(webhook_is_asked_about_an_eviction_and_not_the_deletion, hooked) {
  create(pods, simple_pod("a"));
  hook.call_for(boost::json::array{rule(pods), rule(pods, {"*"}, "pods/*")});
  const auto evict = [&] {
    return api.raw("POST", path(pods, "a", "eviction"), "application/json",
                   R"({"apiVersion": "policy/v1beta1", "kind": "Eviction",
                       "metadata": {"name": "a"}, "deleteOptions": {"gracePeriodSeconds": 0}})");
  };
  hook.answer(deny);
  refuse(evict(), {400, "", "not like this"});
  hook.requests();
  hook.answer([](const json&) { return json{{"allowed", true}}; });
  ok(evict());
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/operation") == "CREATE");
  BOOST_TEST(text(asked, "/kind/kind") == "Eviction");
  BOOST_TEST(text(asked, "/resource/resource") == "pods");
  BOOST_TEST(text(asked, "/subResource") == "eviction");
  BOOST_TEST(text(asked, "/name") == "a");
  BOOST_TEST(text(asked, "/object/deleteOptions/gracePeriodSeconds") == "0");
  BOOST_TEST(asked.at("oldObject").is_null());
  BOOST_TEST(text(asked, "/options/kind") == "CreateOptions");
  BOOST_TEST(!there(pods, "a"));
}

BOOST_FIXTURE_TEST_CASE(webhook_is_asked_about_a_binding_as_a_creation, hooked) {
  create(pods, simple_pod("a"));
  hook.call_for(boost::json::array{rule(pods), rule(pods, {"*"}, "pods/*")});
  ok(api.raw("POST", path(pods, "a", "binding"), "application/json",
             R"({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
                 "target": {"kind": "Node", "name": "n1"}})"));
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/operation") == "CREATE");
  BOOST_TEST(text(asked, "/kind/kind") == "Binding");
  BOOST_TEST(text(asked, "/subResource") == "binding");
  BOOST_TEST(text(asked, "/object/target/name") == "n1");
  BOOST_TEST(text(get(pods, "a"), "/spec/nodeName") == "n1");
}

BOOST_FIXTURE_TEST_CASE(subresource_of_a_pod_names_that_pod, hooked) {
  create(pods, simple_pod("a"));
  for (const auto* const body :
       {R"({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "b"},
            "target": {"kind": "Node", "name": "n1"}})",
        R"({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "b"}})"}) {
    const auto kind = text(parse(body), "/kind");
    refuse(api.raw("POST", path(pods, "a", kind == "Binding" ? "binding" : "eviction"),
                   "application/json", body),
           {400, "BadRequest", "name in URL does not match name in " + kind + " object"});
  }
}

BOOST_FIXTURE_TEST_CASE(webhook_is_asked_about_reviews_and_token_requests, hooked) {
  const std::string accounts = "/api/v1/namespaces/" + ns + "/serviceaccounts";
  ok(api.raw("POST", accounts, "application/json",
             R"({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "robot"}})"));
  auto reviews = parse(R"({"apiGroups": ["authorization.k8s.io"], "apiVersions": ["v1"],
                           "operations": ["*"], "resources": ["localsubjectaccessreviews"]})");
  auto tokens = parse(R"({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
                          "resources": ["serviceaccounts/token"]})");
  hook.call_for(boost::json::array{reviews, tokens});
  ok(api.raw("POST", accounts + "/robot/token", "application/json",
             R"({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}})"));
  auto asked = hook.request();
  BOOST_TEST(text(asked, "/operation") == "CREATE");
  BOOST_TEST(text(asked, "/kind/kind") == "TokenRequest");
  BOOST_TEST(text(asked, "/subResource") == "token");
  BOOST_TEST(text(asked, "/name") == "robot");
  hook.answer(deny);
  refuse(api.raw("POST",
                 "/apis/authorization.k8s.io/v1/namespaces/" + ns + "/localsubjectaccessreviews",
                 "application/json",
                 R"({"apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview",
                     "metadata": {"namespace": ")" +
                     ns + R"("}, "spec": {"user": "u", "resourceAttributes": {"verb": "get",
                     "resource": "pods", "namespace": ")" +
                     ns + R"("}}})"),
         {400, "", "not like this"});
  asked = hook.request();
  BOOST_TEST(text(asked, "/kind/kind") == "LocalSubjectAccessReview");
  BOOST_TEST(text(asked, "/object/spec/user") == "u");
}

BOOST_FIXTURE_TEST_CASE(webhook_is_not_asked_about_other_resources_and_operations, hooked) {
  hook.call_for(boost::json::array{rule(config_maps, {"UPDATE"})});
  create(config_maps, config_map("a"));
  create(secrets, object(secrets, "a"));
  remove(config_maps, "a");
  BOOST_TEST(hook.requests().empty());
}

BOOST_FIXTURE_TEST_CASE(webhook_is_not_asked_about_other_namespaces, hooked) {
  watch_config_maps();
  sandbox other;
  other.create(config_maps, config_map("a"));
  BOOST_TEST(hook.requests().empty());
}

BOOST_FIXTURE_TEST_CASE(webhook_is_asked_about_selected_objects_only, hooked) {
  watch_config_maps(parse(R"({"objectSelector": {"matchExpressions": [
    {"key": "l", "operator": "In", "values": ["m", "n"]}]}})"));
  create(config_maps, config_map("a"));
  BOOST_TEST(hook.requests().empty());
  create(config_maps, config_map("b", nullptr, {{"l", "m"}}));
  BOOST_TEST(text(hook.request(), "/name") == "b");
  // Either of the two objects of an update may be the selected one.
  merge(config_maps, "b", R"({"metadata": {"labels": {"l": null}}})");
  BOOST_TEST(text(hook.request(), "/operation") == "UPDATE");
  merge(config_maps, "b", R"({"data": {"k": "v"}})");
  BOOST_TEST(hook.requests().empty());
}

BOOST_FIXTURE_TEST_CASE(webhook_is_asked_about_a_status_where_a_rule_names_it, hooked) {
  create(gadgets(), gadget("a"));
  hook.call_for(boost::json::array{rule(gadgets(), {"UPDATE"}, "gadgets/status")});
  merge(gadgets(), "a", R"({"spec": {"size": 1}})");
  BOOST_TEST(hook.requests().empty());
  merge(gadgets(), "a", R"({"status": {"ready": true}})", {.subresource = "status"});
  const auto asked = hook.request();
  BOOST_TEST(text(asked, "/subResource") == "status");
  BOOST_TEST(text(asked, "/resource/resource") == "gadgets");
  BOOST_TEST(text(asked, "/object/status/ready") == "true");
}

BOOST_FIXTURE_TEST_CASE(rule_for_an_object_is_none_for_its_subresources, hooked) {
  create(gadgets(), gadget("a"));
  hook.call_for(boost::json::array{rule(gadgets())});
  merge(gadgets(), "a", R"({"status": {"ready": true}})", {.subresource = "status"});
  BOOST_TEST(hook.requests().empty());
}

BOOST_FIXTURE_TEST_CASE(rule_may_name_all_resources_with_a_star, hooked) {
  auto any = parse(
      R"({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]})");
  hook.call_for(boost::json::array{any});
  create(secrets, object(secrets, "a"));
  create(gadgets(), gadget("a"));
  const auto asked = hook.requests();
  BOOST_TEST_REQUIRE(asked.size() == 2u);
  BOOST_TEST(text(asked[0], "/kind/kind") == "Secret");
  BOOST_TEST(text(asked[1], "/kind/kind") == "Gadget");
}

BOOST_FIXTURE_TEST_CASE(rule_may_be_for_one_scope, hooked) {
  auto clustered = rule(config_maps);
  clustered.as_object()["scope"] = "Cluster";
  hook.call_for(boost::json::array{clustered});
  create(config_maps, config_map("a"));
  BOOST_TEST(hook.requests().empty());
}

BOOST_FIXTURE_TEST_CASE(webhook_knows_of_a_dry_run, hooked) {
  watch_config_maps();
  create(config_maps, config_map("a"), {.dry_run = true});
  BOOST_TEST(text(hook.request(), "/dryRun") == "true");
}

BOOST_FIXTURE_TEST_CASE(webhook_with_side_effects_has_no_dry_run, hooked) {
  // v1 has only webhooks without side effects on a dry run, which v1beta1 could have.
  refuse(
      api.create(webhook_configurations,
                 object(webhook_configurations, hook.name(),
                        {{"webhooks",
                          boost::json::array{{{"name", hook.name()},
                                              {"admissionReviewVersions", boost::json::array{"v1"}},
                                              {"clientConfig", {{"url", hook.url()}}},
                                              {"sideEffects", "Some"}}}}})),
      {422, "Invalid", "sideEffects: Unsupported value: \"Some\""});
}

BOOST_FIXTURE_TEST_CASE(webhook_that_is_ignored_when_it_fails_may_deny, hooked) {
  watch_config_maps(parse(R"({"failurePolicy": "Ignore"})"));
  hook.answer(deny);
  refuse(api.create(config_maps, here(config_map("a"))), {400, ""});
}

BOOST_FIXTURE_TEST_CASE(webhooks_are_all_asked, hooked) {
  webhook second(*this);
  watch_config_maps();
  second.call_for(boost::json::array{rule(config_maps)});
  hook.requests();
  create(config_maps, config_map("a"));
  BOOST_TEST(text(hook.request(), "/name") == "a");
  BOOST_TEST(text(second.request(), "/name") == "a");
  second.answer(deny);
  refuse(api.create(config_maps, here(config_map("b"))), {400, "", second.name()});
}

BOOST_FIXTURE_TEST_CASE(webhook_that_is_removed_is_not_asked_any_more, hooked) {
  watch_config_maps();
  ok(api.remove(webhook_configurations, {"", hook.name()}));
  eventually([&] {
    hook.requests();
    ok(api.create(config_maps, here(config_map("a")), {.dry_run = true}));
    return hook.requests().empty();
  });
}

BOOST_FIXTURE_TEST_CASE(webhook_does_not_receive_an_invalid_object, hooked) {
  watch_config_maps();
  refuse(api.create(config_maps, here(config_map("Upper"))), {422, "Invalid"});
  BOOST_TEST(hook.requests().empty());
}

BOOST_FIXTURE_TEST_CASE(webhook_sees_defaults_and_no_unknown_fields, hooked) {
  hook.call_for(boost::json::array{rule(gadgets())});
  create(gadgets(), gadget("a", parse(R"({"size": 1, "unknown": 2})")));
  BOOST_TEST(hook.request().at_pointer("/object/spec") == parse(R"({"size": 1, "color": "red"})"));
}

BOOST_FIXTURE_TEST_CASE(webhook_is_not_asked_about_webhooks, hooked) {
  auto any = parse(
      R"({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]})");
  hook.call_for(boost::json::array{any},
                parse(R"({"namespaceSelector": {}, "failurePolicy": "Ignore"})"));
  ok(api.patch(webhook_configurations, {"", hook.name()}, k8s::patch_type::merge,
               parse(R"({"metadata": {"labels": {"l": "m"}}})")));
  for (const auto& asked : hook.requests()) {
    BOOST_TEST(text(asked, "/kind/kind") != "ValidatingWebhookConfiguration");
  }
}

BOOST_AUTO_TEST_SUITE_END()
