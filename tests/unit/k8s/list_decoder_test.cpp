#include "rw/k8s/cache/list_decoder.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/k8s/samples.hpp"
#include <string>

BOOST_AUTO_TEST_SUITE(list_decoder)

using namespace rw::k8s;
using namespace rw::k8s::test;

namespace {

result<list_page> decode(const std::string& body, bool metadata_only = false) {
  return decode_list(body, {configmaps(), metadata_only}, projection::without_managed_fields());
}

void check_refused(const std::string& body, const std::string& why) {
  const auto page = decode(body);
  BOOST_REQUIRE(page.has_error());
  BOOST_TEST(page.error().is(errc::bad_response));
  BOOST_TEST(page.error().message.find(why) != std::string::npos, page.error().message);
}

}  // namespace

BOOST_AUTO_TEST_CASE(page_has_its_objects_and_where_to_go_on) {
  const auto page =
      decode(list("9", {configmap("a", "1"), configmap("b", "2")}, "to be continued"));
  BOOST_REQUIRE(page.has_value());
  BOOST_TEST(page->resource_version == "9");
  BOOST_TEST(page->continue_token == "to be continued");
  BOOST_REQUIRE(page->items.size() == 2U);
  BOOST_TEST(page->items[1].name() == "b");
  BOOST_TEST(page->items[1].resource_version() == "2");
}

BOOST_AUTO_TEST_CASE(object_looks_the_same_from_a_list_and_from_a_watch) {
  const auto page = decode(list("9", {configmap("a", "1")}));
  BOOST_REQUIRE(page.has_value());
  auto expected = configmap("a", "1");
  const auto from = expected.find(R"(,"managedFields")");
  expected.erase(from, expected.find("]}") + 1 - from);
  BOOST_TEST(page->items.at(0).text() == expected);
  BOOST_TEST(page->items.at(0).name() == "a");
  BOOST_TEST(page->items.at(0).ns() == "default");
  BOOST_TEST(page->items.at(0).uid() == "u-a");
  BOOST_TEST(page->items.at(0).resource_version() == "1");
}

BOOST_AUTO_TEST_CASE(objects_of_another_version_are_taken_where_any_will_do) {
  const std::string body =
      R"({"kind":"BundleList","metadata":{"resourceVersion":"9"},"items":[{"apiVersion":"g/v1alpha1",)"
      R"("kind":"Bundle","metadata":{"name":"a","resourceVersion":"1"}}]})";
  const resource_type bundles{{"g", "v1", "Bundle"}, "bundles", false};
  const auto keep = projection::without_managed_fields();
  const auto page = decode_list(body, {bundles, false, true}, keep);
  BOOST_REQUIRE(page.has_value());
  BOOST_TEST(page->items.at(0).name() == "a");
  BOOST_TEST(decode_list(body, {bundles, false}, keep).has_error());
}

BOOST_AUTO_TEST_CASE(objects_of_custom_resources_carry_their_own_kind) {
  // Members in the order of their names, as a server writes what has no type of Go.
  const auto page = decode(R"({"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"ConfigMap",)"
                           R"("metadata":{"name":"a","resourceVersion":"1"}}],"kind":"MapList",)"
                           R"("metadata":{"continue":"","resourceVersion":"9"}})");
  BOOST_REQUIRE(page.has_value());
  BOOST_TEST(
      page->items.at(0).text() ==
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"1"}})");
  BOOST_TEST(page->continue_token.empty());
}

BOOST_AUTO_TEST_CASE(decoder_adds_only_fields_that_an_object_omits) {
  const auto text_of = [](const std::string& naming) {
    const auto page = decode(
        R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{)" +
        naming + R"("metadata":{"name":"a","resourceVersion":"1"}}]})");
    return page ? std::string(page->items.at(0).text()) : page.error().message;
  };
  const std::string rest = R"("metadata":{"name":"a","resourceVersion":"1"}})";
  BOOST_TEST(text_of("") == R"({"kind":"ConfigMap","apiVersion":"v1",)" + rest);
  BOOST_TEST(text_of(R"("kind":"ConfigMap",)") ==
             R"({"apiVersion":"v1","kind":"ConfigMap",)" + rest);
  BOOST_TEST(text_of(R"("apiVersion":"v1",)") ==
             R"({"kind":"ConfigMap","apiVersion":"v1",)" + rest);
}

BOOST_AUTO_TEST_CASE(empty_list_may_be_null) {
  for (const std::string items : {"[]", "null"}) {
    const auto page = decode(
        R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":)" +
        items + "}");
    BOOST_REQUIRE(page.has_value());
    BOOST_TEST(page->items.empty());
  }
}

BOOST_AUTO_TEST_CASE(partial_metadata_is_filled_in_as_such) {
  const auto page = decode(
      R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},)"
      R"("items":[{"metadata":{"name":"a","resourceVersion":"1"}}]})",
      true);
  BOOST_REQUIRE(page.has_value());
  BOOST_TEST(page->items.at(0).text().starts_with(
      R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",)"));
  const auto whole = decode(list("9", {configmap("a", "1")}), true);
  BOOST_REQUIRE(whole.has_value());
  BOOST_TEST(whole->items.at(0).text().starts_with(R"({"kind":"ConfigMap")"));
}

BOOST_AUTO_TEST_CASE(unusual_object_does_not_affect_the_others) {
  const auto page = decode(list("9", {configmap("a", "1"), configmap("\\u0062", "2"),
                                      configmap("c", "3", {}, "\\ud83d\\ude00")}));
  BOOST_REQUIRE(page.has_value());
  BOOST_REQUIRE(page->items.size() == 3U);
  BOOST_TEST(page->items[0].name() == "a");
  BOOST_TEST(page->items[1].name() == "b");
  BOOST_TEST(page->items[2].name() == "c");
}

BOOST_AUTO_TEST_CASE(decoder_rejects_text_that_is_no_list_with_the_reason) {
  check_refused("", "is not JSON");
  check_refused("<html>busy</html>", "is not JSON");
  check_refused(list("9", {configmap("a", "1")}).insert(1, "\"x\":1 2,"), "is not JSON");
  check_refused(list("9", {configmap("a", "1")}) + "{}", "is not JSON");
  check_refused("[]", "is no list of objects");
  check_refused("{}", "has no items");
  check_refused(R"({"kind":"Status","metadata":{},"status":"Success"})", "it is a Status");
  check_refused(R"({"kind":"ConfigMapList","metadata":{},"items":[]})",
                "has no metadata.resourceVersion");
  check_refused(R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":{}})",
                "is no list of objects");
  check_refused(R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[1]})",
                "is no list of objects");
  check_refused(
      R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"resourceVersion":"1"}}]})",
      "without metadata.name");
  check_refused(
      R"({"kind":"SecretList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a","resourceVersion":"1"}}]})",
      "is no ConfigMap");
  auto secret = configmap("a", "1");
  secret.replace(secret.find("ConfigMap"), 9, "Secret");
  check_refused(list("9", {configmap("b", "1"), secret}), "is no ConfigMap");
}

BOOST_AUTO_TEST_SUITE_END()
