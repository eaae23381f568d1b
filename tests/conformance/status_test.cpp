#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(status)

using namespace rw;
using namespace rw::conformance;

namespace {

constexpr auto in_status = "status";

/// A sandbox with the Gadget `a` of size 1, whose status is {ready: true}.
struct one_gadget : sandbox {
  one_gadget() {
    create(gadgets(), gadget("a", {{"size", 1}}));
    made = merge(gadgets(), "a", R"({"status": {"ready": true}})", {.subresource = in_status});
  }
  json made;
};

json scalable(const std::string& group) {
  auto crd = definition(group, "Scalable", "scalables", parse(R"({"type": "object", "properties": {
    "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 0, "maximum": 9}}},
    "status": {"type": "object", "properties": {"size": {"type": "integer"}, "select": {"type": "string"}}}}})"));
  return with(std::move(crd), "/spec/versions/0/subresources", parse(R"({"status": {}, "scale": {
    "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size",
    "labelSelectorPath": ".status.select"}})"));
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(object_is_created_without_its_status, sandbox) {
  const auto made = create(gadgets(), with(gadget("a"), "/status", {{"ready", true}}));
  BOOST_TEST(!has(made, "/status"));
}

BOOST_FIXTURE_TEST_CASE(update_of_the_object_leaves_the_status, one_gadget) {
  auto wanted = with(made, "/spec/size", 2);
  wanted = with(std::move(wanted), "/status", {{"ready", false}});
  const auto next = update(gadgets(), wanted);
  BOOST_TEST(text(next, "/spec/size") == "2");
  BOOST_TEST(next.at("status") == parse(R"({"ready": true})"));
}

BOOST_FIXTURE_TEST_CASE(update_of_the_status_leaves_the_object, one_gadget) {
  auto wanted = with(made, "/spec/size", 2);
  wanted = with(std::move(wanted), "/status", {{"ready", false}});
  wanted = with(std::move(wanted), "/metadata/labels", {{"l", "m"}});
  const auto next = update(gadgets(), wanted, {.subresource = in_status});
  BOOST_TEST(text(next, "/status/ready") == "false");
  BOOST_TEST(text(next, "/spec/size") == "1");
  BOOST_TEST(!has(next, "/metadata/labels"));
}

BOOST_FIXTURE_TEST_CASE(change_of_the_status_is_a_new_version_and_no_new_generation, one_gadget) {
  const auto next =
      merge(gadgets(), "a", R"({"status": {"ready": false}})", {.subresource = in_status});
  BOOST_TEST(version(next) > version(made));
  BOOST_TEST(text(next, "/metadata/generation") == "1");
}

BOOST_FIXTURE_TEST_CASE(change_of_nothing_in_the_status_leaves_the_version, one_gadget) {
  BOOST_TEST(merge(gadgets(), "a", R"({"status": {"ready": true}})", {.subresource = in_status}) ==
             made);
}

BOOST_FIXTURE_TEST_CASE(patch_of_the_object_leaves_the_status, one_gadget) {
  const auto next = merge(gadgets(), "a", R"({"spec": {"size": 3}, "status": {"ready": false}})");
  BOOST_TEST(text(next, "/spec/size") == "3");
  BOOST_TEST(text(next, "/status/ready") == "true");
}

BOOST_FIXTURE_TEST_CASE(patch_of_the_status_leaves_the_object, one_gadget) {
  const auto next = merge(gadgets(), "a", R"({"spec": {"size": 3}, "status": {"more": [1, 2]}})",
                          {.subresource = in_status});
  BOOST_TEST(text(next, "/spec/size") == "1");
  BOOST_TEST(next.at("status") == parse(R"({"ready": true, "more": [1, 2]})"));
}

BOOST_FIXTURE_TEST_CASE(json_patch_reaches_the_status, one_gadget) {
  const auto next =
      ok(api.patch(gadgets(), key("a"), k8s::patch_type::json,
                   parse(R"([{"op": "replace", "path": "/status/ready", "value": false}])"),
                   {.subresource = in_status}));
  BOOST_TEST(text(next, "/status/ready") == "false");
}

BOOST_FIXTURE_TEST_CASE(update_of_the_status_at_an_old_version_is_a_conflict, one_gadget) {
  merge(gadgets(), "a", R"({"spec": {"size": 3}})");
  refuse(api.update(gadgets(), with(made, "/status/ready", false), {.subresource = in_status}),
         {409, "Conflict", "the object has been modified"});
}

BOOST_FIXTURE_TEST_CASE(status_is_read_with_the_object, one_gadget) {
  const auto got = parse(ok(api.raw("GET", path(gadgets(), "a", in_status), "", "")));
  BOOST_TEST(got == made);
}

BOOST_FIXTURE_TEST_CASE(status_is_not_created, sandbox) {
  refuse(api.update(gadgets(), here(with(gadget("none"), "/metadata/resourceVersion", "1")),
                    {.subresource = in_status}),
         {404, "NotFound"});
}

BOOST_FIXTURE_TEST_CASE(dry_run_leaves_the_status, one_gadget) {
  const auto seen = merge(gadgets(), "a", R"({"status": {"ready": false}})",
                          {.dry_run = true, .subresource = in_status});
  BOOST_TEST(text(seen, "/status/ready") == "false");
  BOOST_TEST(get(gadgets(), "a") == made);
}

BOOST_FIXTURE_TEST_CASE(kind_without_the_subresource_has_a_plain_status, sandbox) {
  const auto plains = define(
      definition(server.unique("p") + ".example.com", "Plain", "plains",
                 parse(R"({"type": "object", "x-kubernetes-preserve-unknown-fields": true})")));
  const auto made = create(plains, object(plains, "a", {{"status", {{"ready", true}}}}));
  BOOST_TEST(text(made, "/status/ready") == "true");
  const auto next = merge(plains, "a", R"({"status": {"ready": false}})");
  BOOST_TEST(text(next, "/status/ready") == "false");
  BOOST_TEST(text(next, "/metadata/generation") == "2");
  refuse(api.patch(plains, key("a"), k8s::patch_type::merge, parse(R"({"status": {}})"),
                   {.subresource = in_status}),
         {404, "NotFound"});
}

BOOST_FIXTURE_TEST_CASE(deployment_has_a_status_of_its_own, sandbox) {
  const auto made = create(
      deployments, with(deployment("a"), "/status", {{"readyReplicas", 7}, {"replicas", 7}}));
  BOOST_TEST(!has(made, "/status/readyReplicas"));
  const auto next = merge(deployments, "a", R"({"status": {"replicas": 1, "readyReplicas": 1}})",
                          {.subresource = in_status});
  BOOST_TEST(text(next, "/status/readyReplicas") == "1");
  BOOST_TEST(text(next, "/metadata/generation") == "1");
}

BOOST_FIXTURE_TEST_CASE(config_map_has_no_status, sandbox) {
  create(config_maps, config_map("a"));
  refuse(api.patch(config_maps, key("a"), k8s::patch_type::merge, parse("{}"),
                   {.subresource = in_status}),
         {404, "NotFound", "the server could not find the requested resource"});
}

BOOST_FIXTURE_TEST_CASE(scale_shows_the_paths_of_the_definition, sandbox) {
  const auto type = define(scalable(server.unique("s") + ".example.com"));
  create(type, object(type, "a", {{"spec", {{"size", 2}}}}));
  merge(type, "a", R"({"status": {"size": 1, "select": "l=m"}})", {.subresource = in_status});
  const auto scale = parse(ok(api.raw("GET", path(type, "a", "scale"), "", "")));
  BOOST_TEST(text(scale, "/kind") == "Scale");
  BOOST_TEST(text(scale, "/apiVersion") == "autoscaling/v1");
  BOOST_TEST(scale.at("spec") == parse(R"({"replicas": 2})"));
  BOOST_TEST(scale.at("status") == parse(R"({"replicas": 1, "selector": "l=m"})"));
}

BOOST_FIXTURE_TEST_CASE(scale_changes_the_paths_of_the_definition, sandbox) {
  const auto type = define(scalable(server.unique("s") + ".example.com"));
  create(type, object(type, "a", {{"spec", {{"size", 2}}}}));
  const auto scale = merge(type, "a", R"({"spec": {"replicas": 5}})", {.subresource = "scale"});
  BOOST_TEST(text(scale, "/spec/replicas") == "5");
  const auto next = get(type, "a");
  BOOST_TEST(text(next, "/spec/size") == "5");
  BOOST_TEST(text(next, "/metadata/generation") == "2");
  refuse(api.patch(type, key("a"), k8s::patch_type::merge, parse(R"({"spec": {"replicas": 10}})"),
                   {.subresource = "scale"}),
         {422, "Invalid", "spec.size"});
}

BOOST_FIXTURE_TEST_CASE(deployment_is_scaled, sandbox) {
  create(deployments, deployment("a"));
  const auto scale =
      merge(deployments, "a", R"({"spec": {"replicas": 4}})", {.subresource = "scale"});
  BOOST_TEST(text(scale, "/kind") == "Scale");
  BOOST_TEST(text(get(deployments, "a"), "/spec/replicas") == "4");
}

BOOST_AUTO_TEST_SUITE_END()
