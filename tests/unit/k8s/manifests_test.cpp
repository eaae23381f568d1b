#include "rw/k8s/objects/manifests.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>
#include <vector>

BOOST_AUTO_TEST_SUITE(manifests)

namespace json = boost::json;
using rw::k8s::parse_manifests;

namespace {

const std::string head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// The field `x` of one object, as JSON; or what is wrong.
std::string typed(const std::string& yaml) {
  const auto read = parse_manifests(head + "x: " + yaml + "\n");
  return read ? json::serialize(read->at(0).at("x")) : read.error().message();
}

std::string wrong(const std::string& text) {
  const auto read = parse_manifests(text);
  return read ? "nothing" : read.error().message();
}

std::string names(const std::string& text) {
  const auto read = parse_manifests(text);
  if (!read) return read.error().message();
  std::string out;
  for (const auto& one : *read) out += std::string(one.at("metadata").at("name").as_string()) + " ";
  return out;
}

json::value of(const char* api_version, const char* kind, const char* name) {
  return {{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", name}}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(documents_are_told_apart_by_the_parser_and_not_by_a_line_of_dashes) {
  const std::string block = head + "data:\n  script: |\n    one\n    ---\n    two\n";
  const auto read = parse_manifests("# nothing\n---\n" + block + "---\n\n---\n" + head + "...\n");
  BOOST_TEST_REQUIRE(read.has_value(), read.error().message());
  BOOST_TEST(read->size() == 2U);
  BOOST_TEST(read->at(0).at("data").at("script").as_string() == "one\n---\ntwo\n");
}

BOOST_AUTO_TEST_CASE(list_is_taken_apart) {
  BOOST_TEST(names("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: "
                   "{name: a}}\n- {apiVersion: v1, kind: B, metadata: {name: b}}\n") == "a b ");
}

BOOST_AUTO_TEST_CASE(scalars_have_the_types_that_kubectl_gives_them) {
  BOOST_TEST(typed("yes") == "true");
  BOOST_TEST(typed("'yes'") == "\"yes\"");
  BOOST_TEST(typed("off") == "false");
  BOOST_TEST(typed("~") == "null");
  BOOST_TEST(typed("") == "null");
  BOOST_TEST(typed("''") == "\"\"");
  BOOST_TEST(typed("42") == "42");
  BOOST_TEST(typed("\"42\"") == "\"42\"");
  BOOST_TEST(typed("-7") == "-7");
  BOOST_TEST(typed("0644") == "420");
  BOOST_TEST(typed("0o644") == "420");
  BOOST_TEST(typed("0x1F") == "31");
  BOOST_TEST(typed("18446744073709551615") == "18446744073709551615");
  BOOST_TEST(typed("1.5") == "1.5E0");
  BOOST_TEST(typed("1e3") == "1E3");
  BOOST_TEST(typed("100m") == "\"100m\"");
  BOOST_TEST(typed("10.0.0.1") == "\"10.0.0.1\"");
  BOOST_TEST(typed("2026-11-21") == "\"2026-11-21\"");
  BOOST_TEST(typed("2026-11-21T09:00:00Z") == "\"2026-11-21T09:00:00Z\"");
  BOOST_TEST(typed("!!str 42") == "\"42\"");
  BOOST_TEST(typed("nullable") == "\"nullable\"");
  BOOST_TEST(typed("{on: 1, 8080: 2}") == R"({"true":1,"8080":2})");
}

BOOST_AUTO_TEST_CASE(aliases_and_merge_keys_are_followed) {
  BOOST_TEST(typed("[&a {k: v}, *a]") == R"([{"k":"v"},{"k":"v"}])");
  BOOST_TEST(typed("[&a {k: v, l: w}, {<<: *a, k: x}]") ==
             R"([{"k":"v","l":"w"},{"k":"x","l":"w"}])");
  BOOST_TEST(typed("[&a {k: v}, {!!merge <<: *a, l: w}]") == R"([{"k":"v"},{"l":"w","k":"v"}])");
  BOOST_TEST(typed("[&a {k: 1}, &b {k: 2, l: 3}, {<<: [*a, *b], m: 4}]") ==
             R"([{"k":1},{"k":2,"l":3},{"m":4,"k":1,"l":3}])");
  BOOST_TEST(typed("[&a {k: 1}, &b {<<: *a, l: 2}, {<<: *b}]") ==
             R"([{"k":1},{"l":2,"k":1},{"l":2,"k":1}])");
  BOOST_TEST(typed("{\"<<\": {k: v}}") == R"({"<<":{"k":"v"}})");
  BOOST_TEST(wrong(head + "x: {<<: v}\n").find("<< merges what is no mapping") !=
             std::string::npos);
  BOOST_TEST(wrong(head + "x: &a {b: {<<: *a}}\n").find("into itself") != std::string::npos);
  std::string text = head + "a: &a {";
  for (int i = 0; i < 2'000; ++i) text += "k" + std::to_string(i) + ": 1, ";
  text += "z: 1}\nb: [";
  for (int i = 0; i < 2'000; ++i) text += "{<<: *a}, ";
  BOOST_TEST(wrong(text + "]\n").find("is too large once its aliases are followed") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(binary_is_decoded) {
  BOOST_TEST(typed("!!binary aGVsbG8=") == R"("hello")");
  BOOST_TEST(typed("!!binary \"aGVs bG8=\"") == R"("hello")");
  BOOST_TEST(wrong(head + "x: !!binary aGVsbG8\n").find("no base64") != std::string::npos);
  BOOST_TEST(wrong(head + "x: !!binary /w==\n").find("no base64 of a text") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(text_that_grows_without_end_is_rejected) {
  std::string text = head + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += (j == 0 ? "" : ", ") + before;
    text += "]\n";
  }
  BOOST_TEST(wrong(text).find("is too large once its aliases are followed") != std::string::npos);
  BOOST_TEST(wrong(head + "x: &a [*a]\n").find("is nested too deeply") != std::string::npos);
  text = head + "a: &a " + std::string(200'000, 'x') + "\nb: [";
  for (int i = 0; i < 100; ++i) text += i == 0 ? "*a" : ", *a";
  BOOST_TEST(wrong(text + "]\n").find("is too large once its aliases are followed") !=
             std::string::npos);
  text = head + "a: {";
  for (int i = 0; i < 20'000; ++i) text += (i == 0 ? "k" : ", k") + std::to_string(i) + ": 1";
  BOOST_TEST(wrong(text + "}\n").find("has too many members") != std::string::npos);
  const auto large = parse_manifests(std::string(100, ' '), {.bytes = 10});
  BOOST_TEST(large.error().message() == "is larger than 10 bytes");
}

BOOST_AUTO_TEST_CASE(reading_ends_for_every_text) {
  for (const auto* text : {",", "]", "}", "a: b\n, c", "# x\n]\n", "? [", "- }"}) {
    BOOST_TEST(wrong(text) != "nothing", text);
  }
  BOOST_TEST(wrong(head + "---\n, a\n") == "document 3, line 5: is not YAML: unexpected character");
  BOOST_TEST(wrong("") == "nothing");
}

BOOST_AUTO_TEST_CASE(error_names_document_and_line) {
  BOOST_TEST(wrong(head + "---\n" + head + "a: 1\nb: 2\na: 3\n") ==
             "document 2, line 10: \"a\" is there twice");
  BOOST_TEST(wrong(head + "---\nkind: A\n") ==
             "document 2, line 5: apiVersion is missing or no string");
  BOOST_TEST(wrong("apiVersion: v1\nkind: A\n") ==
             "document 1, line 1: metadata.name is missing or no string");
  BOOST_TEST(wrong("- a\n") == "document 1, line 1: is no object");
  BOOST_TEST(wrong("a: [\n").find("is not YAML: ") != std::string::npos);
  BOOST_TEST(wrong(head + "x: .inf\n") == "document 1, line 4: JSON has no number .inf");
  BOOST_TEST(wrong(head + "x: !mine y\n") == "document 1, line 4: the tag !mine is not known");
  BOOST_TEST(wrong(head + "x: !!int y\n") == "document 1, line 4: \"y\" is no int");
}

BOOST_AUTO_TEST_CASE(sort_for_apply_puts_dependencies_first_and_webhooks_last) {
  std::vector<json::value> all = {
      of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "hook"),
      of("operator.kyma-project.io/v1beta2", "Kyma", "custom"),
      of("apps/v1", "Deployment", "deployment"),
      of("v1", "Service", "service"),
      of("v1", "Secret", "secret-b"),
      of("v1", "Secret", "secret-a"),
      of("scheduling.k8s.io/v1", "PriorityClass", "priority"),
      of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "definition"),
      of("v1", "Namespace", "namespace")};
  rw::k8s::sort_for_apply(all);
  std::string order;
  for (const auto& one : all) {
    order += std::string(one.at("metadata").at("name").as_string()) + " ";
  }
  BOOST_TEST(order ==
             "namespace definition priority secret-b secret-a service deployment custom hook ");
}

BOOST_AUTO_TEST_CASE(well_known_kinds_need_no_discovery) {
  const auto type = rw::k8s::well_known_type("apps/v1", "Deployment");
  BOOST_TEST_REQUIRE(type.has_value());
  BOOST_TEST(type->plural == "deployments");
  BOOST_TEST(type->namespaced);
  BOOST_TEST(!rw::k8s::well_known_type("scheduling.k8s.io/v1", "PriorityClass")->namespaced);
  BOOST_TEST(!rw::k8s::well_known_type("apps/v1beta1", "Deployment").has_value());
  BOOST_TEST(!rw::k8s::well_known_type("example.com/v1", "Deployment").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
