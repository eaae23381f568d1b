#include "tests/unit/http/host.hpp"
#include "webhook.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(identity)

using namespace rw;
using namespace rw::conformance;

namespace {

/// A client of a user's, closed with the test.
struct as_user {
  as_user(sandbox& in, const std::string& user, k8s::client_options options = {})
      : here(in.server.here), api(in.server.client(user, std::move(options))) {}
  ~as_user() {
    here.call(api->close());
    here.on_thread([this] { api.reset(); });
  }
  as_user(const as_user&) = delete;
  as_user& operator=(const as_user&) = delete;

  host& here;
  std::unique_ptr<k8s::client> api;
};

/// Who wrote, as a webhook is told; `write` is to create a ConfigMap in the sandbox.
template <class Write>
json writer_of(sandbox& in, Write write) {
  webhook hook(in);
  hook.call_for(boost::json::array{rule(config_maps, {"CREATE"})});
  write();
  return hook.request().at("userInfo");
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(token_that_no_one_knows_is_unauthorized, sandbox) {
  const auto answer =
      server.http("GET", path(config_maps), {}, {{"authorization", "Bearer nonsense"}});
  BOOST_TEST(answer.status == 401u);
  BOOST_TEST(parse(answer.body) ==
             parse(R"({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                       "message": "Unauthorized", "reason": "Unauthorized", "code": 401})"));
}

BOOST_FIXTURE_TEST_CASE(anonymous_user_may_not_read, sandbox) {
  const auto answer = server.http("GET", path(config_maps), {}, {{"authorization", ""}});
  BOOST_TEST((answer.status == 401u || answer.status == 403u));
}

BOOST_FIXTURE_TEST_CASE(anonymous_user_may_read_version_and_health, sandbox) {
  for (const auto* probe : {"/version", "/readyz", "/livez", "/healthz"}) {
    BOOST_TEST(server.http("GET", probe, {}, {{"authorization", ""}}).status == 200u);
  }
}

BOOST_FIXTURE_TEST_CASE(user_without_rights_is_forbidden, sandbox) {
  as_user viewer(*this, "viewer");
  refuse(
      viewer.api->list(config_maps, all()),
      {403, "Forbidden",
       "configmaps is forbidden: User \"viewer\" cannot list resource \"configmaps\" in API group "
       "\"\" in the namespace \"" +
           ns + "\""});
}

BOOST_FIXTURE_TEST_CASE(certificate_is_an_identity, sandbox) {
  const auto told = writer_of(*this, [&] {
    as_user other(*this, "certificate");
    ok(other.api->create(config_maps, here(config_map("a"))));
  });
  BOOST_TEST(text(told, "/username") == "certificate");
  const auto groups = serialize(told.at("groups"));
  BOOST_TEST(groups.find("system:masters") != std::string::npos);
  BOOST_TEST(groups.find("system:authenticated") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(admin_may_act_as_another, sandbox) {
  const auto told = writer_of(*this, [&] {
    const auto answer =
        server.http("POST", path(config_maps), serialize(config_map("a")),
                    {{"impersonate-user", "somebody"}, {"impersonate-group", "system:masters"}});
    BOOST_TEST(answer.status == 201u);
  });
  BOOST_TEST(text(told, "/username") == "somebody");
}

BOOST_FIXTURE_TEST_CASE(access_review_reports_the_access_of_a_user, sandbox) {
  const auto answer = parse(ok(
      api.raw("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json",
              R"({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
          "spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}})")));
  BOOST_TEST(text(answer, "/status/allowed") == "true");
}

BOOST_FIXTURE_TEST_CASE(subject_access_review_reports_the_access_of_another, sandbox) {
  const auto review = [&](const std::string& user) {
    return parse(ok(api.raw(
        "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json",
        R"({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": ")" +
            user + R"(", "groups": ["system:authenticated"],
            "resourceAttributes": {"verb": "list", "resource": "pods", "namespace": ")" +
            ns + R"("}}})")));
  };
  BOOST_TEST(text(review("viewer"), "/status/allowed") == "false");
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns;
  ok(api.raw("POST", rbac + "/roles", "application/json",
             R"({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1",
                 "metadata": {"name": "r"},
                 "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]})"));
  ok(api.raw("POST", rbac + "/rolebindings", "application/json",
             R"({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1",
                 "metadata": {"name": "r"}, "subjects": [{"kind": "User", "name": "viewer"}],
                 "roleRef": {"kind": "Role", "name": "r",
                             "apiGroup": "rbac.authorization.k8s.io"}})"));
  const auto allowed = [&] { return text(review("viewer"), "/status/allowed") == "true"; };
  BOOST_TEST(http::test::eventually(allowed, std::chrono::seconds(5)));
}

BOOST_FIXTURE_TEST_CASE(requested_token_is_the_service_account_until_that_is_deleted, sandbox) {
  const std::string accounts = "/api/v1/namespaces/" + ns + "/serviceaccounts";
  ok(api.raw("POST", accounts, "application/json",
             R"({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "robot"}})"));
  const auto made = parse(ok(api.raw(
      "POST", accounts + "/robot/token", "application/json",
      R"({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}})")));
  const auto token = text(made, "/status/token");
  const auto review = [&] {
    return parse(
        ok(api.raw("POST", "/apis/authentication.k8s.io/v1/tokenreviews", "application/json",
                   R"({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1",
                                "spec": {"token": ")" +
                       token + R"("}})")));
  };
  BOOST_TEST(text(review(), "/status/user/username") == "system:serviceaccount:" + ns + ":robot");
  const auto get = [&] {
    return server.http("GET", path(config_maps), {}, {{"authorization", "Bearer " + token}}).status;
  };
  BOOST_TEST(get() == 403u);
  ok(api.raw("DELETE", accounts + "/robot", "", ""));
  BOOST_TEST(http::test::eventually([&] { return get() == 401u; }, std::chrono::seconds(20)));
}

BOOST_AUTO_TEST_SUITE_END()
