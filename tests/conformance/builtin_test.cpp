#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(builtin)

using namespace rw;
using namespace rw::conformance;

// What a controller-runtime operator does with built-in kinds: protobuf, Services, wrong values.

namespace {

constexpr auto protobuf = "application/vnd.kubernetes.protobuf";

json service(std::string_view name, int port) {
  return object(services, name,
                {{"spec",
                  {{"selector", {{"app", "a"}}},
                   {"ports", boost::json::array{{{"name", "http"}, {"port", port}}}}}}});
}

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

BOOST_FIXTURE_TEST_CASE(service_that_was_created_can_be_applied, sandbox) {
  const auto made = create(services, service("a", 80), {.field_manager = "m"});
  const auto applied = apply(services, service("a", 82), {.field_manager = "m", .force = true});
  BOOST_TEST(text(applied, "/spec/clusterIP") == text(made, "/spec/clusterIP"));
}

BOOST_FIXTURE_TEST_CASE(values_of_another_type_are_a_bad_request, sandbox) {
  refuse(api.create(deployments, here(with(deployment("a"), "/spec/replicas", "three"))),
         {400, "BadRequest", "Deployment in version \"v1\" cannot be handled as a Deployment"});
}

BOOST_FIXTURE_TEST_CASE(values_that_no_object_may_have_are_invalid, sandbox) {
  refuse(api.create(services, here(service("a", 70000))), {422, "Invalid", "spec.ports[0].port"});
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

BOOST_AUTO_TEST_SUITE_END()
