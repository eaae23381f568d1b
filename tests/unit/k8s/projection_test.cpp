#include "rw/k8s/objects/projection.hpp"

#include "rw/k8s/cache/list_decoder.hpp"
#include "rw/k8s/cache/watch_decoder.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/samples.hpp"
#include <stdexcept>
#include <string>

BOOST_AUTO_TEST_SUITE(projection)

using namespace rw::k8s;
using namespace rw::k8s::test;

namespace {

/// What a projection leaves of an object that a watch tells of.
std::string left_of(const std::string& text, const rw::k8s::projection& keep) {
  std::string left;
  watch_decoder decoder({configmaps(), false}, keep, 1 << 20, [&](const decoded_event& told) {
    left = told.subject.text();
    return true;
  });
  decoder.feed(event("ADDED", text));
  return decoder.error().code ? decoder.error().message : left;
}

const std::string full =
    R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n","uid":"u",)"
    R"("resourceVersion":"7","labels":{"x":"1","y":"2"},"annotations":{)"
    R"("kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"ConfigMap\"}","a.b/c":"d","e":"f"},)"
    R"("managedFields":[{"manager":"m","fieldsV1":{"k:{\"name\":\"x\"}":{}}}]},)"
    R"("spec":{"list":[{"name":"one","size":1,"more":[1,2]},{"name":"two","size":2}],"flag":true},)"
    R"("data":{"k":"v"}})";

}  // namespace

BOOST_AUTO_TEST_CASE(object_is_kept_as_it_came) {
  BOOST_TEST(left_of(full, rw::k8s::projection::whole()) == full);
}

BOOST_AUTO_TEST_CASE(managed_fields_go_wherever_they_stand) {
  const auto keep = rw::k8s::projection::without_managed_fields();
  auto expected = full;
  const auto from = expected.find(R"(,"managedFields")");
  expected.erase(from, expected.find("]},\"spec\"") + 1 - from);
  BOOST_TEST(left_of(full, keep) == expected);
  const std::string head = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{)";
  const std::string rest = R"("name":"a","resourceVersion":"7"}})";
  const std::string managed = R"("managedFields":[{"a":[{}]}])";
  BOOST_TEST(left_of(head + managed + "," + rest, keep) == head + rest);
  BOOST_TEST(left_of(head + R"("name":"a",)" + managed + R"(,"resourceVersion":"7"}})", keep) ==
             head + rest);
}

BOOST_AUTO_TEST_CASE(member_of_that_name_elsewhere_is_not_managed_fields) {
  const std::string text =
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},)"
      R"("managedFields":[1],"data":{"managedFields":"x"}})";
  BOOST_TEST(left_of(text, rw::k8s::projection::without_managed_fields()) == text);
}

BOOST_AUTO_TEST_CASE(metadata_projection_drops_the_annotation_of_kubectl) {
  BOOST_TEST(left_of(full, rw::k8s::projection::metadata()) ==
             R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n",)"
             R"("uid":"u","resourceVersion":"7","labels":{"x":"1","y":"2"},)"
             R"("annotations":{"a.b/c":"d","e":"f"}}})");
}

BOOST_AUTO_TEST_CASE(fields_projection_keeps_the_named_and_required_fields) {
  using rw::k8s::projection;
  const std::string head =
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"n",)"
      R"("uid":"u","resourceVersion":"7")";
  BOOST_TEST(left_of(full, projection::fields({})) == head + "}}");
  BOOST_TEST(left_of(full, projection::fields({"spec.flag"})) ==
             head + R"(},"spec":{"flag":true}})");
  BOOST_TEST(left_of(full, projection::fields({"metadata.labels.y"})) ==
             head + R"(,"labels":{"y":"2"}}})");
  BOOST_TEST(left_of(full, projection::fields({R"(metadata.annotations."a.b/c")"})) ==
             head + R"(,"annotations":{"a.b/c":"d"}}})");
  BOOST_TEST(left_of(full, projection::fields({"spec.nothing", "data"})) ==
             head + R"(},"spec":{},"data":{"k":"v"}})");
}

BOOST_AUTO_TEST_CASE(path_that_holds_another_keeps_all_of_it) {
  using rw::k8s::projection;
  const auto one = projection::fields({"spec", "spec.flag"});
  const auto other = projection::fields({"spec.flag", "spec"});
  BOOST_TEST(left_of(full, one) == left_of(full, other));
  BOOST_TEST(left_of(full, one).find("more") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(fields_are_chosen_in_each_element_of_a_list) {
  using rw::k8s::projection;
  const auto left = left_of(full, projection::fields({"spec.list.size"}));
  BOOST_TEST(left.ends_with(R"("spec":{"list":[{"size":1},{"size":2}]}})"));
  const std::string mixed =
      R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"7"},)"
      R"("data":[1,{"a":1,"b":2},"x",[{"b":3}],null,{"a":{"c":[]}}]})";
  BOOST_TEST(left_of(mixed, projection::fields({"data.a"}))
                 .ends_with(R"("data":[{"a":1},[{}],{"a":{"c":[]}}]})"));
}

BOOST_AUTO_TEST_CASE(value_without_the_members_of_a_path_is_dropped) {
  using rw::k8s::projection;
  const auto left = left_of(full, projection::fields({"spec.flag.deeper"}));
  BOOST_TEST(left.ends_with(R"("spec":{}})"));
}

BOOST_AUTO_TEST_CASE(malformed_path_is_named) {
  using rw::k8s::projection;
  for (const std::string path : {"", ".", "a.", ".a", "a..b", "a.\"b", "\"\"", "a\"b", "\"a\"b"}) {
    BOOST_CHECK_EXCEPTION(
        projection::fields({path}), std::invalid_argument, [&](const std::invalid_argument& e) {
          return std::string(e.what()).find("'" + path + "'") != std::string::npos;
        });
  }
}

BOOST_AUTO_TEST_SUITE_END()
