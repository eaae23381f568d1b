#include "rw/k8s/devserver/patch.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(patch)

namespace {

using namespace rw::k8s::devserver;
namespace json = boost::json;

std::string merged(std::string_view target, std::string_view change) {
  auto value = json::parse(target);
  merge_patch(value, json::parse(change));
  return json::serialize(value);
}

/// What the operations make of the target, or "REASON: message".
std::string patched(std::string_view target, std::string_view operations) {
  auto value = json::parse(target);
  const auto done = json_patch(value, json::parse(operations));
  return done ? json::serialize(value)
              : std::to_string(done.error().code) + " " + done.error().reason + ": " +
                    done.error().message;
}

const std::string refused =
    "422 Invalid: the server rejected our request due to an error in our request";

json::value deployment() {
  return json::parse(R"({
    "metadata": {"name": "d", "finalizers": ["e/a", "e/b", "e/c"], "labels": {"l": "1"}},
    "spec": {
      "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
      "template": {"spec": {
        "containers": [
          {"name": "a", "image": "a", "env": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}]},
          {"name": "b", "image": "b"}, {"name": "c", "image": "c"}],
        "tolerations": [{"key": "t"}],
        "volumes": [{"name": "v", "emptyDir": {}}]}}}})");
}

/// The deployment after a strategic merge patch, or nothing and `why`.
json::value strategic(std::string_view change, problem* why = nullptr) {
  auto value = deployment();
  const auto type = builtin_schema("apps/v1", "Deployment");
  const auto done = strategic_merge_patch(value, json::parse(change), *type);
  if (why != nullptr) *why = done.has_error() ? done.error() : problem{200, {}, {}};
  if (why == nullptr) BOOST_TEST_REQUIRE(done.has_value(), change << ": " << done.error().message);
  return done ? value : json::value();
}

std::string in_pod(std::string_view members) {
  return R"({"spec":{"template":{"spec":)" + std::string(members) + "}}}";
}

const json::value& pod_spec(const json::value& of) {
  return of.at("spec").at("template").at("spec");
}

/// "a,b": the names of the containers after a patch of the pod's specification.
std::string containers(std::string_view members) {
  const auto value = strategic(in_pod(members));
  std::string names;
  for (const auto& one : pod_spec(value).at("containers").as_array()) {
    names += (names.empty() ? "" : ",") + std::string(one.at("name").as_string());
    if (one.at("image") != one.at("name")) {
      names += "=" + std::string(one.at("image").as_string());
    }
  }
  return names;
}

std::string at(const json::value& of, std::string_view pointer) {
  boost::system::error_code missing;
  const auto* const found = of.find_pointer({pointer.data(), pointer.size()}, missing);
  return found != nullptr ? json::serialize(*found) : "";
}

void check_strategic_refused(std::string_view change, unsigned code, std::string_view message) {
  problem why;
  strategic(change, &why);
  BOOST_TEST(why.code == code, change);
  BOOST_TEST(why.message == message, change << ": " << why.message);
}

}  // namespace

// The examples of RFC 7386, appendix A.
BOOST_AUTO_TEST_CASE(merge_patch_passes_the_examples_of_the_rfc) {
  BOOST_TEST(merged(R"({"a":"b"})", R"({"a":"c"})") == R"({"a":"c"})");
  BOOST_TEST(merged(R"({"a":"b"})", R"({"b":"c"})") == R"({"a":"b","b":"c"})");
  BOOST_TEST(merged(R"({"a":"b"})", R"({"a":null})") == R"({})");
  BOOST_TEST(merged(R"({"a":"b","b":"c"})", R"({"a":null})") == R"({"b":"c"})");
  BOOST_TEST(merged(R"({"a":["b"]})", R"({"a":"c"})") == R"({"a":"c"})");
  BOOST_TEST(merged(R"({"a":"c"})", R"({"a":["b"]})") == R"({"a":["b"]})");
  BOOST_TEST(merged(R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})") == R"({"a":{"b":"d"}})");
  BOOST_TEST(merged(R"({"a":[{"b":"c"}]})", R"({"a":[1]})") == R"({"a":[1]})");
  BOOST_TEST(merged(R"(["a","b"])", R"(["c","d"])") == R"(["c","d"])");
  BOOST_TEST(merged(R"({"a":"b"})", R"(["c"])") == R"(["c"])");
  BOOST_TEST(merged(R"({"a":"foo"})", "null") == "null");
  BOOST_TEST(merged(R"({"a":"foo"})", R"("bar")") == R"("bar")");
  BOOST_TEST(merged(R"({"e":null})", R"({"a":1})") == R"({"e":null,"a":1})");
  BOOST_TEST(merged("[1,2]", R"({"a":"b","c":null})") == R"({"a":"b"})");
  BOOST_TEST(merged("{}", R"({"a":{"bb":{"ccc":null}}})") == R"({"a":{"bb":{}}})");
}

BOOST_AUTO_TEST_CASE(merge_patch_keeps_the_order_of_remaining_fields) {
  BOOST_TEST(merged(R"({"a":1,"b":2,"c":3,"d":4})", R"({"b":null,"e":5})") ==
             R"({"a":1,"c":3,"d":4,"e":5})");
}

// The examples of RFC 6902, appendix A.
BOOST_AUTO_TEST_CASE(json_patch_passes_the_examples_of_the_rfc) {
  BOOST_TEST(patched(R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux"}])") ==
             R"({"foo":"bar","baz":"qux"})");
  BOOST_TEST(
      patched(R"({"foo":["bar","baz"]})", R"([{"op":"add","path":"/foo/1","value":"qux"}])") ==
      R"({"foo":["bar","qux","baz"]})");
  BOOST_TEST(patched(R"({"baz":"qux","foo":"bar"})", R"([{"op":"remove","path":"/baz"}])") ==
             R"({"foo":"bar"})");
  BOOST_TEST(patched(R"({"foo":["bar","qux","baz"]})", R"([{"op":"remove","path":"/foo/1"}])") ==
             R"({"foo":["bar","baz"]})");
  BOOST_TEST(patched(R"({"baz":"qux","foo":"bar"})",
                     R"([{"op":"replace","path":"/baz","value":"boo"}])") ==
             R"({"baz":"boo","foo":"bar"})");
  BOOST_TEST(patched(R"({"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}})",
                     R"([{"op":"move","from":"/foo/waldo","path":"/qux/thud"}])") ==
             R"({"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}})");
  BOOST_TEST(patched(R"({"foo":["all","grass","cows","eat"]})",
                     R"([{"op":"move","from":"/foo/1","path":"/foo/3"}])") ==
             R"({"foo":["all","cows","eat","grass"]})");
  BOOST_TEST(patched(R"({"baz":"qux","foo":["a",2,"c"]})",
                     R"([{"op":"test","path":"/baz","value":"qux"},
                         {"op":"test","path":"/foo/1","value":2}])") ==
             R"({"baz":"qux","foo":["a",2,"c"]})");
  BOOST_TEST(patched(R"({"baz":"qux"})", R"([{"op":"test","path":"/baz","value":"bar"}])") ==
             refused);
  BOOST_TEST(
      patched(R"({"foo":"bar"})", R"([{"op":"add","path":"/child","value":{"grandchild":{}}}])") ==
      R"({"foo":"bar","child":{"grandchild":{}}})");
  BOOST_TEST(
      patched(R"({"foo":"bar"})", R"([{"op":"add","path":"/baz","value":"qux","xyz":123}])") ==
      R"({"foo":"bar","baz":"qux"})");
  BOOST_TEST(patched(R"({"foo":"bar"})", R"([{"op":"add","path":"/baz/bat","value":"qux"}])") ==
             refused);
  BOOST_TEST(patched(R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01","value":10}])") ==
             R"({"/":9,"~1":10})");
  BOOST_TEST(patched(R"({"/":9,"~1":10})", R"([{"op":"test","path":"/~01","value":"10"}])") ==
             refused);
  BOOST_TEST(
      patched(R"({"foo":["bar"]})", R"([{"op":"add","path":"/foo/-","value":["abc","def"]}])") ==
      R"({"foo":["bar",["abc","def"]]})");
  BOOST_TEST(patched(R"({"a":1})", R"([{"op":"copy","from":"/a","path":"/b"}])") ==
             R"({"a":1,"b":1})");
}

BOOST_AUTO_TEST_CASE(slashes_and_tildes_in_names_are_escaped) {
  BOOST_TEST(patched(R"({"a/b":1,"c~d":2})", R"([{"op":"replace","path":"/a~1b","value":3},
                                                 {"op":"remove","path":"/c~0d"},
                                                 {"op":"add","path":"/~2","value":4},
                                                 {"op":"add","path":"/","value":5}])") ==
             R"({"a/b":3,"~2":4,"":5})");
}

// Beyond the RFC, or where it leaves a choice; as a kube-apiserver answered.
BOOST_AUTO_TEST_CASE(json_patch_is_as_lenient_as_that_of_kube_apiserver) {
  const auto list = [](std::string_view operations) {
    return patched(R"({"f":["a","b"]})", operations);
  };
  BOOST_TEST(list(R"([{"op":"add","path":"/f/2","value":"c"}])") == R"({"f":["a","b","c"]})");
  BOOST_TEST(list(R"([{"op":"add","path":"/f/-1","value":"c"}])") == R"({"f":["a","b","c"]})");
  BOOST_TEST(list(R"([{"op":"add","path":"/f/01","value":"c"}])") == R"({"f":["a","c","b"]})");
  BOOST_TEST(list(R"([{"op":"remove","path":"/f/-1"}])") == R"({"f":["a"]})");
  BOOST_TEST(list(R"([{"op":"test","path":"/nope","value":null}])") == R"({"f":["a","b"]})");
  BOOST_TEST(list(R"([{"op":"add","path":"/q"}])") == R"({"f":["a","b"],"q":null})");
  BOOST_TEST(list("[]") == R"({"f":["a","b"]})");
  BOOST_TEST(list("null") == R"({"f":["a","b"]})");
}

BOOST_AUTO_TEST_CASE(impossible_json_patch_is_rejected) {
  for (const auto* operation : {R"({"op":"remove","path":"/nope"})",
                                R"({"op":"replace","path":"/nope","value":1})",
                                R"({"op":"test","path":"/nope","value":1})",
                                R"({"op":"test","path":"/a"})",
                                R"({"op":"test","path":"/nope/deep","value":null})",
                                R"({"op":"move","from":"/nope","path":"/b"})",
                                R"({"op":"copy","from":"/nope","path":"/b"})",
                                R"({"op":"copy","path":"/b"})",
                                R"({"op":"move","from":"/o","path":"/o/p"})",
                                R"({"op":"move","from":"","path":"/b"})",
                                R"({"op":"add","path":"/f/3","value":1})",
                                R"({"op":"add","path":"/f/x","value":1})",
                                R"({"op":"add","path":"/f/-4","value":1})",
                                R"({"op":"add","path":"/f/1x","value":1})",
                                R"({"op":"add","path":"/f/99999999999999999999","value":1})",
                                R"({"op":"replace","path":"/f/2","value":1})",
                                R"({"op":"replace","path":"/f/-","value":1})",
                                R"({"op":"remove","path":"/f/-"})",
                                R"({"op":"remove","path":"/f/5"})",
                                R"({"op":"remove","path":""})",
                                R"({"op":"add","path":"/a/x","value":1})",
                                R"({"op":"remove","path":"/a/x"})",
                                R"({"op":"add","path":"a","value":1})",
                                R"({"op":"add","value":1})",
                                R"({"op":"frob","path":"/a","value":1})",
                                R"({"path":"/a","value":1})",
                                R"({"op":5,"path":"/a"})",
                                R"({"op":"remove","path":5})"}) {
    BOOST_TEST(
        patched(R"({"a":1,"f":[1,2],"o":{}})", "[" + std::string(operation) + "]") == refused,
        operation);
  }
}

BOOST_AUTO_TEST_CASE(malformed_json_patch_is_a_bad_request) {
  const std::string start = "400 BadRequest: json: cannot unmarshal ";
  BOOST_TEST(patched("{}", R"({"op":"add"})") ==
             start + "object into Go value of type jsonpatch.Patch");
  BOOST_TEST(patched("{}", "5") == start + "number into Go value of type jsonpatch.Patch");
  BOOST_TEST(patched("{}", "[5]") == start + "number into Go value of type jsonpatch.Operation");
  BOOST_TEST(patched("{}", "[[]]") == start + "array into Go value of type jsonpatch.Operation");
}

BOOST_AUTO_TEST_CASE(json_patch_is_bounded_in_operations) {
  const json::value operation = {{"op", "add"}, {"path", "/c"}, {"value", "3"}};
  json::array operations(10'000, operation);
  json::value target = json::object();
  BOOST_TEST(json_patch(target, operations).has_value());
  operations.push_back(operation);
  const auto refused_at = json_patch(target, operations);
  BOOST_TEST_REQUIRE(refused_at.has_error());
  BOOST_TEST(refused_at.error().code == 413u);
  BOOST_TEST(refused_at.error().reason == "RequestEntityTooLarge");
  BOOST_TEST(refused_at.error().message ==
             "Request entity too large: The allowed maximum operations in a JSON patch is 10000, "
             "got 10001");
}

BOOST_AUTO_TEST_CASE(json_patch_bounds_the_size_of_copies) {
  json::array operations;
  for (int i = 0; i < 40; ++i) {
    operations.push_back({{"op", "copy"}, {"from", "/a"}, {"path", "/a/-"}});
  }
  json::value target = {{"a", json::array{"0123456789"}}};
  BOOST_TEST(json_patch(target, operations).has_error());
}

BOOST_AUTO_TEST_CASE(json_patch_is_bounded_in_depth) {
  json::array deeper;
  for (int i = 0; i < 2'000; ++i) {
    deeper.push_back({{"op", "move"}, {"from", "/a"}, {"path", "/b"}});
    deeper.push_back({{"op", "add"}, {"path", "/a"}, {"value", json::object()}});
    deeper.push_back({{"op", "move"}, {"from", "/b"}, {"path", "/a/b"}});
  }
  json::value target = {{"a", 1}};
  BOOST_TEST(json_patch(target, deeper).has_error());

  json::array to_and_fro;
  for (int i = 0; i < 2'000; ++i) {
    to_and_fro.push_back({{"op", "move"}, {"from", "/a"}, {"path", "/b/c"}});
    to_and_fro.push_back({{"op", "move"}, {"from", "/b/c"}, {"path", "/a"}});
  }
  target = {{"a", {{"d", 1}}}, {"b", json::object()}};
  BOOST_TEST(json_patch(target, to_and_fro).has_value());
  BOOST_TEST(json::serialize(target) == R"({"b":{},"a":{"d":1}})");
}

// Orders as a kube-apiserver answered.
BOOST_AUTO_TEST_CASE(strategic_merge_patch_merges_lists_by_key) {
  BOOST_TEST(containers(R"({"containers":[{"name":"d","image":"d"}]})") == "d,a,b,c");
  BOOST_TEST(containers(R"({"containers":[{"name":"d","image":"d"},{"name":"e","image":"e"}]})") ==
             "d,e,a,b,c");
  BOOST_TEST(
      containers(R"({"containers":[{"name":"c","image":"cc"},{"name":"a","image":"aa"}]})") ==
      "b,c=cc,a=aa");
  const auto value = strategic(in_pod(R"({"containers":[
      {"name":"a","env":[{"name":"z","value":"3"},{"name":"y","value":null},
                         {"name":"x","$patch":"delete"}]}]})"));
  BOOST_TEST(at(pod_spec(value), "/containers/0/env") ==
             R"([{"name":"z","value":"3"},{"name":"y"}])");
}

BOOST_AUTO_TEST_CASE(lists_without_a_merge_key_are_replaced) {
  const auto value = strategic(in_pod(R"({"tolerations":[{"key":"u","value":null}]})"));
  BOOST_TEST(at(pod_spec(value), "/tolerations") == R"([{"key":"u"}])");
}

BOOST_AUTO_TEST_CASE(object_whose_type_says_so_is_replaced) {
  auto budget = json::parse(R"({"spec": {"maxUnavailable": 1,
                                         "selector": {"matchLabels": {"a": "1", "b": "2"}}}})");
  const auto done = strategic_merge_patch(
      budget, json::parse(R"({"spec": {"selector": {"matchLabels": {"a": "3"}}}})"),
      *builtin_schema("policy/v1", "PodDisruptionBudget"));
  BOOST_TEST(done.has_value());
  BOOST_TEST(budget == json::parse(R"({"spec": {"maxUnavailable": 1,
                                                "selector": {"matchLabels": {"a": "3"}}}})"));
}

BOOST_AUTO_TEST_CASE(items_are_deleted_by_a_directive) {
  BOOST_TEST(containers(R"({"containers":[{"name":"b","$patch":"delete"}]})") == "a,c");
  BOOST_TEST(containers(R"({"containers":[{"name":"b","$patch":"delete"},
                                          {"name":"d","image":"d"}]})") == "d,a,c");
  BOOST_TEST(containers(R"({"containers":[{"name":"nope","$patch":"delete"}]})") == "a,b,c");
}

BOOST_AUTO_TEST_CASE(list_is_replaced_by_a_directive) {
  BOOST_TEST(containers(R"({"containers":[{"$patch":"replace"},{"name":"d","image":"d"},
                                          {"name":"a","image":"a"}]})") == "d,a");
}

BOOST_AUTO_TEST_CASE(lists_are_ordered_by_a_directive) {
  BOOST_TEST(containers(R"({"containers":[{"name":"d","image":"d"}],
      "$setElementOrder/containers":[{"name":"a"},{"name":"d"},{"name":"b"}]})") == "a,d,b,c");
  BOOST_TEST(containers(R"({"$setElementOrder/containers":[{"name":"c"},{"name":"b"},
                                                           {"name":"a"}]})") == "c,b,a");
  BOOST_TEST(containers(R"({"$setElementOrder/containers":[{"name":"c"},{"name":"a"}]})") ==
             "b,c,a");
  BOOST_TEST(containers(R"({"containers":[{"name":"b","$patch":"delete"}],
      "$setElementOrder/containers":[{"name":"a"},{"name":"c"}]})") == "a,c");
}

BOOST_AUTO_TEST_CASE(lists_of_primitives_are_merged_as_sets) {
  const auto finalizers = [](std::string_view members) {
    return at(strategic(R"({"metadata":{)" + std::string(members) + "}}"), "/metadata/finalizers");
  };
  BOOST_TEST(finalizers(R"("finalizers":["e/d"])") == R"(["e/d","e/a","e/b","e/c"])");
  BOOST_TEST(finalizers(R"("finalizers":["e/d","e/a"])") == R"(["e/d","e/a","e/b","e/c"])");
  BOOST_TEST(finalizers(R"("$deleteFromPrimitiveList/finalizers":["e/b","e/x"])") ==
             R"(["e/a","e/c"])");
  BOOST_TEST(finalizers(R"("$deleteFromPrimitiveList/finalizers":["e/b"],"finalizers":["e/d"],
                           "$setElementOrder/finalizers":["e/d","e/a","e/c"])") ==
             R"(["e/d","e/a","e/c"])");
  BOOST_TEST(finalizers(R"("$deleteFromPrimitiveList/nope":["e/b"])") == R"(["e/a","e/b","e/c"])");
  BOOST_TEST(finalizers(R"("finalizers":null)") == "");
}

BOOST_AUTO_TEST_CASE(fields_that_are_not_to_be_retained_go) {
  const auto volumes = [](std::string_view item) {
    const auto value = strategic(in_pod(R"({"volumes":[)" + std::string(item) + "]}"));
    return at(pod_spec(value), "/volumes");
  };
  const std::string moved = R"([{"name":"v","hostPath":{"path":"/x"}}])";
  BOOST_TEST(volumes(R"({"name":"v","emptyDir":null,"hostPath":{"path":"/x"},
                         "$retainKeys":["name","hostPath"]})") == moved);
  BOOST_TEST(volumes(R"({"name":"v","hostPath":{"path":"/x"},
                         "$retainKeys":["name","hostPath"]})") == moved);
  BOOST_TEST(volumes(R"({"name":"w","hostPath":{"path":"/x","type":null},
                         "$retainKeys":["name","hostPath"]})") ==
             R"([{"name":"w","hostPath":{"path":"/x"}},{"name":"v","emptyDir":{}}])");
  BOOST_TEST(at(strategic(R"({"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}})"),
                "/spec/strategy") == R"({"type":"Recreate"})");
}

BOOST_AUTO_TEST_CASE(objects_are_replaced_or_emptied_by_a_directive) {
  const auto strategy = [](std::string_view change) {
    return at(strategic(R"({"spec":{"strategy":)" + std::string(change) + "}}"), "/spec/strategy");
  };
  BOOST_TEST(strategy(R"({"$patch":"replace","type":"Recreate"})") == R"({"type":"Recreate"})");
  BOOST_TEST(strategy(R"({"$patch":"delete"})") == "{}");
  BOOST_TEST(strategy(R"({"rollingUpdate":{"$patch":"replace","maxSurge":5}})") ==
             R"({"type":"RollingUpdate","rollingUpdate":{"maxSurge":5}})");
  BOOST_TEST(strategy("null") == "");
  BOOST_TEST(strategy(R"({"rollingUpdate":null})") == R"({"type":"RollingUpdate"})");
}

BOOST_AUTO_TEST_CASE(lists_and_objects_that_are_new_hold_no_directives) {
  const auto value = strategic(in_pod(R"({
      "nodeSelector":{"$patch":"replace","a":"b"},
      "initContainers":[{"name":"i","image":"i","env":[{"name":"x","$patch":"delete"}]},
                        {"name":"j","$patch":"delete"}],
      "$setElementOrder/initContainers":[{"name":"i"}]})"));
  BOOST_TEST(at(pod_spec(value), "/nodeSelector") == R"({"a":"b"})");
  BOOST_TEST(at(pod_spec(value), "/initContainers") == R"([{"name":"i","image":"i","env":[]}])");
}

// Each taken from the answer of a kube-apiserver.
BOOST_AUTO_TEST_CASE(strategic_merge_patch_is_rejected_in_the_words_of_kube_apiserver) {
  const auto pod = [](std::string_view members, unsigned code, std::string_view message) {
    check_strategic_refused(in_pod(members), code, message);
  };
  pod(R"({"containers":[{"$patch":"delete"}]})", 500,
      "map: map[$patch:delete] does not contain declared merge key: name");
  pod(R"({"containers":[{"image":"x"}]})", 500,
      "map: map[image:x] does not contain declared merge key: name");
  pod(R"({"containers":[{"$patch":"merge"},{"name":"d"}]})", 500,
      "merging lists cannot yet be specified in the patch");
  pod(R"({"containers":[{"$patch":"frob","name":"a"}]})", 500,
      "unknown patch type: frob in map: map[$patch:frob name:a]");
  pod(R"({"nodeSelector":{"$patch":"frob"}})", 500,
      "unknown patch type: frob in map: map[$patch:frob]");
  pod(R"({"containers":[{"image":"d","name":"d"}],
          "$setElementOrder/containers":[{"name":"c"},{"name":"a"}]})",
      500,
      "The order in patch list:\n[map[image:d name:d]]\n doesn't match $setElementOrder list:\n"
      "[map[name:c] map[name:a]]\n");
  pod(R"({"$setElementOrder/containers":"x"})", 500,
      "expected a []interface {}, but received a string");
  pod(R"({"$setElementOrder/containers":["x"]})", 500, "value for key 0 is not a map");
  pod(R"({"$setElementOrder":[{"name":"c"}]})", 400,
      "invalid patch format of setElementOrder list");
  pod(R"({"volumes":[{"name":"v","hostPath":{"path":"/x"},"$retainKeys":["name"]}]})", 400,
      "invalid patch format of retainKeys");
  pod(R"({"volumes":[{"name":"v","$retainKeys":"name"}]})", 400,
      "invalid patch format of retainKeys");
  check_strategic_refused(R"({"metadata":{"$deleteFromPrimitiveList":["e/b"]}})", 400,
                          "invalid patch format of primitive list");
  check_strategic_refused(R"({"metadata":{"finalizers":[{"a":"b"}]}})", 500,
                          "list element types are not identical: [[e/a e/b e/c] [map[a:b]]]");
  check_strategic_refused(R"([])", 400,
                          "a strategic merge patch must be an object, and be applied to one");
}

BOOST_AUTO_TEST_CASE(lists_of_a_pod_have_their_keys) {
  const auto pod = builtin_schema("v1", "Pod");
  const auto key = [&pod](std::string_view list, std::string_view inner = {}) -> std::string {
    const auto* field = pod->property("spec")->property(list);
    if (field != nullptr && !inner.empty()) field = field->items()->property(inner);
    return field != nullptr && field->patch_merges() ? std::string(field->patch_merge_key()) : "";
  };
  BOOST_TEST(key("containers") == "name");
  BOOST_TEST(key("initContainers", "env") == "name");
  BOOST_TEST(key("containers", "ports") == "containerPort");
  BOOST_TEST(key("containers", "volumeMounts") == "mountPath");
  BOOST_TEST(key("containers", "volumeDevices") == "devicePath");
  BOOST_TEST(key("volumes") == "name");
  BOOST_TEST(key("hostAliases") == "ip");
  BOOST_TEST(key("imagePullSecrets") == "name");
  BOOST_TEST(key("topologySpreadConstraints") == "topologyKey");
  BOOST_TEST(key("tolerations") == "");
  BOOST_TEST(pod->property("metadata")->property("ownerReferences")->patch_merge_key() == "uid");
}

BOOST_AUTO_TEST_CASE(kinds_share_their_types) {
  for (const auto& [version, kind] : {std::pair("apps/v1", "Deployment"),
                                      {"apps/v1", "StatefulSet"},
                                      {"batch/v1", "Job"},
                                      {"v1", "ReplicationController"}}) {
    const auto type = builtin_schema(version, kind);
    const auto* const pod = type->property("spec")->property("template")->property("spec");
    BOOST_TEST(pod->property("containers")->patch_merge_key() == "name", kind);
  }
  BOOST_TEST(
      builtin_schema("v1", "Service")->property("spec")->property("ports")->patch_merge_key() ==
      "port");
  BOOST_TEST(builtin_schema("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
                 ->property("webhooks")
                 ->patch_merge_key() == "name");
}

BOOST_AUTO_TEST_CASE(kind_that_is_not_known_has_metadata_and_is_free_form) {
  for (const auto& [version, kind] :
       {std::pair("v1", "Nothing"), {"example.com/v1", "Deployment"}, {"", ""}}) {
    const auto type = builtin_schema(version, kind);
    BOOST_TEST_REQUIRE(type != nullptr);
    BOOST_TEST((type->property("metadata")->property("finalizers")->merge() == list_type::set));
    BOOST_TEST((type->property("spec")->property("any")->merge() == list_type::atomic));
  }
}

BOOST_AUTO_TEST_SUITE_END()
