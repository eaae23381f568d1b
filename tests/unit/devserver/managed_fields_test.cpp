#include "rw/k8s/devserver/managed_fields.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(managed_fields)

namespace {

using namespace rw::k8s::devserver;
namespace json = boost::json;

std::string member(const json::value& of, std::string_view name) {
  const auto* const found = of.get_object().if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

/// An object that is written by several managers, one after the other, a second apart.
class history {
 public:
  explicit history(std::string api_version = "v1", std::string_view kind = "ConfigMap")
      : api_version_(std::move(api_version)), type_(builtin_schema(api_version_, kind)) {}

  /// "" or what is wrong.
  std::string apply(std::string_view manager, std::string_view object, bool force = false) {
    auto made = rw::k8s::devserver::apply(live_, json::parse(object), *type_, by(manager), force);
    if (made.has_error()) {
      failure = made.error();
      return failure.message;
    }
    live_ = std::move(*made);
    return "";
  }

  void update(std::string_view manager, std::string_view object) {
    auto after = json::parse(object);
    auto& metadata = after.get_object()["metadata"];
    if (!metadata.is_object()) metadata.emplace_object();
    track_update(live_, after, *type_, by(manager));
    live_ = std::move(after);
  }

  const json::value& object() const { return live_; }
  std::string at(std::string_view pointer) const {
    boost::system::error_code missing;
    const auto* const found = live_.find_pointer({pointer.data(), pointer.size()}, missing);
    return found != nullptr ? json::serialize(*found) : "";
  }

  /// One line for each entry: manager, operation, fields.
  std::string managers() const {
    std::string out;
    boost::system::error_code missing;
    const auto* const list = live_.find_pointer("/metadata/managedFields", missing);
    if (list == nullptr) return out;
    for (const auto& one : list->as_array()) {
      BOOST_TEST(member(one, "apiVersion") == api_version_);
      BOOST_TEST(member(one, "fieldsType") == "FieldsV1");
      out += member(one, "manager") + " " + member(one, "operation") + " " +
             json::serialize(one.at("fieldsV1")) + "\n";
    }
    return out;
  }
  /// The seconds of each entry's time.
  std::string times() const {
    std::string out;
    for (const auto& one : live_.at("metadata").at("managedFields").as_array()) {
      out += member(one, "manager") + "=" + member(one, "time").substr(17, 2) + " ";
    }
    return out;
  }

  problem failure;

 private:
  field_writer by(std::string_view manager) {
    const auto second = std::to_string(100 + ++second_).substr(1);
    return {std::string(manager), api_version_, {}, "2024-01-01T00:00:" + second + "Z"};
  }

  std::string api_version_;
  std::shared_ptr<const schema> type_;
  json::value live_;
  int second_ = 0;
};

std::string pod_template(std::string_view containers) {
  return R"({"spec":{"template":{"spec":{"containers":)" + std::string(containers) + "}}}}";
}

}  // namespace

// Objects and managedFields in these tests are what a kube-apiserver answered.

BOOST_AUTO_TEST_CASE(applier_owns_the_applied_fields) {
  history of;
  BOOST_TEST(of.apply("m", R"({"apiVersion":"v1","kind":"ConfigMap",
      "metadata":{"name":"s","labels":{"l":"1"}},"data":{"a":"1","b":"2"}})") == "");
  BOOST_TEST(of.managers() ==
             R"(m Apply {"f:data":{"f:a":{},"f:b":{}},"f:metadata":{"f:labels":{"f:l":{}}}})"
             "\n");
  BOOST_TEST(of.at("/data") == R"({"a":"1","b":"2"})");
  BOOST_TEST(of.at("/metadata/name") == R"("s")");
}

BOOST_AUTO_TEST_CASE(applying_the_same_again_changes_nothing) {
  history of;
  const auto* const object = R"({"metadata":{"name":"s"},"data":{"a":"1"}})";
  of.apply("m", object);
  const auto before = json::serialize(of.object());
  BOOST_TEST(of.apply("m", object) == "");
  BOOST_TEST(json::serialize(of.object()) == before);
}

BOOST_AUTO_TEST_CASE(field_no_longer_applied_is_removed) {
  history of;
  of.apply("m", R"({"data":{"a":"1","b":"2"},"metadata":{"labels":{"l":"1"}}})");
  of.apply("m", R"({"data":{"a":"1"}})");
  BOOST_TEST(of.at("/data") == R"({"a":"1"})");
  BOOST_TEST(of.at("/metadata/labels") == "");
  BOOST_TEST(of.managers() == R"(m Apply {"f:data":{"f:a":{}}})"
                              "\n");
  of.apply("m", R"({})");
  BOOST_TEST(of.at("/data") == "");
  BOOST_TEST(of.managers() == "");
}

BOOST_AUTO_TEST_CASE(field_with_another_owner_stays) {
  history of;
  of.apply("m", R"({"data":{"a":"1","b":"1"}})");
  of.apply("n", R"({"data":{"a":"1"}})");
  BOOST_TEST(of.managers() == R"(m Apply {"f:data":{"f:a":{},"f:b":{}}})"
                              "\n"
                              R"(n Apply {"f:data":{"f:a":{}}})"
                              "\n");
  of.apply("m", "{}");
  BOOST_TEST(of.at("/data") == R"({"a":"1"})");
  BOOST_TEST(of.managers() == R"(n Apply {"f:data":{"f:a":{}}})"
                              "\n");
}

BOOST_AUTO_TEST_CASE(different_value_of_a_foreign_field_is_a_conflict) {
  history of;
  of.apply("m", R"({"data":{"a":"1"},"metadata":{"labels":{"l":"1"}}})");
  BOOST_TEST(of.apply("n", R"({"data":{"a":"2"}})") ==
             R"(Apply failed with 1 conflict: conflict with "m": .data.a)");
  BOOST_TEST(of.failure.code == 409u);
  BOOST_TEST(of.failure.reason == "Conflict");
  BOOST_TEST_REQUIRE(of.failure.causes.size() == 1u);
  BOOST_TEST(of.failure.causes[0].reason == "FieldManagerConflict");
  BOOST_TEST(of.failure.causes[0].message == R"(conflict with "m")");
  BOOST_TEST(of.failure.causes[0].field == ".data.a");

  of.apply("n", R"({"data":{"a":"1"}})");
  BOOST_TEST(of.apply("o", R"({"data":{"a":"2","l":"2"},"metadata":{"labels":{"l":"3"}}})") ==
             "Apply failed with 3 conflicts: conflicts with \"m\":\n- .data.a\n"
             "- .metadata.labels.l\nconflicts with \"n\":\n- .data.a");
  BOOST_TEST(of.failure.causes.size() == 3u);
  BOOST_TEST(of.at("/data") == R"({"a":"1"})");
}

BOOST_AUTO_TEST_CASE(force_takes_fields_over) {
  history of;
  of.apply("m", R"({"data":{"a":"1"},"metadata":{"labels":{"l":"1"}}})");
  BOOST_TEST(of.apply("n", R"({"data":{"a":"2"}})", true) == "");
  BOOST_TEST(of.at("/data") == R"({"a":"2"})");
  BOOST_TEST(of.managers() == R"(m Apply {"f:metadata":{"f:labels":{"f:l":{}}}})"
                              "\n"
                              R"(n Apply {"f:data":{"f:a":{}}})"
                              "\n");
}

BOOST_AUTO_TEST_CASE(creator_owns_all_fields_and_their_parents) {
  history of;
  of.update("pp", R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"s","uid":"u",
      "resourceVersion":"1","creationTimestamp":"t","labels":{"x":"y"}},"data":{"a":"1"}})");
  BOOST_TEST(of.managers() == R"(pp Update {"f:data":{".":{},"f:a":{}},)"
                              R"("f:metadata":{"f:labels":{".":{},"f:x":{}}}})"
                              "\n");
}

BOOST_AUTO_TEST_CASE(update_takes_over_changed_fields) {
  history of;
  of.update("pp", R"({"data":{"a":"1"}})");
  of.update("pp", R"({"data":{"a":"1","b":"2"}})");
  BOOST_TEST(of.managers() == R"(pp Update {"f:data":{".":{},"f:a":{},"f:b":{}}})"
                              "\n");
  of.update("qq", R"({"data":{"a":"3","b":"2"}})");
  BOOST_TEST(of.managers() == R"(pp Update {"f:data":{".":{},"f:b":{}}})"
                              "\n"
                              R"(qq Update {"f:data":{"f:a":{}}})"
                              "\n");
  of.update("rr", R"({"data":{"b":"2"}})");
  BOOST_TEST(of.managers() == R"(pp Update {"f:data":{".":{},"f:b":{}}})"
                              "\n");
}

BOOST_AUTO_TEST_CASE(applies_conflict_with_updates_even_by_the_same_name) {
  history of;
  of.update("pp", R"({"data":{"b":"2"}})");
  const auto* const wanted = R"({"data":{"b":"9","c":"1"}})";
  BOOST_TEST(of.apply("m", wanted) ==
             R"(Apply failed with 1 conflict: conflict with "pp" using v1: .data.b)");
  BOOST_TEST(of.apply("m", wanted, true) == "");
  BOOST_TEST(of.managers() == R"(m Apply {"f:data":{"f:b":{},"f:c":{}}})"
                              "\n"
                              R"(pp Update {"f:data":{}})"
                              "\n");
  of.update("m", R"({"data":{"b":"9","c":"7"},"metadata":)" + of.at("/metadata") + "}");
  BOOST_TEST(of.managers() == R"(m Apply {"f:data":{"f:b":{}}})"
                              "\n"
                              R"(pp Update {"f:data":{".":{},"f:b":{}}})"
                              "\n"
                              R"(m Update {"f:data":{"f:c":{}}})"
                              "\n");
  BOOST_TEST(of.apply("m", wanted) ==
             R"(Apply failed with 1 conflict: conflict with "m" using v1: .data.c)");
}

BOOST_AUTO_TEST_CASE(object_without_managed_fields_gets_none_from_updates) {
  history of;
  of.update("pp", "{}");
  BOOST_TEST(of.managers() == "");
  of.update("pp", R"({"metadata":{"finalizers":["e/a"]}})");
  BOOST_TEST(of.managers() == "");
}

BOOST_AUTO_TEST_CASE(fields_before_the_first_apply_belong_to_before_first_apply) {
  history of;
  of.update("pp", "{}");
  of.update("pp", R"({"metadata":{"finalizers":["e/a"],
      "ownerReferences":[{"kind":"ConfigMap","name":"o","uid":"u1"}]}})");
  BOOST_TEST(of.apply("m", R"({"metadata":{"finalizers":["e/b"],
      "ownerReferences":[{"kind":"ConfigMap","name":"o2","uid":"u2"}]}})") == "");
  BOOST_TEST(of.managers() ==
             R"(m Apply {"f:metadata":{"f:finalizers":{"v:\"e/b\"":{}},)"
             R"("f:ownerReferences":{"k:{\"uid\":\"u2\"}":{}}}})"
             "\n"
             R"(before-first-apply Update {"f:metadata":{"f:finalizers":{".":{},"v:\"e/a\"":{}},)"
             R"("f:ownerReferences":{".":{},"k:{\"uid\":\"u1\"}":{}}}})"
             "\n");
  BOOST_TEST(of.at("/metadata/finalizers") == R"(["e/a","e/b"])");
  BOOST_TEST(of.apply("m", R"({"metadata":{"ownerReferences":[{"uid":"u1","name":"o2"}]}})") ==
             R"(Apply failed with 1 conflict: conflict with "before-first-apply" using v1: )"
             R"(.metadata.ownerReferences[uid="u1"])");
  of.apply("m", "{}");
  BOOST_TEST(of.at("/metadata/finalizers") == R"(["e/a"])");
  BOOST_TEST(of.at("/metadata/ownerReferences/1") == "");
}

BOOST_AUTO_TEST_CASE(client_may_forget_managed_fields) {
  for (const auto* none : {"[]", "[{}]"}) {
    history of;
    of.apply("m", R"({"data":{"a":"1"}})");
    of.update("pp", R"({"data":{"a":"1"},"metadata":{"managedFields":)" + std::string(none) + "}}");
    BOOST_TEST(of.managers() == "");
    BOOST_TEST(of.at("/metadata/managedFields") == "");
    of.update("pp", R"({"data":{"a":"1","b":"2"}})");
    BOOST_TEST(of.managers() == "");
    BOOST_TEST(of.apply("m", R"({"data":{"b":"2"}})") == "");
    BOOST_TEST(of.managers() == R"(m Apply {"f:data":{"f:b":{}}})"
                                "\n"
                                R"(before-first-apply Update {"f:data":{".":{},"f:a":{},"f:b":{}}})"
                                "\n");
  }
}

BOOST_AUTO_TEST_CASE(managed_fields_that_a_client_leaves_out_or_breaks_are_kept) {
  for (const auto* sent :
       {"null", R"([{"manager":"x","operation":"Foo"}])", R"([{"manager":"x"}])", R"([5])",
        R"([{"manager":"x","operation":"Update","fieldsType":"FieldsV1","fieldsV1":{"q":{}}}])"}) {
    history of;
    of.apply("m", R"({"data":{"a":"1"}})");
    of.update("m", R"({"data":{"a":"1"},"metadata":{"managedFields":)" + std::string(sent) + "}}");
    BOOST_TEST(of.managers() == R"(m Apply {"f:data":{"f:a":{}}})"
                                "\n",
               sent);
  }
}

BOOST_AUTO_TEST_CASE(managed_fields_that_a_client_sends_count) {
  history of;
  of.apply("m", R"({"data":{"a":"1"}})");
  of.update("n", R"({"data":{"a":"1"},"metadata":{"managedFields":[{"manager":"x",
      "operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1",
      "fieldsV1":{"f:data":{"f:a":{}}}}]}})");
  BOOST_TEST(of.managers() == R"(x Apply {"f:data":{"f:a":{}}})"
                              "\n");
}

BOOST_AUTO_TEST_CASE(managed_fields_cannot_be_applied) {
  history of;
  for (const auto* sent : {"[]", R"([{"manager":"x"}])"}) {
    const auto object = R"({"metadata":{"managedFields":)" + std::string(sent) + "}}";
    BOOST_TEST(of.apply("m", object) == "metadata.managedFields must be nil");
    BOOST_TEST(of.failure.code == 400u);
    BOOST_TEST(of.failure.reason == "BadRequest");
  }
  BOOST_TEST(of.apply("m", R"({"metadata":{"managedFields":null}})") == "");
  BOOST_TEST(of.apply("m", "[]") == "what is applied must be an object");
}

BOOST_AUTO_TEST_CASE(lists_are_merged_by_their_keys) {
  history of("apps/v1", "Deployment");
  of.apply("m", pod_template(R"([{"name":"a","image":"a","ports":[{"containerPort":80}],
      "env":[{"name":"x","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
      "resources":{"limits":{"cpu":"1"}}}])"));
  BOOST_TEST(
      of.managers() ==
      R"(m Apply {"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},)"
      R"("f:env":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},)"
      R"("f:valueFrom":{"f:fieldRef":{}}}},"f:image":{},"f:name":{},)"
      R"("f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},)"
      R"("f:containerPort":{}}},"f:resources":{"f:limits":{"f:cpu":{}}}}}}}}})"
      "\n");
  of.apply("m", pod_template(R"([{"name":"a","image":"a",
      "ports":[{"containerPort":80,"protocol":"TCP"}]}])"));
  BOOST_TEST(of.at("/spec/template/spec/containers") ==
             R"([{"name":"a","image":"a","ports":[{"containerPort":80,"protocol":"TCP"}]}])");
  BOOST_TEST(of.apply("two", pod_template(R"([{"name":"b","image":"b"}])")) == "");
  of.apply("m", pod_template(R"([{"name":"a","image":"a2"}])"));
  BOOST_TEST(of.at("/spec/template/spec/containers") ==
             R"([{"name":"a","image":"a2"},{"name":"b","image":"b"}])");
  of.apply("m", pod_template("[]"));
  BOOST_TEST(of.at("/spec/template/spec/containers") == R"([{"name":"b","image":"b"}])");
}

BOOST_AUTO_TEST_CASE(list_without_a_type_is_one_piece) {
  history of("apps/v1", "Deployment");
  of.apply("m", R"({"spec":{"template":{"spec":{"tolerations":[{"key":"k"}]}}}})");
  BOOST_TEST(of.managers() == R"(m Apply {"f:spec":{"f:template":{"f:spec":{"f:tolerations":{}}}}})"
                              "\n");
  BOOST_TEST(of.apply("n", R"({"spec":{"template":{"spec":{"tolerations":[]}}}})") ==
             R"(Apply failed with 1 conflict: conflict with "m": .spec.template.spec.tolerations)");
}

BOOST_AUTO_TEST_CASE(manager_of_a_map_without_fields_of_its_own_shares_all_at_the_next_request) {
  history of;
  of.update("u", R"({"data":{"a":"1"}})");
  of.apply("b", R"({"data":{"a":"2"}})", true);
  BOOST_TEST(of.managers() == R"(b Apply {"f:data":{"f:a":{}}}
u Update {"f:data":{}}
)");
  of.update("v", R"({"data":{"a":"2","b":"1"}})");
  BOOST_TEST(of.managers() == R"(b Apply {"f:data":{"f:a":{}}}
u Update {"f:data":{".":{},"f:a":{}}}
v Update {"f:data":{"f:b":{}}}
)");
}

BOOST_AUTO_TEST_CASE(atomic_object_is_one_piece) {
  history of("apps/v1", "Deployment");
  of.apply("m", R"({"spec":{"selector":{"matchLabels":{"a":"b"}}}})");
  const auto* const other = R"({"spec":{"selector":{"matchLabels":{"c":"d"}}}})";
  BOOST_TEST(of.apply("two", other) ==
             R"(Apply failed with 1 conflict: conflict with "m": .spec.selector)");
  BOOST_TEST(of.apply("two", other, true) == "");
  BOOST_TEST(of.at("/spec/selector") == R"({"matchLabels":{"c":"d"}})");
}

BOOST_AUTO_TEST_CASE(autoscaler_and_an_applier_share_an_object) {
  history of("apps/v1", "Deployment");
  of.apply("m", R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"paused":true}})");
  of.update("hpa", R"({"spec":{"selector":{"matchLabels":{"a":"b"}},"paused":true,"replicas":3}})");
  BOOST_TEST(of.apply("m", R"({"spec":{"selector":{"matchLabels":{"a":"b"}}}})") == "");
  BOOST_TEST(of.at("/spec") == R"({"selector":{"matchLabels":{"a":"b"}},"replicas":3})");
  BOOST_TEST(of.apply("m", R"({"spec":{"replicas":5}})") ==
             R"(Apply failed with 1 conflict: conflict with "hpa" using apps/v1: .spec.replicas)");
}

BOOST_AUTO_TEST_CASE(always_present_field_is_not_owned_itself) {
  history of("apps/v1", "Deployment");
  of.update("pp", R"({"metadata":{"name":"d"},"spec":{
      "selector":{"matchLabels":{"a":"b"}},
      "strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}},
      "template":{"metadata":{"labels":{"a":"b"}},"spec":{
        "containers":[{"name":"a","resources":{"limits":{"cpu":"1"}}}],
        "nodeSelector":{"q":"r"},"volumes":[{"name":"v","emptyDir":{}}]}}}})");
  BOOST_TEST(of.managers() ==
             R"(pp Update {"f:spec":{"f:selector":{},)"
             R"("f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{}},"f:type":{}},)"
             R"("f:template":{"f:metadata":{"f:labels":{".":{},"f:a":{}}},)"
             R"("f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},)"
             R"("f:resources":{".":{},"f:limits":{".":{},"f:cpu":{}}}}},)"
             R"("f:nodeSelector":{},)"
             R"("f:volumes":{".":{},"k:{\"name\":\"v\"}":{".":{},"f:emptyDir":{},"f:name":{}}}}}}})"
             "\n");
}

BOOST_AUTO_TEST_CASE(apply_rejects_a_wrong_type_in_the_words_of_kube_apiserver) {
  const auto refused = [](std::string_view object, std::string_view why) {
    history of("apps/v1", "Deployment");
    BOOST_TEST(of.apply("m", object) ==
               "failed to create typed patch object (/; , Kind=): " + std::string(why));
    BOOST_TEST(of.failure.code == 500u);
    BOOST_TEST(of.failure.reason == "");
  };
  const std::string containers = ".spec.template.spec.containers";
  refused(pod_template(R"([{"name":"a"},{"name":"a"}])"),
          containers + R"(: duplicate entries for key [name="a"])");
  refused(pod_template(R"([{"name":"a","env":[{"name":"e","value":"1"},{"name":"e"}]}])"),
          containers + R"([name="a"].env: duplicate entries for key [name="e"])");
  refused(pod_template(R"([{"name":"a","ports":[{"containerPort":1},{"containerPort":1}]}])"),
          containers +
              R"([name="a"].ports: duplicate entries for key [containerPort=1,protocol="TCP"])");
  refused(pod_template(R"({"name":"a"})"), containers + ": expected list, got &{map[name:a]}");
  refused(pod_template(R"(["x"])"),
          containers + ": element 0: associative list with keys may not have non-map elements");
  refused(pod_template(R"([{"name":"a","ports":[{"hostPort":1},{"hostPort":2}]}])"),
          containers +
              R"([name="a"].ports: duplicate entries for key [containerPort=0,protocol="TCP"])");
  refused(
      R"({"metadata":{"finalizers":["e/a","e/a"],"ownerReferences":[{"uid":"u"},{"uid":"u"}]}})",
      "errors:\n  .metadata.finalizers: duplicate entries for key [=\"e/a\"]\n"
      "  .metadata.ownerReferences: duplicate entries for key [uid=\"u\"]");
}

BOOST_AUTO_TEST_CASE(time_changes_when_something_is_applied) {
  history of;
  of.apply("m", R"({"data":{"a":"1"}})");
  of.apply("m", R"({"data":{"a":"1"}})");
  BOOST_TEST(of.times() == "m=01 ");
  of.apply("m", R"({"data":{"a":"2"}})");
  BOOST_TEST(of.times() == "m=03 ");
  of.apply("other", R"({"data":{"a":"2"}})");
  BOOST_TEST(of.times() == "m=03 other=04 ");
}

BOOST_AUTO_TEST_CASE(time_changes_when_an_update_changes_the_set) {
  history of;
  of.update("pp", R"({"data":{"a":"1","b":"1"}})");
  of.update("pp", R"({"data":{"a":"2","b":"1"}})");
  BOOST_TEST(of.times() == "pp=01 ");
  of.update("pp", R"({"data":{"a":"2"}})");
  BOOST_TEST(of.times() == "pp=01 ");
  of.update("pp", R"({"data":{"a":"2","c":"1"}})");
  BOOST_TEST(of.times() == "pp=04 ");
}

BOOST_AUTO_TEST_CASE(oldest_of_many_updates_are_merged) {
  history of;
  std::string data = R"("a":"1")";
  of.update("m0", "{\"data\":{" + data + "}}");
  for (int i = 1; i < 14; ++i) {
    data += ",\"k" + std::to_string(i) + R"(":"v")";
    of.update("m" + std::to_string(i), "{\"data\":{" + data + "}}");
  }
  BOOST_TEST(of.managers() ==
             R"(ancient-changes Update {"f:data":{".":{},"f:a":{},"f:k1":{},"f:k2":{},"f:k3":{},)"
             R"("f:k4":{}}})"
             "\n"
             R"(m5 Update {"f:data":{"f:k5":{}}})"
             "\n"
             R"(m6 Update {"f:data":{"f:k6":{}}})"
             "\n"
             R"(m7 Update {"f:data":{"f:k7":{}}})"
             "\n"
             R"(m8 Update {"f:data":{"f:k8":{}}})"
             "\n"
             R"(m9 Update {"f:data":{"f:k9":{}}})"
             "\n"
             R"(m10 Update {"f:data":{"f:k10":{}}})"
             "\n"
             R"(m11 Update {"f:data":{"f:k11":{}}})"
             "\n"
             R"(m12 Update {"f:data":{"f:k12":{}}})"
             "\n"
             R"(m13 Update {"f:data":{"f:k13":{}}})"
             "\n");
}

BOOST_AUTO_TEST_CASE(subresource_has_an_entry_of_its_own) {
  const auto type = builtin_schema("apps/v1", "Deployment");
  json::value after = {{"spec", {{"replicas", 1}}}};
  track_update(nullptr, after, *type, {"m", "apps/v1", "", "2024-01-01T00:00:01Z"});
  auto scaled = after;
  scaled.at("spec").at("replicas") = 2;
  track_update(after, scaled, *type, {"m", "apps/v1", "scale", "2024-01-01T00:00:02Z"});
  BOOST_TEST(json::serialize(scaled.at("metadata").at("managedFields")) ==
             R"([{"manager":"m","operation":"Update","apiVersion":"apps/v1",)"
             R"("time":"2024-01-01T00:00:02Z","fieldsType":"FieldsV1",)"
             R"("fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}])");
  const auto conflict =
      apply(scaled, {{"spec", {{"replicas", 3}}}}, *type, {"n", "apps/v1", "", ""}, false);
  BOOST_TEST_REQUIRE(conflict.has_error());
  BOOST_TEST(conflict.error().message ==
             "Apply failed with 1 conflict: conflict with \"m\" with subresource \"scale\" using "
             "apps/v1: .spec.replicas");
}

BOOST_AUTO_TEST_SUITE_END()
