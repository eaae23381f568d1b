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
  const auto answer = server.http(
      "PATCH", path(leases, "l"),
      R"({"spec": {"leaseDurationSeconds": 1099511627776, "unknownField": {"a": "b"}}})",
      {{"content-type", "application/strategic-merge-patch+json"}});
  BOOST_TEST(answer.status == 422u);
  const bool zero = answer.body.find("leaseDurationSeconds: Invalid value: 0") != std::string::npos;
  BOOST_TEST(zero, answer.body);
}

BOOST_AUTO_TEST_SUITE_END()
