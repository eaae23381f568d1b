#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(pod)

using namespace rw;
using namespace rw::conformance;

namespace {

std::string binding_to(std::string_view node) {
  return R"({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
             "target": {"kind": "Node", "name": ")" +
         std::string(node) + "\"}}";
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(pod_is_bound_to_a_node_once, sandbox) {
  create(pods, simple_pod("a"));
  const auto path_of = path(pods, "a", "binding");
  ok(api.raw("POST", path_of, "application/json", binding_to("n1")));
  const auto bound = get(pods, "a");
  BOOST_TEST(text(bound, "/spec/nodeName") == "n1");
  BOOST_TEST(serialize(bound.at_pointer("/status/conditions")).find("PodScheduled") !=
             std::string::npos);
  refuse(api.raw("POST", path_of, "application/json", binding_to("n2")),
         {409, "Conflict", "pod a is already assigned to node \"n1\""});
}

BOOST_FIXTURE_TEST_CASE(pod_keeps_its_spec, sandbox) {
  create(pods, simple_pod("a"));
  merge(pods, "a", R"({"metadata": {"labels": {"l": "x"}}})");
  refuse(
      api.patch(pods, key("a"), k8s::patch_type::merge, parse(R"({"spec": {"nodeName": "n1"}})")),
      {422, "Invalid", "spec: Forbidden: pod updates may not change fields other than"});
}

BOOST_FIXTURE_TEST_CASE(volume_without_a_source_is_an_empty_directory, sandbox) {
  const auto made =
      create(pods, with(simple_pod("a"), "/spec/volumes", parse(R"([{"name": "v"}])")));
  BOOST_TEST(made.at_pointer("/spec/volumes/0/emptyDir") == parse("{}"));
}

BOOST_FIXTURE_TEST_CASE(resource_without_a_prefix_is_known_and_not_negative, sandbox) {
  for (const auto* const limits : {R"({"apples": "1"})", R"({"cpu": "-1"})"}) {
    auto limited = simple_pod("a");
    limited.at_pointer("/spec/containers/0").as_object()["resources"] = {{"limits", parse(limits)}};
    refuse(api.create(pods, here(std::move(limited))), {422, "Invalid", "resources.limits["});
  }
}

BOOST_AUTO_TEST_SUITE_END()
