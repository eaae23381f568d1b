#include "k8s/devserver/admission.hpp"

#include "core/wake.hpp"
#include "k8s/base64.hpp"
#include "k8s/devserver/webhook.hpp"
#include "tls/transport.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/http/host.hpp"
#include "tests/unit/tls/pki.hpp"
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace rw::k8s::devserver;
using namespace rw::http::test;
using rw::k8s::object_key;
namespace asio = boost::asio;
namespace json = boost::json;

/// A write of a ConfigMap that a webhook may be told of.
admission_attributes config_map(std::string operation = "CREATE") {
  admission_attributes write;
  write.type = {{"", "v1", "ConfigMap"}, "configmaps", true};
  write.key = {"default", "w1"};
  const auto object = json::parse(R"({"kind":"ConfigMap","apiVersion":"v1",
      "metadata":{"name":"w1","namespace":"default","labels":{"w":"1"}},"data":{"a":"b"}})");
  if (operation != "DELETE") write.object = object;
  if (operation != "CREATE") write.old_object = object;
  write.operation = std::move(operation);
  write.namespace_labels = json::parse(R"({"team":"a"})");
  write.user = "e2e-admin";
  write.groups = {"system:masters", "system:authenticated"};
  return write;
}

admission_attributes of(std::string group, std::string plural, std::string subresource = "") {
  auto write = config_map("UPDATE");
  write.type.gvk.group = std::move(group);
  write.type.plural = std::move(plural);
  write.subresource = std::move(subresource);
  return write;
}

json::object rule(std::string_view resource, std::string_view scope = "*") {
  return {{"apiGroups", {"*"}},
          {"apiVersions", {"*"}},
          {"operations", {"*"}},
          {"resources", {resource}},
          {"scope", scope}};
}

json::object hook(json::object more = {}) {
  json::object made = {{"name", "h.example.com"},
                       {"admissionReviewVersions", {"v1"}},
                       {"sideEffects", "None"},
                       {"rules", json::array{rule("*")}}};
  for (auto& one : more) made[one.key()] = std::move(one.value());
  return made;
}

bool concerns(json::object more, const admission_attributes& write) {
  return webhook::parse(hook(std::move(more))).concerns(write);
}

bool rule_concerns(std::string_view resource, const admission_attributes& write,
                   std::string_view scope = "*") {
  return concerns({{"rules", json::array{rule(resource, scope)}}}, write);
}

/// What becomes of an answer of the webhook "h.example.com" to the review "U".
webhook_verdict judged(std::string_view body, unsigned status = 200, const char* version = "v1") {
  const auto by = webhook::parse(hook({{"admissionReviewVersions", {version}}}));
  return judge_answer(by, "U", status, body);
}

std::string review(std::string_view response) {
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"U",)" +
         std::string(response) + "}}";
}

/// Webhooks for real: what they are asked is kept, and the test says what they answer.
class reviewer final : public rw::http::handler {
 public:
  std::size_t body_limit(const rw::http::request&) const override { return 1u << 20; }

  asio::awaitable<void> handle(rw::http::request& from, rw::http::response& into) override {
    const auto asked = json::parse(from.body);
    ++calls;
    {
      const std::lock_guard lock(guard_);
      last_ = asked;
      target_ = from.target;
    }
    if (from.target.starts_with("/hang")) return hang();
    json::object response = {{"uid", asked.at("request").at("uid")}, {"allowed", true}};
    if (from.target.starts_with("/deny")) {
      response["allowed"] = false;
      response["status"] = {{"message", "no way"}, {"code", 409}, {"reason", "Conflict"}};
    }
    if (from.target.starts_with("/warn")) response["warnings"] = json::array{"careful"};
    into.status = from.target.starts_with("/break") ? 500 : 200;
    into.body = json::serialize(json::value{{"kind", "AdmissionReview"},
                                            {"apiVersion", asked.at("apiVersion")},
                                            {"response", std::move(response)}});
    return {};
  }

  json::value last() const {
    const std::lock_guard lock(guard_);
    return last_;
  }
  std::string target() const {
    const std::lock_guard lock(guard_);
    return target_;
  }

  std::atomic<int> calls{0};

 private:
  static asio::awaitable<void> hang() {
    const auto executor = co_await asio::this_coro::executor;
    rw::core::wake never(executor);
    co_await never.wait();
  }

  mutable std::mutex guard_;
  json::value last_;
  std::string target_;
};

/// A cluster's webhooks on a host, and a server that they call.
struct fixture {
  explicit fixture(std::vector<std::string> alpn = {"h2", "http/1.1"})
      : transport(rw::tls::test::good(rw::tls::make_server_transport(
            rw::tls::test::holding(rw::tls::test::the_pki().server), {.alpn = std::move(alpn)}))),
        server(here, *transport, answers),
        hooks(std::make_unique<webhooks>(
            here.executor(),
            webhooks::environment{here.clock, here.watchdog, here.log, here.metrics})) {}
  ~fixture() {
    here.call(hooks->close());
    here.stop();
  }

  std::string url(std::string_view path) const {
    return "https://127.0.0.1:" + std::to_string(server.address.port()) + std::string(path);
  }
  json::object client_config(std::string_view path) const {
    return {{"url", url(path)},
            {"caBundle", rw::k8s::base64_encode(rw::tls::test::the_pki().ca.certificate_pem())}};
  }

  /// A configuration with one webhook that is called at `path`.
  void configure(std::string_view path, json::object more = {}, const char* name = "t") {
    more["clientConfig"] = client_config(path);
    configure_as(std::move(more), name);
  }
  void configure_as(json::object more, const char* name = "t") {
    const json::value configuration = {{"webhooks", json::array{hook(std::move(more))}}};
    here.on_thread([&] { hooks->set_configuration(name, configuration); });
  }

  outcome<std::vector<std::string>> admit(admission_attributes write = config_map()) {
    return here.call(hooks->admit(std::move(write)));
  }

  void check_refused(const std::string& message, unsigned code = 500,
                     admission_attributes write = config_map()) {
    const auto got = admit(std::move(write));
    BOOST_TEST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().message == message);
    BOOST_TEST(got.error().code == code);
  }

  double connections() {
    return here.metric("rw_http_client_connections_total{client=\"webhook\"}");
  }
  double counted(const std::string& result) {
    return here.metric("rw_devserver_webhook_calls_total{result=\"" + result + "\"}");
  }

  host here;
  reviewer answers;
  std::unique_ptr<rw::core::transport> transport;
  running_server server;
  std::unique_ptr<webhooks> hooks;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(admission)

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
    const json::object one = {{"apiGroups", {group}},
                              {"apiVersions", {version}},
                              {"operations", {operation}},
                              {"resources", {"*"}}};
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

BOOST_AUTO_TEST_CASE(objects_are_selected_by_what_they_were_or_will_be) {
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

BOOST_AUTO_TEST_CASE(a_webhook_has_defaults_and_bounds) {
  auto made = webhook::parse(hook());
  BOOST_TEST((made.timeout == std::chrono::seconds(10)));
  BOOST_TEST(!made.may_fail);
  BOOST_TEST(!made.side_effects);
  BOOST_TEST(made.version == "v1");
  BOOST_TEST(made.defect == "clientConfig is missing");
  made = webhook::parse(hook({{"timeoutSeconds", 99},
                              {"failurePolicy", "Ignore"},
                              {"sideEffects", "Some"},
                              {"admissionReviewVersions", {"v3", "v1beta1", "v1"}},
                              {"clientConfig", {{"url", "https://x/y"}}}}));
  BOOST_TEST((made.timeout == std::chrono::seconds(30)));
  BOOST_TEST(made.may_fail);
  BOOST_TEST(made.side_effects);
  BOOST_TEST(made.version == "v1beta1");
  BOOST_TEST(made.defect == "");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_webhook_is_told_when_it_is_called) {
  const auto defect = [](json::object more) {
    return webhook::parse(hook(std::move(more))).defect;
  };
  const json::object good = {{"url", "https://x/y"}};
  BOOST_TEST(defect({{"clientConfig", {{"url", "https://x"}, {"caBundle", "!"}}}}) ==
             "unable to load root certificates: caBundle is not base64");
  BOOST_TEST(defect({{"clientConfig", json::object()}}) ==
             "exactly one of url or service is required");
  BOOST_TEST(defect({{"clientConfig", good}, {"objectSelector", {{"matchLabels", 5}}}}) ==
             "objectSelector: matchLabels of a label selector must be an object");
  BOOST_TEST(defect({{"clientConfig", good}, {"admissionReviewVersions", {"v3"}}}) ==
             "webhook does not accept known AdmissionReview versions (v1, v1beta1)");
  BOOST_TEST(webhook::parse(5).defect == "the webhook is no object");
}

// As a kube-apiserver asks.
BOOST_AUTO_TEST_CASE(a_review_tells_all_of_a_write) {
  auto write = config_map("UPDATE");
  write.subresource = "status";
  write.dry_run = true;
  write.options = {{"kind", "UpdateOptions"}, {"dryRun", {"All"}}};
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

BOOST_AUTO_TEST_CASE(a_review_leaves_out_what_there_is_not) {
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
BOOST_AUTO_TEST_CASE(a_refusal_is_told_in_the_words_of_the_real_one) {
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

BOOST_AUTO_TEST_CASE(an_answer_that_is_none_is_a_failure) {
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
  check("[]", "couldn't get version/kind; json parse error: the answer is no object");
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

BOOST_AUTO_TEST_CASE(the_older_review_asks_for_less) {
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

BOOST_AUTO_TEST_CASE(a_webhook_is_called_over_http2_and_its_connection_kept) {
  fixture here;
  here.configure("/x", {{"timeoutSeconds", 5}});
  for (int i = 0; i < 5; ++i) {
    const auto got = here.admit();
    BOOST_TEST_REQUIRE(got.has_value());
    BOOST_TEST(got->empty());
  }
  BOOST_TEST(here.answers.target() == "/x?timeout=5s");
  BOOST_TEST(here.answers.last().at("request").at("name") == "w1");
  BOOST_TEST(here.answers.last().at("request").at("uid").as_string().size() == 36u);
  BOOST_TEST(here.connections() == 1);
  BOOST_TEST(here.server.requests("h2") == 5);
  BOOST_TEST(here.counted("allowed") == 5);
}

BOOST_AUTO_TEST_CASE(a_webhook_is_called_over_http1_where_it_speaks_no_other) {
  fixture here({"http/1.1"});
  here.configure("/x");
  for (int i = 0; i < 5; ++i) BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.connections() == 1);
  BOOST_TEST(here.server.requests("http/1.1") == 5);
}

BOOST_AUTO_TEST_CASE(no_webhook_is_called_where_none_is_concerned) {
  fixture here;
  BOOST_TEST(here.hooks->empty());
  BOOST_TEST(here.admit().has_value());
  here.configure("/deny", {{"objectSelector", {{"matchLabels", {{"w", "2"}}}}}});
  BOOST_TEST(!here.hooks->empty());
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.answers.calls == 0);
  here.here.on_thread([&] { here.hooks->set_configuration("t", nullptr); });
  BOOST_TEST(here.hooks->empty());
}

BOOST_AUTO_TEST_CASE(a_refusal_is_the_answer_whoever_else_agrees) {
  fixture here;
  here.configure("/x", {{"name", "a.example.com"}}, "a");
  here.configure("/deny", {{"name", "b.example.com"}}, "b");
  here.check_refused(R"(admission webhook "b.example.com" denied the request: no way)", 409);
  BOOST_TEST(here.answers.calls == 2);
  BOOST_TEST(here.counted("allowed") == 1);
  BOOST_TEST(here.counted("denied") == 1);
  here.here.on_thread([&] { here.hooks->set_configuration("b", nullptr); });
  BOOST_TEST(here.admit().has_value());
}

BOOST_AUTO_TEST_CASE(warnings_reach_the_writer_in_the_order_of_the_webhooks) {
  fixture here;
  here.configure("/warn", {{"name", "a.example.com"}}, "a");
  here.configure("/warn", {{"name", "b.example.com"}}, "b");
  const auto got = here.admit();
  BOOST_TEST_REQUIRE(got.has_value());
  BOOST_TEST(*got == (std::vector<std::string>{"careful", "careful"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_webhook_that_fails_refuses_the_write_unless_it_may_fail) {
  fixture here;
  here.configure("/break");
  const auto got = here.admit();
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().code == 500u);
  BOOST_TEST(got.error().reason == "InternalError");
  BOOST_TEST(got.error().message.starts_with(
      R"(Internal error occurred: failed calling webhook "h.example.com": an error on the server)"));
  BOOST_TEST_REQUIRE(got.error().causes.size() == 1u);
  BOOST_TEST("Internal error occurred: " + got.error().causes[0].message == got.error().message);
  here.configure("/break", {{"failurePolicy", "Ignore"}});
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.counted("failed") == 1);
  BOOST_TEST(here.counted("ignored") == 1);
}

BOOST_AUTO_TEST_CASE(a_webhook_has_its_timeout_and_no_more) {
  fixture here;
  here.configure("/hang", {{"timeoutSeconds", 1}});
  here.check_refused(R"(Internal error occurred: failed calling webhook "h.example.com": Post ")" +
                     here.url("/hang?timeout=1s") + R"(": context deadline exceeded)");
}

BOOST_AUTO_TEST_CASE(a_webhook_that_cannot_be_reached_is_named_with_its_url) {
  fixture here;
  auto config = here.client_config("/x");
  config["url"] = "https://127.0.0.1:1/x";
  here.configure_as({{"clientConfig", config}});
  here.check_refused(
      R"(Internal error occurred: failed calling webhook "h.example.com": )"
      R"(Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused)");
}

BOOST_AUTO_TEST_CASE(a_webhook_that_nobody_vouches_for_is_not_called) {
  fixture here;
  for (const auto& authorities :
       {rw::k8s::base64_encode(rw::tls::test::the_pki().stranger.certificate_pem()),
        std::string()}) {
    auto config = here.client_config("/x");
    config["caBundle"] = authorities;
    here.configure_as({{"clientConfig", config}});
    const auto got = here.admit();
    BOOST_TEST_REQUIRE(got.has_error());
    BOOST_TEST(got.error().message.find("tls: ") != std::string::npos, got.error().message);
    BOOST_TEST(here.answers.calls == 0);
  }
  auto config = here.client_config("/x");
  config["caBundle"] = rw::k8s::base64_encode("no certificate");
  here.configure_as({{"clientConfig", config}});
  const auto got = here.admit();
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().message.find("unable to load root certificates") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_url_that_is_none_is_a_failure) {
  fixture here;
  for (const auto* url : {"http://127.0.0.1/x", "https://", "x", "https://a b/"}) {
    here.configure_as({{"clientConfig", {{"url", url}}}});
    const auto got = here.admit();
    BOOST_TEST_REQUIRE(got.has_error(), url);
    BOOST_TEST(got.error().code == 500u);
  }
}

BOOST_AUTO_TEST_CASE(a_dry_run_is_refused_by_side_effects) {
  fixture here;
  auto dry = config_map();
  dry.dry_run = true;
  here.configure("/x", {{"sideEffects", "NoneOnDryRun"}});
  BOOST_TEST(here.admit(dry).has_value());
  BOOST_TEST(here.answers.last().at("request").at("dryRun").as_bool());
  for (const auto* effects : {"Some", "Unknown"}) {
    here.configure("/x", {{"sideEffects", effects}, {"failurePolicy", "Ignore"}});
    here.check_refused(R"(admission webhook "h.example.com" does not support dry run)", 400, dry);
    BOOST_TEST(here.admit().has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_service_is_reached_where_the_resolver_says) {
  fixture here;
  object_key asked;
  unsigned asked_port = 0;
  std::string answer;
  here.here.on_thread([&] {
    here.hooks->resolve_services_by([&](const object_key& service, unsigned port) {
      asked = service;
      asked_port = port;
      return answer;
    });
  });
  auto config = here.client_config("/x");
  config.erase("url");
  config["service"] = {{"namespace", "n"}, {"name", "s"}, {"path", "/p"}, {"port", 8443}};
  here.configure_as({{"clientConfig", config}});
  here.check_refused(R"(Internal error occurred: failed calling webhook "h.example.com": )"
                     R"(Post "https://s.n.svc:8443/p?timeout=10s": service "s" not found)");
  BOOST_TEST((asked == object_key{"n", "s"}));
  BOOST_TEST(asked_port == 8443u);
  // The server's certificate is not for the name of a service, so the handshake says no.
  answer = here.url("");
  const auto got = here.admit();
  BOOST_TEST_REQUIRE(got.has_error());
  BOOST_TEST(got.error().message.find("https://s.n.svc:8443/p?timeout=10s\": tls: ") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_configuration_that_changes_replaces_its_connections) {
  fixture here;
  here.configure("/x");
  BOOST_TEST(here.admit().has_value());
  here.configure("/x");
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.connections() == 1);
  here.configure("/y");
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST(here.answers.target() == "/y?timeout=10s");
  BOOST_TEST(here.connections() == 2);
  here.here.on_thread([&] { here.hooks->set_configuration("t", nullptr); });
  BOOST_TEST(here.server.is_left_alone());
}

BOOST_AUTO_TEST_CASE(a_configuration_may_change_under_a_call) {
  fixture here;
  here.configure("/hang", {{"timeoutSeconds", 1}});
  auto pending =
      asio::co_spawn(here.here.context, here.hooks->admit(config_map()), asio::use_future);
  BOOST_TEST(eventually([&] { return here.answers.calls == 1; }));
  here.here.on_thread([&] { here.hooks->set_configuration("t", nullptr); });
  BOOST_TEST(here.admit().has_value());
  BOOST_TEST_REQUIRE((pending.wait_for(patience) == std::future_status::ready));
  BOOST_TEST(pending.get().has_error());
  BOOST_TEST(here.server.is_left_alone());
}

BOOST_AUTO_TEST_CASE(a_writer_that_gives_up_takes_its_calls_along) {
  fixture here;
  here.configure("/hang", {{"timeoutSeconds", 30}});
  asio::cancellation_signal give_up;
  auto pending = asio::co_spawn(here.here.context, here.hooks->admit(config_map()),
                                asio::bind_cancellation_slot(give_up.slot(), asio::use_future));
  BOOST_TEST(eventually([&] { return here.answers.calls == 1; }));
  here.here.on_thread([&] { give_up.emit(asio::cancellation_type::terminal); });
  BOOST_TEST_REQUIRE((pending.wait_for(patience) == std::future_status::ready));
  BOOST_CHECK_THROW(pending.get(), boost::system::system_error);
  here.configure("/x");
  BOOST_TEST(here.admit().has_value());
}

BOOST_AUTO_TEST_CASE(closing_ends_calls_under_way) {
  std::future<outcome<std::vector<std::string>>> pending;
  {
    fixture here;
    here.configure("/hang", {{"timeoutSeconds", 30}});
    pending = asio::co_spawn(here.here.context, here.hooks->admit(config_map()), asio::use_future);
    BOOST_TEST(eventually([&] { return here.answers.calls == 1; }));
  }
  BOOST_TEST_REQUIRE((pending.wait_for(patience) == std::future_status::ready));
  BOOST_TEST(pending.get().has_error());
}

BOOST_AUTO_TEST_CASE(many_writes_share_a_connection) {
  fixture here;
  here.configure("/x");
  std::vector<std::future<outcome<std::vector<std::string>>>> pending;
  for (int i = 0; i < 200; ++i) {
    pending.push_back(
        asio::co_spawn(here.here.context, here.hooks->admit(config_map()), asio::use_future));
  }
  for (auto& one : pending) {
    BOOST_TEST_REQUIRE((one.wait_for(patience) == std::future_status::ready));
    BOOST_TEST(one.get().has_value());
  }
  BOOST_TEST(here.connections() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
