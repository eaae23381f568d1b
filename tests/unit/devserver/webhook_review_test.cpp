// What a webhook is told of, in which words, and what its answer means; without calling one.

#include "rw/k8s/devserver/webhook.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/devserver/admission_samples.hpp"
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

BOOST_AUTO_TEST_SUITE(webhook_review)

namespace {

using namespace rw::k8s::devserver;
using namespace rw::k8s::devserver::test;
namespace json = boost::json;

bool concerns(json::object more, const admission_attributes& write) {
  return webhook::parse(hook(std::move(more))).concerns(write);
}

bool rule_concerns(std::string_view resource, const admission_attributes& write,
                   std::string_view scope = "*") {
  return concerns({{"rules", json::array{rule(resource, scope)}}}, write);
}

/// What becomes of an answer of the webhook "h.example.com" to the review "U".
webhook_decision judged(std::string_view body, unsigned status = 200, const char* version = "v1") {
  const auto by = webhook::parse(hook({{"admissionReviewVersions", boost::json::array{version}}}));
  return judge_answer(by, "U", status, body);
}

std::string review(std::string_view response) {
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"U",)" +
         std::string(response) + "}}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(rules_name_resources_and_subresources) {
  const auto main = of("apps", "deployments");
  const auto status = of("apps", "deployments", "status");
  const auto check = [&](std::string_view listed, bool wants_main, bool wants_status) {
    BOOST_TEST(rule_concerns(listed, main) == wants_main, listed);
    BOOST_TEST(rule_concerns(listed, status) == wants_status, listed);
  };
  check("deployments", true, false);
  check("*", true, false);
  check("deployments/status", false, true);
  check("*/status", false, true);
  check("deployments/*", true, true);
  check("*/*", true, true);
  check("pods", false, false);
  check("pods/*", false, false);
  check("deployments/scale", false, false);
}

BOOST_AUTO_TEST_CASE(rules_name_operations_groups_and_versions) {
  const auto matches = [](const char* operation, const char* group, const char* version) {
    const json::object one = {{"apiGroups", boost::json::array{group}},
                              {"apiVersions", boost::json::array{version}},
                              {"operations", boost::json::array{operation}},
                              {"resources", boost::json::array{"*"}}};
    return concerns({{"rules", json::array{one}}}, of("apps", "deployments"));
  };
  BOOST_TEST(matches("UPDATE", "apps", "v1"));
  BOOST_TEST(matches("*", "*", "*"));
  BOOST_TEST(!matches("CREATE", "apps", "v1"));
  BOOST_TEST(!matches("UPDATE", "", "v1"));
  BOOST_TEST(!matches("UPDATE", "apps", "v1beta1"));
  BOOST_TEST(!concerns({{"rules", json::array()}}, config_map()));
}

BOOST_AUTO_TEST_CASE(rules_may_be_for_namespaced_resources_or_others) {
  auto node = of("", "nodes");
  node.key.ns.clear();
  auto ns = of("", "namespaces");
  ns.key = {"a", "a"};
  BOOST_TEST(rule_concerns("*", config_map(), "Namespaced"));
  BOOST_TEST(!rule_concerns("*", config_map(), "Cluster"));
  BOOST_TEST(!rule_concerns("*", node, "Namespaced"));
  BOOST_TEST(rule_concerns("*", node, "Cluster"));
  BOOST_TEST(!rule_concerns("*", ns, "Namespaced"));
  BOOST_TEST(rule_concerns("*", ns, "Cluster"));
}

BOOST_AUTO_TEST_CASE(namespaces_are_selected_by_their_labels) {
  const json::object other = {{"namespaceSelector", {{"matchLabels", {{"team", "b"}}}}}};
  BOOST_TEST(concerns({{"namespaceSelector", {{"matchLabels", {{"team", "a"}}}}}}, config_map()));
  BOOST_TEST(!concerns(other, config_map()));
  auto node = of("", "nodes");
  node.key.ns.clear();
  BOOST_TEST(concerns(other, node));
  auto ns = of("", "namespaces");
  ns.key = {"", "a"};
  BOOST_TEST(!concerns(other, ns));
  ns.object = json::parse(R"({"metadata":{"labels":{"team":"b"}}})");
  BOOST_TEST(concerns(other, ns));
  ns.old_object = std::exchange(ns.object, nullptr);
  BOOST_TEST(concerns(other, ns));
}

BOOST_AUTO_TEST_CASE(webhook_selects_objects_by_old_and_new_labels) {
  const json::object labelled = {{"objectSelector", {{"matchLabels", {{"w", "1"}}}}}};
  auto write = config_map("UPDATE");
  BOOST_TEST(concerns(labelled, write));
  write.object.at("metadata").as_object().erase("labels");
  BOOST_TEST(concerns(labelled, write));
  write.old_object.at("metadata").as_object().erase("labels");
  BOOST_TEST(!concerns(labelled, write));
  BOOST_TEST(concerns(labelled, config_map("DELETE")));
  BOOST_TEST(concerns({}, write));
}

BOOST_AUTO_TEST_CASE(webhooks_are_never_told_of_webhooks) {
  BOOST_TEST(
      !rule_concerns("*", of("admissionregistration.k8s.io", "validatingwebhookconfigurations")));
}

BOOST_AUTO_TEST_CASE(webhook_has_defaults_and_bounds) {
  auto made = webhook::parse(hook());
  BOOST_TEST((made.timeout == std::chrono::seconds(10)));
  BOOST_TEST(!made.may_fail);
  BOOST_TEST(!made.side_effects);
  BOOST_TEST(made.version == "v1");
  BOOST_TEST(made.error == "clientConfig is missing");
  made = webhook::parse(hook({{"timeoutSeconds", 99},
                              {"failurePolicy", "Ignore"},
                              {"sideEffects", "Some"},
                              {"admissionReviewVersions", {"v3", "v1beta1", "v1"}},
                              {"clientConfig", {{"url", "https://x/y"}}}}));
  BOOST_TEST((made.timeout == std::chrono::seconds(30)));
  BOOST_TEST(made.may_fail);
  BOOST_TEST(made.side_effects);
  BOOST_TEST(made.version == "v1beta1");
  BOOST_TEST(made.error == "");
}

BOOST_AUTO_TEST_CASE(invalid_webhook_fails_when_called) {
  const auto defect = [](json::object more) { return webhook::parse(hook(std::move(more))).error; };
  const json::object good = {{"url", "https://x/y"}};
  BOOST_TEST(defect({{"clientConfig", {{"url", "https://x"}, {"caBundle", "!"}}}}) ==
             "unable to load root certificates: caBundle is not base64");
  BOOST_TEST(defect({{"clientConfig", json::object()}}) ==
             "exactly one of url or service is required");
  BOOST_TEST(defect({{"clientConfig", good}, {"objectSelector", {{"matchLabels", 5}}}}) ==
             "objectSelector: matchLabels of a label selector must be an object");
  BOOST_TEST(
      defect({{"clientConfig", good}, {"admissionReviewVersions", boost::json::array{"v3"}}}) ==
      "webhook does not accept known AdmissionReview versions (v1, v1beta1)");
  BOOST_TEST(webhook::parse(5).error == "the webhook is no object");
}

// As a kube-apiserver asks.
BOOST_AUTO_TEST_CASE(review_tells_all_of_a_write) {
  auto write = config_map("UPDATE");
  write.subresource = "status";
  write.dry_run = true;
  write.options = {{"kind", "UpdateOptions"}, {"dryRun", boost::json::array{"All"}}};
  const auto asked = json::parse(review_text(write).body("v1", "U"));
  BOOST_TEST(asked.at("kind") == "AdmissionReview");
  BOOST_TEST(asked.at("apiVersion") == "admission.k8s.io/v1");
  const auto& request = asked.at("request").as_object();
  const auto part = [&request](std::string_view name) {
    const auto* const found = request.if_contains(name);
    return found != nullptr ? json::serialize(*found) : "";
  };
  BOOST_TEST(part("uid") == R"("U")");
  BOOST_TEST(part("kind") == R"({"group":"","version":"v1","kind":"ConfigMap"})");
  BOOST_TEST(part("resource") == R"({"group":"","version":"v1","resource":"configmaps"})");
  BOOST_TEST(part("requestKind") == part("kind"));
  BOOST_TEST(part("requestResource") == part("resource"));
  BOOST_TEST(part("subResource") == R"("status")");
  BOOST_TEST(part("requestSubResource") == R"("status")");
  BOOST_TEST(part("name") == R"("w1")");
  BOOST_TEST(part("namespace") == R"("default")");
  BOOST_TEST(part("operation") == R"("UPDATE")");
  BOOST_TEST(part("userInfo") ==
             R"({"username":"e2e-admin","groups":["system:masters","system:authenticated"]})");
  BOOST_TEST(part("object") == json::serialize(write.object));
  BOOST_TEST(part("oldObject") == json::serialize(write.old_object));
  BOOST_TEST(part("dryRun") == "true");
  BOOST_TEST(part("options") == R"({"kind":"UpdateOptions","dryRun":["All"]})");
}

BOOST_AUTO_TEST_CASE(review_omits_absent_fields) {
  auto write = config_map();
  auto asked = json::parse(review_text(write).body("v1beta1", "U"));
  BOOST_TEST(asked.at("apiVersion") == "admission.k8s.io/v1beta1");
  BOOST_TEST(asked.at("request").at("oldObject").is_null());
  BOOST_TEST(!asked.at("request").as_object().contains("subResource"));
  BOOST_TEST(json::serialize(asked.at("request").at("options")) ==
             R"({"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"})");
  write = of("", "namespaces");
  write.key = {"", "n"};
  asked = json::parse(review_text(write).body("v1", "U"));
  BOOST_TEST(asked.at("request").at("namespace") == "n");
  write = of("", "nodes");
  write.key = {};
  asked = json::parse(review_text(write).body("v1", "U"));
  BOOST_TEST(!asked.at("request").as_object().contains("name"));
  BOOST_TEST(!asked.at("request").as_object().contains("namespace"));
}

// Each as a kube-apiserver answered its client.
BOOST_AUTO_TEST_CASE(denial_is_reported_in_the_words_of_kube_apiserver) {
  const auto check = [](std::string_view response, unsigned code, std::string_view reason,
                        std::string_view rest) {
    const auto got = judged(review(response));
    BOOST_TEST(got.failed == "", response);
    BOOST_TEST_REQUIRE(got.refusal.has_value(), response);
    BOOST_TEST(got.refusal->code == code, response);
    BOOST_TEST(got.refusal->reason == reason, response);
    BOOST_TEST(got.refusal->message ==
               R"(admission webhook "h.example.com" denied the request)" + std::string(rest));
  };
  check(R"("allowed":false)", 400, "", " without explanation");
  check(R"("other":1)", 400, "", " without explanation");
  check(R"("allowed":false,"status":{"message":"no way"})", 400, "", ": no way");
  check(R"("allowed":false,"status":{"message":"no way","code":409,"reason":"Conflict"})", 409,
        "Conflict", ": no way");
  check(R"("allowed":false,"status":{"code":418})", 418, "", " without explanation");
  check(R"("allowed":false,"status":{"reason":"Because"})", 400, "Because", ": Because");
  check(R"("allowed":false,"status":{"code":200,"message":"m"})", 400, "", ": m");
  const auto detailed = judged(review(R"("allowed":false,"status":{"message":"m","details":
      {"causes":[{"field":"x","reason":"FieldValueInvalid","message":"y"}]}})"));
  BOOST_TEST_REQUIRE(detailed.refusal->causes.size() == 1u);
  BOOST_TEST(detailed.refusal->causes[0].field == "x");
  BOOST_TEST(detailed.refusal->causes[0].reason == "FieldValueInvalid");
  BOOST_TEST(detailed.refusal->causes[0].message == "y");
}

BOOST_AUTO_TEST_CASE(malformed_response_is_a_failure) {
  const auto check = [](std::string_view body, std::string_view why, unsigned status = 200) {
    BOOST_TEST(judged(body, status).failed == why, body);
  };
  check(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",
           "response":{"uid":"x","allowed":true}})",
        R"(expected response.uid="U", got "x")");
  check(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})",
        "webhook response was absent");
  check(R"({"response":{"uid":"U","allowed":true}})",
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=");
  check(R"({"kind":"Foo","apiVersion":"admission.k8s.io/v1","response":{}})",
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
        "admission.k8s.io/v1, Kind=Foo");
  check("", "0-length response with status code: 200");
  check("[]", "couldn't get version/kind; json parse error: the response is not an object");
  check("boom", R"(an error on the server ("boom") has prevented the request from succeeding)",
        500);
  check("", "the server could not find the requested resource", 404);
  check("", "the server responded with the status code 302 but did not return more information",
        302);
  check(review(R"("allowed":true,"patch":"e30=")"),
        "validating webhook may not return response.patch");
  check(review(R"("allowed":"yes")"), "response.allowed is neither true nor false");
  BOOST_TEST(judged("hello").failed.starts_with("couldn't get version/kind; json parse error: "));
  check(review(R"("allowed":true)"), "", 201);
}

BOOST_AUTO_TEST_CASE(older_review_asks_for_less) {
  const auto bare = judged(R"({"response":{"allowed":true}})", 200, "v1beta1");
  BOOST_TEST(bare.failed == "");
  BOOST_TEST(!bare.refusal.has_value());
  BOOST_TEST(
      judged(R"({"response":{"allowed":false,"uid":"x"}})", 200, "v1beta1").refusal.has_value());
  BOOST_TEST(judged(review(R"("allowed":true)"), 200, "v1beta1").failed ==
             "expected webhook response of admission.k8s.io/v1beta1, Kind=AdmissionReview, got "
             "admission.k8s.io/v1, Kind=AdmissionReview");
}

BOOST_AUTO_TEST_CASE(warnings_come_with_either_answer) {
  BOOST_TEST(judged(review(R"("allowed":true,"warnings":["w1","w2",5])")).warnings ==
                 (std::vector<std::string>{"w1", "w2"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
