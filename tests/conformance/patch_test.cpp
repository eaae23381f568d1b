#include "sandbox.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(patch)

using namespace rw;
using namespace rw::conformance;
using k8s::patch_type;

namespace {

/// A sandbox with the ConfigMap `a`, {a: 1, b: 2}.
struct one_map : sandbox {
  const json made = create(config_maps, config_map("a", {{"a", "1"}, {"b", "2"}}));

  json patched(patch_type how, std::string_view change, place from = place::current()) {
    return ok(api.patch(config_maps, key("a"), how, parse(change)), from);
  }
  void refuse_patch(patch_type how, std::string_view change, const refusal& as,
                    place from = place::current()) {
    refuse(api.patch(config_maps, key("a"), how, parse(change)), as, from);
    BOOST_TEST(get(config_maps, "a") == made);
  }
};

/// A sandbox with the Deployment `a`, patched strategically.
struct one_deployment : sandbox {
  const json made = create(deployments, with(deployment("a"), "/metadata/finalizers",
                                             {"example.com/one", "example.com/two"}));

  json patched(std::string_view change, place from = place::current()) {
    return ok(api.patch(deployments, key("a"), patch_type::strategic_merge, parse(change)), from);
  }
  /// The same, of the pods' spec.
  json pods(const std::string& change, place from = place::current()) {
    return patched(R"({"spec": {"template": {"spec": )" + change + "}}}", from);
  }
  /// "name=image" of all containers.
  static std::string images(const json& of) {
    std::string all_of_them;
    for (const auto& one : of.at_pointer("/spec/template/spec/containers").as_array()) {
      all_of_them += text(one, "/name") + "=" + text(one, "/image") + " ";
    }
    return all_of_them;
  }
  ~one_deployment() {
    static_cast<void>(server.here.call(api.patch(deployments, key("a"), patch_type::merge,
                                                 parse(R"({"metadata": {"finalizers": null}})"))));
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(merge_patch_adds_changes_and_removes, one_map) {
  const auto next = patched(patch_type::merge, R"({"data": {"a": null, "b": "3", "c": "4"}})");
  BOOST_TEST(next.at("data") == parse(R"({"b": "3", "c": "4"})"));
  BOOST_TEST(get(config_maps, "a") == next);
}

BOOST_FIXTURE_TEST_CASE(merge_patch_replaces_lists, sandbox) {
  create(gadgets(), gadget("a", parse(R"({"tags": ["x", "y"], "parts": [{"name": "p"}]})")));
  const auto next = merge(gadgets(), "a", R"({"spec": {"tags": ["z"], "parts": []}})");
  BOOST_TEST(next.at_pointer("/spec/tags") == parse(R"(["z"])"));
  BOOST_TEST(next.at_pointer("/spec/parts") == parse("[]"));
}

BOOST_FIXTURE_TEST_CASE(merge_patch_that_changes_nothing_leaves_the_version, one_map) {
  BOOST_TEST(patched(patch_type::merge, R"({"data": {"a": "1", "z": null}})") == made);
}

BOOST_FIXTURE_TEST_CASE(merge_patch_at_an_old_version_is_a_conflict, one_map) {
  const auto at = text(made, "/metadata/resourceVersion");
  merge(config_maps, "a", R"({"data": {"a": "newer"}})");
  refuse(api.patch(config_maps, key("a"), patch_type::merge,
                   {{"metadata", {{"resourceVersion", at}}}, {"data", {{"a", "mine"}}}}),
         {409, "Conflict", "the object has been modified"});
  BOOST_TEST(text(get(config_maps, "a"), "/data/a") == "newer");
}

BOOST_FIXTURE_TEST_CASE(merge_patch_at_the_current_version_is_done, one_map) {
  const auto at = text(made, "/metadata/resourceVersion");
  const auto next =
      ok(api.patch(config_maps, key("a"), patch_type::merge,
                   {{"metadata", {{"resourceVersion", at}}}, {"data", {{"a", "mine"}}}}));
  BOOST_TEST(text(next, "/data/a") == "mine");
}

BOOST_FIXTURE_TEST_CASE(json_patch_is_done_in_its_order, one_map) {
  const auto next = patched(patch_type::json, R"([
    {"op": "test", "path": "/data/a", "value": "1"},
    {"op": "add", "path": "/data/c", "value": "3"},
    {"op": "move", "from": "/data/c", "path": "/data/d"},
    {"op": "copy", "from": "/data/d", "path": "/data/e"},
    {"op": "replace", "path": "/data/a", "value": "9"},
    {"op": "remove", "path": "/data/b"}])");
  BOOST_TEST(next.at("data") == parse(R"({"a": "9", "d": "3", "e": "3"})"));
}

BOOST_FIXTURE_TEST_CASE(json_patch_with_a_failed_test_changes_nothing, one_map) {
  refuse_patch(patch_type::json, R"([
    {"op": "replace", "path": "/data/b", "value": "9"},
    {"op": "test", "path": "/data/a", "value": "another"}])",
               {422, "Invalid"});
}

BOOST_FIXTURE_TEST_CASE(json_patch_of_an_absent_field_changes_nothing, one_map) {
  refuse_patch(patch_type::json, R"([{"op": "remove", "path": "/data/none"}])", {422, "Invalid"});
  refuse_patch(patch_type::json,
               R"([{"op": "add", "path": "/metadata/labels/l", "value": "no labels yet"}])",
               {422, "Invalid"});
}

BOOST_FIXTURE_TEST_CASE(json_patch_may_put_into_lists, sandbox) {
  create(gadgets(), gadget("a", parse(R"({"plain": ["b", "d"]})")));
  const auto next = ok(api.patch(gadgets(), key("a"), patch_type::json, parse(R"([
    {"op": "add", "path": "/spec/plain/0", "value": "a"},
    {"op": "add", "path": "/spec/plain/2", "value": "c"},
    {"op": "add", "path": "/spec/plain/-", "value": "e"}])")));
  BOOST_TEST(next.at_pointer("/spec/plain") == parse(R"(["a", "b", "c", "d", "e"])"));
}

BOOST_FIXTURE_TEST_CASE(json_patch_escapes_slashes_in_names, one_map) {
  patched(patch_type::merge, R"({"metadata": {"annotations": {"example.com/x": "1"}}})");
  const auto next = patched(
      patch_type::json,
      R"([{"op": "replace", "path": "/metadata/annotations/example.com~1x", "value": "2"}])");
  BOOST_TEST(next.at_pointer("/metadata/annotations") == parse(R"({"example.com/x": "2"})"));
}

BOOST_FIXTURE_TEST_CASE(json_patch_is_a_list_of_operations, one_map) {
  refuse_patch(patch_type::json, R"({"op": "remove", "path": "/data/a"})", {400, "BadRequest"});
  refuse_patch(patch_type::json, R"([{"op": "nonsense", "path": "/data/a"}])", {422, "Invalid"});
}

BOOST_FIXTURE_TEST_CASE(json_patch_has_at_most_ten_thousand_operations, one_map) {
  boost::json::array many(10'001, parse(R"({"op": "test", "path": "/data/a", "value": "1"})"));
  refuse(api.patch(config_maps, key("a"), patch_type::json, std::move(many)),
         {413, "RequestEntityTooLarge",
          "The allowed maximum operations in a JSON patch is 10000, got 10001"});
}

BOOST_FIXTURE_TEST_CASE(patch_of_an_absent_object_is_not_found, sandbox) {
  refuse(api.patch(config_maps, key("none"), patch_type::merge, parse(R"({"data": {}})")),
         {404, "NotFound", "configmaps \"none\" not found"});
}

BOOST_FIXTURE_TEST_CASE(patch_leaves_name_and_namespace, one_map) {
  refuse_patch(
      patch_type::merge, R"({"metadata": {"name": "b"}})",
      {400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)"});
  refuse_patch(patch_type::merge, R"({"metadata": {"namespace": "default"}})",
               {400, "BadRequest", "the namespace of the object (default) does not match"});
}

BOOST_FIXTURE_TEST_CASE(patch_leaves_the_uid, one_map) {
  refuse_patch(patch_type::merge, R"({"metadata": {"uid": "another"}})",
               {422, "Invalid", "metadata.uid: Invalid value: \"another\": field is immutable"});
}

BOOST_FIXTURE_TEST_CASE(patch_that_makes_the_object_wrong_changes_nothing, one_map) {
  const auto why =
      failed(api.patch(config_maps, key("a"), patch_type::merge, parse(R"({"data": {"a": {}}})")));
  BOOST_TEST(why.status == 422u);
  BOOST_TEST(get(config_maps, "a") == made);
}

BOOST_FIXTURE_TEST_CASE(patch_that_is_no_json_is_rejected, one_map) {
  refuse(api.raw("PATCH", path(config_maps, "a"), "application/json-patch+json", "[{bad"),
         {400, "BadRequest"});
}

BOOST_FIXTURE_TEST_CASE(patch_of_an_unknown_type_is_rejected, one_map) {
  refuse(api.raw("PATCH", path(config_maps, "a"), "application/json", R"({"data": {"a": "2"}})"),
         {415, "UnsupportedMediaType"});
}

BOOST_FIXTURE_TEST_CASE(dry_run_patches_nothing, one_map) {
  const auto seen = ok(api.patch(config_maps, key("a"), patch_type::merge,
                                 parse(R"({"data": {"a": "2"}})"), {.dry_run = true}));
  BOOST_TEST(text(seen, "/data/a") == "2");
  BOOST_TEST(get(config_maps, "a") == made);
}

BOOST_FIXTURE_TEST_CASE(force_is_for_apply_only, one_map) {
  refuse(api.raw("PATCH", path(config_maps, "a") + "?force=true", "application/merge-patch+json",
                 R"({"data": {"a": "2"}})"),
         {422, "Invalid", "force: Forbidden: may not be specified for non-apply patch"});
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_merges_containers_by_name, one_deployment) {
  const auto next = pods(R"({"containers": [{"name": "one", "image": "one:2"}]})");
  BOOST_TEST(images(next) == "one=one:2 two=two:1 ");
  BOOST_TEST(next.at_pointer("/spec/template/spec/containers/0/args") == parse(R"(["x", "y"])"));
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_may_add_a_container, one_deployment) {
  const auto next = pods(R"({"containers": [{"name": "three", "image": "three:1"}]})");
  BOOST_TEST(images(next) == "three=three:1 one=one:1 two=two:1 ");
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_may_delete_a_container, one_deployment) {
  BOOST_TEST(images(pods(R"({"containers": [{"name": "two", "$patch": "delete"}]})")) ==
             "one=one:1 ");
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_may_replace_a_list, one_deployment) {
  BOOST_TEST(images(pods(R"({"containers": [{"$patch": "replace"},
                                            {"name": "only", "image": "only:1"}]})")) ==
             "only=only:1 ");
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_may_order_a_list, one_deployment) {
  const auto next = pods(R"({"$setElementOrder/containers": [{"name": "two"}, {"name": "one"}],
                             "containers": [{"name": "one", "image": "one:2"}]})");
  BOOST_TEST(images(next) == "two=two:1 one=one:2 ");
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_merges_lists_within_lists, one_deployment) {
  const auto next = pods(R"({"containers": [{"name": "one", "env": [
    {"name": "A", "$patch": "delete"}, {"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]})");
  const auto* one = element(next, "/spec/template/spec/containers", "name", "one");
  BOOST_TEST_REQUIRE(one != nullptr);
  BOOST_TEST(element(*one, "/env", "name", "A") == nullptr);
  BOOST_TEST(text(*element(*one, "/env", "name", "B"), "/value") == "3");
  BOOST_TEST(text(*element(*one, "/env", "name", "C"), "/value") == "4");
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_replaces_lists_that_have_no_key, one_deployment) {
  const auto next = pods(R"({"containers": [{"name": "one", "args": ["z"]}]})");
  BOOST_TEST(next.at_pointer("/spec/template/spec/containers/0/args") == parse(R"(["z"])"));
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_of_objects_that_no_type_has_can_not_be_merged,
                        one_deployment) {
  const auto twice = parse(R"({"spec": {"template": {"spec": {"containers": [
      {"name": "main", "unknownField": {"a": 1}}, {"name": "main", "unknownField": {"b": 1}}]}}}})");
  refuse(api.patch(deployments, key("a"), patch_type::strategic_merge, twice),
         {500, "", "unable to find api field in struct"});
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_of_lists_where_the_type_has_none_can_not_be_merged,
                        one_deployment) {
  const auto twice = [](std::string_view field) {
    const auto item = R"({"name": "main", ")" + std::string(field) + R"(": ["x"]})";
    return parse(R"({"spec": {"template": {"spec": {"containers": [)" + item + ", " + item +
                 "]}}}}");
  };
  const auto patch = patch_type::strategic_merge;
  for (const auto* const field : {"image", "tty", "resources"}) {
    refuse(api.patch(deployments, key("a"), patch, twice(field)),
           {500, "", "expected slice or array type, but got: struct"});
  }
  refuse(api.patch(deployments, key("a"), patch, twice("securityContext")), {422, "Invalid", ""});
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_merges_finalizers, one_deployment) {
  const auto more = patched(R"({"metadata": {"finalizers": ["example.com/three"]}})");
  BOOST_TEST(more.at_pointer("/metadata/finalizers").as_array().size() == 3u);
  const auto less =
      patched(R"({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/one"]}})");
  BOOST_TEST(less.at_pointer("/metadata/finalizers").as_array().size() == 2u);
  BOOST_TEST(serialize(less.at_pointer("/metadata/finalizers")).find("/one") == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_may_keep_only_some_keys, one_deployment) {
  patched(R"({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}}}})");
  const auto next =
      patched(R"({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})");
  BOOST_TEST(next.at_pointer("/spec/strategy") == parse(R"({"type": "Recreate"})"));
}

BOOST_FIXTURE_TEST_CASE(strategic_patch_removes_with_null, one_deployment) {
  patched(R"({"metadata": {"labels": {"a": "1", "b": "2"}}})");
  const auto next = patched(R"({"metadata": {"labels": {"a": null}}})");
  BOOST_TEST(next.at_pointer("/metadata/labels") == parse(R"({"b": "2"})"));
}

BOOST_FIXTURE_TEST_CASE(items_of_a_strategic_patch_have_the_key, one_deployment) {
  const auto why = failed(
      api.patch(deployments, key("a"), patch_type::strategic_merge,
                parse(R"({"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}})")));
  BOOST_TEST(why.message.find("does not contain declared merge key: name") != std::string::npos);
  BOOST_TEST(get(deployments, "a") == made);
}

// The second one is merged with the first, and so removes its key.
BOOST_FIXTURE_TEST_CASE(second_item_of_a_strategic_patch_whose_key_is_null_is_refused,
                        one_deployment) {
  const auto change = [](std::string_view items) {
    return parse(R"({"spec": {"template": {"spec": {"containers": [)" + std::string(items) +
                 "]}}}}");
  };
  const std::string item = R"({"name": null, "image": "i"})";
  const auto patch = patch_type::strategic_merge;
  refuse(api.patch(deployments, key("a"), patch, change(item)),
         {422, "Invalid", "name: Required value"});
  refuse(api.patch(deployments, key("a"), patch, change(item + ", " + item)),
         {500, "", "map: map[image:i] does not contain declared merge key: name"});
}

BOOST_FIXTURE_TEST_CASE(custom_resources_take_no_strategic_patch, sandbox) {
  create(gadgets(), gadget("a"));
  refuse(api.patch(gadgets(), key("a"), patch_type::strategic_merge,
                   parse(R"({"spec": {"size": 1}})")),
         {415, "UnsupportedMediaType",
          "accepted media types include: application/json-patch+json, "
          "application/merge-patch+json, application/apply-patch+yaml"});
}

BOOST_FIXTURE_TEST_CASE(patch_that_changes_the_kind_is_invalid, one_map) {
  refuse_patch(patch_type::json, R"([{"op": "replace", "path": "/kind", "value": "Other"}])",
               {422, "Invalid", "patch: Invalid value"});
  refuse_patch(patch_type::json, R"([{"op": "replace", "path": "/apiVersion", "value": 1}])",
               {422, "Invalid", "patch: Invalid value"});
}

BOOST_FIXTURE_TEST_CASE(patch_that_removes_the_version_leaves_no_name, one_map) {
  refuse_patch(patch_type::json, R"([{"op": "remove", "path": "/apiVersion"}])",
               {400, "BadRequest", "name must be provided"});
}

// apimachinery, strategicpatch, "mergeMap": there is nothing to merge with.
BOOST_FIXTURE_TEST_CASE(list_of_a_strategic_patch_that_the_object_does_not_have_is_taken_as_it_is,
                        sandbox) {
  create(services, object(services, "a", parse(R"({"spec": {"clusterIP": "None"}})")));
  refuse(api.patch(services, key("a"), patch_type::strategic_merge,
                   parse(R"({"spec": {"ports": [{"port": 80}, {"port": 80}]}})")),
         {422, "Invalid", "spec.ports[1].name: Required value"});
}

BOOST_AUTO_TEST_SUITE_END()
