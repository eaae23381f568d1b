#include "rw/k8s/devserver/schema.hpp"

#include "rw/k8s/devserver/managed_fields.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include "tests/unit/run.hpp"
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <yaml-cpp/yaml.h>

BOOST_AUTO_TEST_SUITE(schema)

namespace {

using namespace rw::k8s::devserver;
namespace json = boost::json;

/// The schema of a kind whose spec has these properties.
std::string with_spec(std::string_view properties) {
  return R"({"type":"object","properties":{"spec":{"type":"object","properties":)" +
         std::string(properties) + "}}}";
}

std::shared_ptr<const rw::k8s::devserver::schema> compiled(std::string_view open_api) {
  const auto made = compile_schema(json::parse(open_api));
  BOOST_TEST_REQUIRE(made.has_value(), open_api << ": " << made.error().message);
  return *made;
}

/// "field | message" of each finding.
std::string findings(const rw::k8s::devserver::schema& type, std::string_view spec) {
  std::vector<cause> found;
  type.validate({{"spec", json::parse(spec)}}, "", found);
  std::string out;
  for (const auto& one : found) {
    out += (out.empty() ? "" : "\n") + one.field + " | " + one.message;
  }
  return out;
}

/// A property `p` of a spec, and what is said of its values.
class property {
 public:
  explicit property(std::string_view source)
      : type_(compiled(with_spec(R"({"p":)" + std::string(source) + "}"))) {}

  void accepts(std::string_view value) const {
    const auto said = findings(*type_, R"({"p":)" + std::string(value) + "}");
    BOOST_TEST(said == "", value << ": " << said);
  }
  void refuses(std::string_view value, std::string_view wanted) const {
    const auto said = findings(*type_, R"({"p":)" + std::string(value) + "}");
    BOOST_TEST(said == wanted, value << ": " << said);
  }
  /// Refuses with one finding, of the field itself.
  void says(std::string_view value, std::string_view message) const {
    refuses(value, "spec.p | " + std::string(message));
  }

 private:
  std::shared_ptr<const rw::k8s::devserver::schema> type_;
};

/// "field | message" of what is wrong with the schema of a field `spec`.
std::string faults(std::string_view spec, bool root = false) {
  const auto open_api =
      root ? std::string(spec)
           : R"({"type":"object","properties":{"spec":)" + std::string(spec) + "}}";
  const auto made = compile_schema(json::parse(open_api));
  if (made.has_value()) return "";
  BOOST_TEST(made.error().code == 422u);
  BOOST_TEST(made.error().reason == "Invalid");
  std::string out;
  for (const auto& one : made.error().causes) {
    const std::string_view prefix = root ? "openAPIV3Schema." : "openAPIV3Schema.properties[spec].";
    BOOST_TEST((one.field.starts_with(prefix) || one.field == "openAPIV3Schema"), one.field);
    out += (out.empty() ? "" : "\n") + one.field.substr(std::min(prefix.size(), one.field.size())) +
           " | " + one.message;
  }
  return out;
}

std::string pruned(const rw::k8s::devserver::schema& type, std::string_view object,
                   std::string* removed = nullptr) {
  auto value = json::parse(object);
  std::vector<std::string> paths;
  type.prune(value, paths);
  if (removed != nullptr) {
    for (const auto& one : paths) *removed += one + " ";
  }
  return json::serialize(value);
}

std::string defaulted(const rw::k8s::devserver::schema& type, std::string_view object) {
  auto value = json::parse(object);
  type.drop_nulls(value);
  type.fill_defaults(value);
  auto again = value;
  type.fill_defaults(again);
  BOOST_TEST(again == value);
  return json::serialize(value);
}

json::value from_yaml(const YAML::Node& node) {
  if (node.IsMap()) {
    json::object out;
    for (const auto& one : node) out.emplace(one.first.Scalar(), from_yaml(one.second));
    return out;
  }
  if (node.IsSequence()) {
    json::array out;
    for (const auto& one : node) out.push_back(from_yaml(one));
    return out;
  }
  if (!node.IsScalar()) return nullptr;
  const auto& text = node.Scalar();
  boost::system::error_code error;
  if (node.Tag() != "!") {
    auto parsed = json::parse(text, error);
    if (!error && !parsed.is_structured()) return parsed;
  }
  return json::value(text);
}

}  // namespace

// Words in these tests are what a kube-apiserver answered.

BOOST_AUTO_TEST_CASE(types_are_checked) {
  const property text(R"({"type":"string"})");
  text.accepts(R"("a")");
  text.says("5", R"(Invalid value: "integer": spec.p in body must be of type string: "integer")");
  text.says("1.5", R"(Invalid value: "number": spec.p in body must be of type string: "number")");
  text.says("true",
            R"(Invalid value: "boolean": spec.p in body must be of type string: "boolean")");
  text.says("[]", R"(Invalid value: "array": spec.p in body must be of type string: "array")");
  text.says("null", R"(Invalid value: "null": spec.p in body must be of type string: "null")");
  const property integer(R"({"type":"integer"})");
  for (const auto* good : {"1", "-1", "1.0", "99999999999"}) integer.accepts(good);
  integer.says("1.5",
               R"(Invalid value: "number": spec.p in body must be of type integer: "number")");
  integer.says("1e300",
               R"(Invalid value: "number": spec.p in body must be of type integer: "number")");
  const property number(R"({"type":"number"})");
  for (const auto* good : {"1", "1.5", "1e300"}) number.accepts(good);
  number.says(R"("x")",
              R"(Invalid value: "string": spec.p in body must be of type number: "string")");
  const property flag(R"({"type":"boolean"})");
  flag.accepts("true");
  flag.says("0", R"(Invalid value: "integer": spec.p in body must be of type boolean: "integer")");
  const property object(R"({"type":"object"})");
  object.accepts("{}");
  object.says("[]", R"(Invalid value: "array": spec.p in body must be of type object: "array")");
  const property list(R"({"type":"array","items":{"type":"string"}})");
  list.accepts(R"(["a"])");
  list.says("{}", R"(Invalid value: "object": spec.p in body must be of type array: "object")");
  list.refuses(
      R"(["a",null])",
      R"(spec.p[1] | Invalid value: "null": spec.p[1] in body must be of type string: "null")");
}

BOOST_AUTO_TEST_CASE(null_is_valid_for_nullable_fields_only) {
  property(R"({"type":"string","nullable":true})").accepts("null");
  property(R"({"x-kubernetes-preserve-unknown-fields":true})").accepts("null");
}

BOOST_AUTO_TEST_CASE(int_or_string_is_either) {
  for (const auto* source :
       {R"({"x-kubernetes-int-or-string":true})",
        R"({"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]})",
        R"({"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},
            {"type":"string"}]}]})"}) {
    const property either(source);
    either.accepts("5");
    either.accepts(R"("5")");
    either.says(
        "true",
        R"(Invalid value: "boolean": spec.p in body must be of type integer,string: "boolean")");
    either.says(
        "5.5",
        R"(Invalid value: "number": spec.p in body must be of type integer,string: "number")");
  }
}

BOOST_AUTO_TEST_CASE(required_fields_must_be_there) {
  const property both(
      R"({"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},
          "required":["a","b"]})");
  both.accepts(R"({"a":"","b":""})");
  both.refuses(R"({"a":"1"})", "spec.p.b | Required value");
  both.refuses("{}", "spec.p.a | Required value\nspec.p.b | Required value");
}

BOOST_AUTO_TEST_CASE(enums_list_their_values) {
  const property letters(R"({"type":"string","enum":["a","b"]})");
  letters.accepts(R"("b")");
  letters.says(R"("c")", R"(Unsupported value: "c": supported values: "a", "b")");
  letters.refuses(
      "5", R"(spec.p | Invalid value: "integer": spec.p in body must be of type string: "integer")"
           "\n"
           R"(spec.p | Unsupported value: 5: supported values: "a", "b")");
  property(R"({"type":"integer","enum":[1,2]})")
      .says("3", R"(Unsupported value: 3: supported values: "1", "2")");
}

BOOST_AUTO_TEST_CASE(numbers_have_bounds) {
  const property closed(R"({"type":"integer","maximum":10,"minimum":1})");
  closed.accepts("10");
  closed.accepts("1");
  closed.says("11", "Invalid value: 11: spec.p in body should be less than or equal to 10");
  closed.says("0", "Invalid value: 0: spec.p in body should be greater than or equal to 1");
  const property open(
      R"({"type":"integer","maximum":10,"exclusiveMaximum":true,"minimum":1,"exclusiveMinimum":true})");
  open.accepts("9");
  open.says("10", "Invalid value: 10: spec.p in body should be less than 10");
  open.says("1", "Invalid value: 1: spec.p in body should be greater than 1");
  const property fraction(R"({"type":"number","maximum":1.5,"minimum":0.5,"multipleOf":0.25})");
  fraction.accepts("0.75");
  fraction.refuses("0.1",
                   "spec.p | Invalid value: 0.1: spec.p in body should be a multiple of 0.25\n"
                   "spec.p | Invalid value: 0.1: spec.p in body should be greater than or equal "
                   "to 0.5");
  const property multiple(R"({"type":"integer","multipleOf":3})");
  multiple.accepts("6");
  multiple.says("4", "Invalid value: 4: spec.p in body should be a multiple of 3");
}

BOOST_AUTO_TEST_CASE(texts_have_lengths_in_characters) {
  const property text(R"({"type":"string","minLength":2,"maxLength":4})");
  for (const auto* good : {R"("ab")", R"("abcd")", R"("äöüß")"}) text.accepts(good);
  text.says(R"("a")", R"(Invalid value: "a": spec.p in body should be at least 2 chars long)");
  text.says(R"("abcde")",
            R"(Invalid value: "abcde": spec.p in body should be at most 4 chars long)");
}

BOOST_AUTO_TEST_CASE(patterns_match_anywhere_unless_anchored) {
  const property anchored(R"({"type":"string","pattern":"^[a-z]+$"})");
  anchored.accepts(R"("abc")");
  anchored.says(R"("A1")", R"(Invalid value: "A1": spec.p in body should match '^[a-z]+$')");
  property(R"({"type":"string","pattern":"b"})").accepts(R"("abc")");
}

BOOST_AUTO_TEST_CASE(hostile_pattern_takes_no_time) {
  const auto start = std::chrono::steady_clock::now();
  const auto text = '"' + std::string(100'000, 'a') + "!\"";
  const auto type = compiled(with_spec(R"({"p":{"type":"string","pattern":"^(a+)+$"}})"));
  BOOST_TEST(findings(*type, R"({"p":)" + text + "}") != "");
  BOOST_TEST((std::chrono::steady_clock::now() - start < rw::test::patience));
}

BOOST_AUTO_TEST_CASE(lists_and_maps_have_sizes) {
  const property list(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})");
  list.accepts("[1,2,3]");
  list.says("[]", "Invalid value: 0: spec.p in body should have at least 1 items");
  list.says("[1,2,3,4]", "Invalid value: 4: spec.p in body should have at most 3 items");
  const property map(R"({"type":"object","additionalProperties":{"type":"integer"},
                         "minProperties":1,"maxProperties":2})");
  map.accepts(R"({"a":1})");
  map.says("{}", "Invalid value: 1: spec.p in body should have at least 1 properties");
  map.says(R"({"a":1,"b":2,"c":3})",
           "Invalid value: 2: spec.p in body should have at most 2 properties");
  map.refuses(
      R"({"a":"x"})",
      R"(spec.p.a | Invalid value: "string": spec.p.a in body must be of type integer: "string")");
}

BOOST_AUTO_TEST_CASE(formats_are_checked) {
  const auto check = [](std::string_view format, std::initializer_list<const char*> good,
                        std::initializer_list<const char*> bad) {
    const property text(R"({"type":"string","format":")" + std::string(format) + "\"}");
    const auto quoted = [](const char* value) { return '"' + std::string(value) + '"'; };
    for (const auto* value : good) text.accepts(quoted(value));
    for (const auto* value : bad) {
      text.says(quoted(value), "Invalid value: " + quoted(value) +
                                   ": spec.p in body must be of type " + std::string(format) +
                                   ": " + quoted(value));
    }
  };
  check("date-time",
        {"2020-01-01T00:00:00Z", "2020-02-29T23:59:59.123+01:00", "2020-01-01t00:00:00z"},
        {"2020-01-01", "x", "", "2021-02-29T00:00:00Z", "2020-01-01T24:00:00Z",
         "2020-01-01T00:00:00", "2020-01-01T00:00:00.Z", "2020-01-01T00:00:00+0100"});
  check("date", {"2020-01-01", "2000-02-29"}, {"x", "2020-13-01", "1900-02-29", "2020-1-1"});
  check("duration", {"5m", "1h30m", "-1.5s", "0", "3 days", "10ms"}, {"x", "", "5", "5 q"});
  check("byte", {"aGk=", "aGVsbG8gdGhlcmU=", ""}, {"!!", "aGk", "a=bc", "===="});
  check("uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"x", "123e4567"});
  check("email", {"a@b.c"}, {"x", "@b", "a@"});
  check("ipv4", {"1.2.3.4"}, {"1.2.3", "::1", "256.1.1.1"});
  check("ipv6", {"::1", "2001:db8::1"}, {"x", "1.2.3.4"});
  check("cidr", {"10.0.0.0/8", "2001:db8::/32"}, {"x", "10.0.0.0", "10.0.0.0/33", "::/129"});
  check("mac", {"01:23:45:67:89:ab"}, {"x", "01:23:45:67:89:zz", "01:23-45:67:89:ab"});
  check("hostname", {"a.example.com", "localhost"}, {"a_b", "a b", "", "-a", "a..b"});
  check("uri", {"https://example.com/x?y=z", "/path", "urn:x"}, {"::", "x", "a b:c"});
  property(R"({"type":"string","format":"nonsense"})").accepts(R"("q")");
  property(R"({"type":"integer","format":"int32"})").accepts("99999999999");
}

BOOST_AUTO_TEST_CASE(any_of_needs_one_alternative) {
  const property any(R"({"type":"object","properties":{"a":{"type":"string"},
      "b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]})");
  any.accepts(R"({"a":"1"})");
  any.accepts(R"({"a":"1","b":1})");
  any.refuses("{}",
              R"(<nil> | Invalid value: "": "spec.p" must validate at least one schema (anyOf))"
              "\nspec.p.a | Required value");
}

BOOST_AUTO_TEST_CASE(one_of_needs_exactly_one_alternative) {
  const property one(R"({"type":"object","properties":{"a":{"type":"string"},
      "b":{"type":"integer"}},"oneOf":[{"required":["a"]},{"required":["b"]}]})");
  one.accepts(R"({"b":1})");
  one.refuses(
      "{}", R"(<nil> | Invalid value: "": "spec.p" must validate one and only one schema (oneOf). )"
            "Found none valid\nspec.p.a | Required value");
  one.refuses(
      R"({"a":"1","b":1})",
      R"(<nil> | Invalid value: "": "spec.p" must validate one and only one schema (oneOf). )"
      "Found 2 valid alternatives");
}

BOOST_AUTO_TEST_CASE(all_of_needs_all_alternatives) {
  const property all(R"({"type":"object","properties":{"a":{"type":"string"},
      "b":{"type":"integer"}},"allOf":[{"required":["a"]},{"properties":{"b":{"minimum":5}}}]})");
  all.accepts(R"({"a":"1","b":7})");
  const std::string message =
      R"(<nil> | Invalid value: "": "spec.p" must validate all the schemas (allOf))";
  all.refuses("{}", "spec.p.a | Required value\n" + message);
  all.refuses(R"({"b":1})",
              "spec.p.a | Required value\nspec.p.b | Invalid value: 1: spec.p.b in body should be "
              "greater than or equal to 5\n" +
                  message + ". None validated");
}

BOOST_AUTO_TEST_CASE(not_needs_its_schema_to_fail) {
  const property other(R"({"type":"string","not":{"enum":["x"]}})");
  other.accepts(R"("y")");
  other.refuses(R"("x")",
                R"(<nil> | Invalid value: "": "spec.p" must not validate the schema (not))");
}

BOOST_AUTO_TEST_CASE(items_of_sets_and_maps_are_distinct) {
  const property set(
      R"({"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"})");
  set.accepts(R"(["a","b"])");
  set.refuses(R"(["a","b","a","b"])", R"(spec.p[2] | Duplicate value: "a")"
                                      "\n"
                                      R"(spec.p[3] | Duplicate value: "b")");
  const property map(R"({"type":"array","items":{"type":"object","properties":{
      "k":{"type":"string"},"n":{"type":"integer","default":1}},"required":["k"]},
      "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","n"]})");
  map.accepts(R"([{"k":"1","n":1},{"k":"1","n":2}])");
  map.refuses(R"([{"k":"1","n":1},{"k":"1","n":1}])",
              R"(spec.p[1] | Duplicate value: map[string]interface {}{"k":"1", "n":1})");
  map.refuses(
      R"(["x"])",
      R"(spec.p[0] | Invalid value: "string": spec.p[0] in body must be of type object: "string")"
      "\n"
      R"(spec.p[0] | Invalid value: "x": must be an object for an array of list-type map)");
}

BOOST_AUTO_TEST_CASE(resources_in_resources_have_a_kind) {
  const property embedded(R"({"type":"object","x-kubernetes-embedded-resource":true,
                              "x-kubernetes-preserve-unknown-fields":true})");
  embedded.accepts(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"z":1})");
  embedded.refuses("{}",
                   "spec.p.apiVersion | Required value: must not be empty\n"
                   "spec.p.kind | Required value: must not be empty");
}

BOOST_AUTO_TEST_CASE(map_may_forbid_everything) {
  property(R"({"type":"object","additionalProperties":false})")
      .says(R"({"a":1})", R"(Invalid value: "a": spec.p.a in body is a forbidden property)");
}

BOOST_AUTO_TEST_CASE(metadata_is_checked_only_by_the_rules_of_the_schema) {
  const auto type = compiled(R"({"type":"object","properties":{"metadata":{"type":"object",
      "properties":{"name":{"type":"string","maxLength":3}}}}})");
  std::vector<cause> found;
  type->validate({{"metadata", {{"name", "abcd"}, {"labels", {{"a", "b"}}}}}}, "", found);
  BOOST_TEST_REQUIRE(found.size() == 1u);
  BOOST_TEST(found[0].field == "metadata.name");
}

BOOST_AUTO_TEST_CASE(findings_are_bounded) {
  const auto type = compiled(with_spec(R"({"p":{"type":"array","items":{"type":"string"}}})"));
  json::array many(50'000, 5);
  std::vector<cause> found;
  type->validate({{"spec", {{"p", std::move(many)}}}}, "", found);
  BOOST_TEST(found.size() == 1'000u);
}

BOOST_AUTO_TEST_CASE(unknown_fields_are_pruned) {
  const auto type = compiled(with_spec(R"({
      "o":{"type":"object","properties":{"x":{"type":"string"}}},
      "l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}}},
      "e":{"type":"object"},
      "t":{"type":"object","additionalProperties":true},
      "f":{"type":"object","additionalProperties":false},
      "p":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
           "properties":{"a":{"type":"object","properties":{"x":{"type":"string"}}}}},
      "pl":{"x-kubernetes-preserve-unknown-fields":true,"type":"array",
            "items":{"type":"object","properties":{"x":{"type":"string"}}}},
      "r":{"type":"object","x-kubernetes-embedded-resource":true,
           "properties":{"spec":{"type":"object","properties":{"q":{"type":"string"}}}}}})"));
  const auto check = [&type](std::string_view spec, std::string_view left,
                             std::string_view removed) {
    std::string paths;
    const auto object = R"({"spec":)" + std::string(spec) + "}";
    BOOST_TEST(pruned(*type, object, &paths) == R"({"spec":)" + std::string(left) + "}");
    BOOST_TEST(paths == removed);
  };
  check(R"({"o":{"x":"1","z":2},"w":3})", R"({"o":{"x":"1"}})", "spec.o.z spec.w ");
  check(R"({"l":[{"x":"1"},{"z":2}]})", R"({"l":[{"x":"1"},{}]})", "spec.l[1].z ");
  check(R"({"e":{"a":1}})", R"({"e":{}})", "spec.e.a ");
  check(R"({"t":{"a":{"b":1}}})", R"({"t":{"a":{}}})", "spec.t.a.b ");
  check(R"({"f":{"a":1}})", R"({"f":{"a":1}})", "");
  check(R"({"p":{"a":{"x":"1","y":2},"z":{"q":1}}})", R"({"p":{"a":{"x":"1"},"z":{"q":1}}})",
        "spec.p.a.y ");
  check(R"({"pl":[{"x":"1","y":1}]})", R"({"pl":[{"x":"1","y":1}]})", "");
  check(
      R"({"r":{"apiVersion":"v1","kind":"Q","metadata":{"name":"x"},"spec":{"q":"1","w":2},"z":1}})",
      R"({"r":{"apiVersion":"v1","kind":"Q","metadata":{"name":"x"},"spec":{"q":"1"}}})",
      "spec.r.spec.w spec.r.z ");
}

BOOST_AUTO_TEST_CASE(whole_object_keeps_its_envelope) {
  const auto type = compiled(R"({"type":"object"})");
  BOOST_TEST(pruned(*type, R"({"apiVersion":"v1","kind":"K","metadata":{"name":"x"},"w":1})") ==
             R"({"apiVersion":"v1","kind":"K","metadata":{"name":"x"}})");
}

BOOST_AUTO_TEST_CASE(defaults_are_filled_in) {
  const auto type = compiled(with_spec(R"({
      "d":{"type":"string","default":"D"},
      "dn":{"type":"string","default":"D","nullable":true},
      "n":{"type":"string"},
      "o":{"type":"object","default":{},"properties":{"a":{"type":"integer","default":7}}},
      "o2":{"type":"object","properties":{"a":{"type":"integer","default":7}}},
      "l":{"type":"array","items":{"type":"object",
           "properties":{"a":{"type":"integer","default":7}}}},
      "m":{"type":"object","additionalProperties":{"type":"object",
           "properties":{"a":{"type":"integer","default":7}}}},
      "ln":{"type":"array","items":{"type":"string","nullable":true}},
      "mn":{"type":"object","additionalProperties":{"type":"string"}}})"));
  const auto check = [&type](std::string_view spec, std::string_view filled) {
    BOOST_TEST(defaulted(*type, R"({"spec":)" + std::string(spec) + "}") ==
               R"({"spec":)" + std::string(filled) + "}");
  };
  check("{}", R"({"d":"D","dn":"D","o":{"a":7}})");
  check(R"({"d":"x","dn":null,"o":{"a":1},"n":null})", R"({"d":"x","dn":null,"o":{"a":1}})");
  check(R"({"d":null,"dn":"x","o":{},"o2":{}})", R"({"d":"D","dn":"x","o":{"a":7},"o2":{"a":7}})");
  check(R"({"d":"","dn":"","o":{"a":0},"l":[{},{"a":1}],"m":{"k":{}}})",
        R"({"d":"","dn":"","o":{"a":0},"l":[{"a":7},{"a":1}],"m":{"k":{"a":7}}})");
  check(R"({"d":"","dn":"","o":{"a":0},"ln":[null],"mn":{"a":null,"b":"x"}})",
        R"({"d":"","dn":"","o":{"a":0},"ln":[null],"mn":{"b":"x"}})");
  BOOST_TEST(defaulted(*type, "{}") == "{}");
}

BOOST_AUTO_TEST_CASE(schema_that_is_not_structural_is_rejected_in_the_words_of_kube_apiserver) {
  const auto refused = [](std::string_view spec, std::string_view wanted) {
    BOOST_TEST(faults(spec) == wanted, spec << ": " << faults(spec));
  };
  const std::string empty = "Forbidden: must be empty to be structural";
  refused("{}", "type | Required value: must not be empty for specified object fields");
  refused(R"({"type":"array"})", "items | Required value: must be specified");
  refused(R"({"type":"array","items":{}})",
          "items.type | Required value: must not be empty for specified array items");
  refused(R"({"type":"object","properties":{"a":{}}})",
          "properties[a].type | Required value: must not be empty for specified object fields");
  refused(R"({"type":"object","additionalProperties":{}})",
          "additionalProperties.type | Required value: must not be empty for specified object "
          "fields");
  refused(R"({"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false})",
          "additionalProperties | Forbidden: additionalProperties and properties are mutual "
          "exclusive");
  refused(R"({"type":"foo"})",
          R"(type | Unsupported value: "foo": supported values: "array", "boolean", "integer", )"
          R"("number", "object", "string")");
  refused(R"({"type":"object","uniqueItems":true})",
          "uniqueItems | Forbidden: uniqueItems cannot be set to true since the runtime complexity "
          "becomes quadratic");
  refused(R"({"type":"array","items":[{"type":"string"}]})",
          "items | Forbidden: items must be a schema object and not an array");
  refused(R"({"type":"object","$ref":"#/x"})", "$ref | Forbidden: $ref is not supported");
  refused(R"({"type":"object","patternProperties":{}})",
          "patternProperties | Forbidden: patternProperties is not supported");
  refused(R"({"type":"object","anyOf":[{"type":"object"}]})", "anyOf[0].type | " + empty);
  refused(R"({"type":"object","anyOf":[{"properties":{"x":{"type":"integer"}}}]})",
          "anyOf[0].properties[x].type | " + empty);
  refused(R"({"type":"object","not":{"default":5}})",
          "not.default | Forbidden: must be undefined to be structural");
  refused(R"({"type":"object","allOf":[{"nullable":true}]})",
          "allOf[0].nullable | Forbidden: must be false to be structural");
  refused(R"({"type":"string","pattern":"("})",
          R"(pattern | Invalid value: "(": must be a valid regular expression, but isn't: error )"
          "parsing regexp: missing closing ): `(`");
  refused(R"({"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"boolean"}]})",
          "anyOf[0].type | " + empty + "\nanyOf[1].type | " + empty);
  refused(R"({"anyOf":[{"type":"integer"},{"type":"string"}]})",
          "type | Required value: must not be empty for specified object fields\n"
          "anyOf[0].type | " +
              empty + "\nanyOf[1].type | " + empty);
  refused(R"({"type":"object","x-kubernetes-preserve-unknown-fields":false})",
          "x-kubernetes-preserve-unknown-fields | Invalid value: false: must be true or undefined");
  refused(R"({"type":"object","x-kubernetes-embedded-resource":true})",
          "properties | Required value: must not be empty if x-kubernetes-embedded-resource is "
          "true without x-kubernetes-preserve-unknown-fields");
  refused(
      R"({"type":"string","x-kubernetes-map-type":"atomic"})",
      R"(type | Invalid value: "string": must be object if x-kubernetes-map-type is specified)");
  refused(R"({"type":"object","x-kubernetes-map-type":"foo"})",
          R"(x-kubernetes-map-type | Unsupported value: "foo": supported values: "atomic", )"
          R"("granular")");
}

BOOST_AUTO_TEST_CASE(list_types_must_make_sense) {
  const auto refused = [](std::string_view rest, std::string_view wanted) {
    const auto spec = R"({"type":"array",)" + std::string(rest) + "}";
    BOOST_TEST(faults(spec) == wanted, rest << ": " << faults(spec));
  };
  const std::string keys = R"(,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":)";
  const std::string item = R"("items":{"type":"object","properties":{"a":{"type":"string"}},)";
  refused(
      R"("items":{"type":"string"},"x-kubernetes-list-type":"foo")",
      R"(x-kubernetes-list-type | Unsupported value: "foo": supported values: "atomic", "set", "map")");
  refused(
      R"("items":{"type":"object"},"x-kubernetes-list-type":"set")",
      R"(items.x-kubernetes-map-type | Invalid value: "null": must be atomic as item of a list )"
      "with x-kubernetes-list-type=set");
  refused(R"("items":{"type":"string","nullable":true},"x-kubernetes-list-type":"set")",
          "items.nullable | Forbidden: cannot be nullable when x-kubernetes-list-type is set");
  refused(R"("items":{"type":"string"},"x-kubernetes-list-type":"map")",
          "x-kubernetes-list-map-keys | Required value: must not be empty if "
          "x-kubernetes-list-type is map\nitems.type | Invalid value: \"string\": must be object "
          "if parent array's x-kubernetes-list-type is map");
  refused(R"("items":{"type":"string"},"x-kubernetes-list-map-keys":["a"])",
          "x-kubernetes-list-type | Required value: must be map if x-kubernetes-list-map-keys is "
          "non-empty");
  refused(item + R"("required":["a"]})" + keys + R"(["b"])",
          R"(x-kubernetes-list-map-keys | Invalid value: []string{"b"}: entries must all be names )"
          "of item properties");
  refused(item + R"("required":["a"]})" + keys + R"(["a","a"])",
          R"(x-kubernetes-list-map-keys | Invalid value: []string{"a", "a"}: must not contain )"
          "duplicate entries");
  refused(R"("items":{"type":"object","properties":{"a":{"type":"object"}},"required":["a"]})" +
              keys + R"(["a"])",
          R"(items.properties[a].type | Invalid value: "object": must be a scalar type if parent )"
          "array's x-kubernetes-list-type is map");
  refused(item + R"("description":"x"})" + keys + R"(["a"])",
          "items.properties[a].default | Required value: this property is in "
          "x-kubernetes-list-map-keys, so it must have a default or be a required property");
  BOOST_TEST(
      faults(R"({"type":"object","x-kubernetes-list-type":"set"})") ==
      R"(type | Invalid value: "object": must be array if x-kubernetes-list-type is specified)");
}

BOOST_AUTO_TEST_CASE(defaults_must_be_valid) {
  BOOST_TEST(faults(R"({"type":"integer","default":"x"})") ==
             R"(default | Invalid value: "string":  in body must be of type integer: "string")");
  BOOST_TEST(faults(R"({"type":"integer","maximum":5,"default":6})") ==
             "default | Invalid value: 6:  in body should be less than or equal to 5");
  const std::string object = R"({"type":"object","properties":{"a":{"type":"integer"}},"default":)";
  BOOST_TEST(faults(object + R"({"a":"x"}})") ==
             R"(default.a | Invalid value: "string": a in body must be of type integer: "string")");
  BOOST_TEST(
      faults(object + R"({"b":1}})") ==
      R"(default | Invalid value: map[string]interface {}{"b":1}: must not have unknown fields)");
}

BOOST_AUTO_TEST_CASE(root_is_an_object_with_an_envelope) {
  BOOST_TEST(faults("{}", true) == "type | Required value: must not be empty at the root");
  BOOST_TEST(faults(R"({"type":"string"})", true) ==
             R"(type | Invalid value: "string": must be object at the root)");
  BOOST_TEST(faults(R"({"type":"object","nullable":true})", true) ==
             "nullable | Forbidden: nullable cannot be true at the root");
  BOOST_TEST(faults(R"({"type":"object","properties":{"apiVersion":{"type":"integer"}}})", true) ==
             R"(properties[apiVersion].type | Invalid value: "integer": must be string)");
  BOOST_TEST(faults(R"({"type":"object","properties":{"metadata":{"type":"object",
                        "properties":{"labels":{"type":"object"}}}}})",
                    true) ==
             "properties[metadata] | Forbidden: must not specify anything other than name and "
             "generateName, but metadata is implicitly specified");
}

BOOST_AUTO_TEST_CASE(schemas_of_several_faults_name_all_of_them) {
  const auto made = compile_schema(
      json::parse(R"({"type":"object","properties":{"a":{"type":"array"},"b":{}}})"));
  BOOST_TEST_REQUIRE(made.has_error());
  BOOST_TEST(made.error().message ==
             "[openAPIV3Schema.properties[a].items: Required value: must be specified, "
             "openAPIV3Schema.properties[b].type: Required value: must not be empty for specified "
             "object fields]");
}

/// The causes' fields of a list `l` with these limits, and this rule on what contains it.
std::string costs(std::string_view limits, std::string_view rule) {
  const auto made = faults(R"({"type":"object","properties":{"l":{"type":"array",)" +
                           std::string(limits) + R"("items":{"type":"string","maxLength":63}}},
                               "x-kubernetes-validations":[{"rule":")" +
                           std::string(rule) + R"("}]})");
  return made.empty() ? "accepted" : made.substr(0, made.find(" ("));
}

BOOST_AUTO_TEST_CASE(rules_are_rejected_that_could_cost_too_much) {
  const auto* const pairs = "self.l.all(a, self.l.exists_one(b, a == b))";
  BOOST_TEST(costs("", "self.l.all(a, a != 'x')") == "accepted");
  BOOST_TEST(costs("", "size(self.l) < 5 && 'x' in self.l") == "accepted");
  BOOST_TEST(costs("\"maxItems\":64,", pairs) == "accepted");
  BOOST_TEST(costs("\"maxItems\":1000,", pairs) ==
             "x-kubernetes-validations[0].rule | Forbidden: estimated rule cost exceeds budget by "
             "factor of 2.9x");
  BOOST_TEST(costs("", pairs).starts_with(
      "x-kubernetes-validations[0].rule | Forbidden: estimated rule cost exceeds budget by factor "
      "of more than 100x"));
}

BOOST_AUTO_TEST_CASE(cost_of_a_rule_grows_with_the_lists_that_it_is_in) {
  const auto nested = [](std::string_view limit) {
    return faults(R"({"type":"object","properties":{"l":{"type":"array",)" + std::string(limit) +
                  R"x("items":{"type":"object",
                      "properties":{"t":{"type":"string","maxLength":1024}},
                      "x-kubernetes-validations":[{"rule":
                        "self.t.matches('^[-A-Za-z0-9/._~]+([-A-Za-z0-9/._~]|%[0-9a-f]{2})+$')"}]
                      }}}})x");
  };
  BOOST_TEST(nested(R"("maxItems":1000,)").empty());
  const auto unlimited = nested("");
  BOOST_TEST(
      unlimited.starts_with("properties[l].items.x-kubernetes-validations[0].rule | Forbidden"),
      unlimited);
}

BOOST_AUTO_TEST_CASE(compiler_rejects_values_that_are_no_schema) {
  for (const auto* source :
       {"null", "5", "[]", R"({"type":"object","properties":5})",
        R"({"type":"object","properties":{"a":5}})",
        R"({"type":"object","properties":{"a":{"type":"string","minLength":"x"}}})",
        R"({"type":"object","properties":{"a":{"type":"integer","maximum":"x"}}})",
        R"({"type":"object","properties":{"a":{"type":"integer","anyOf":[5]}}})"}) {
    BOOST_TEST(compile_schema(json::parse(source)).has_error(), source);
  }
}

BOOST_AUTO_TEST_CASE(server_side_apply_follows_the_list_types) {
  const auto type = compiled(with_spec(R"({
      "lm":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","port"],
            "items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},
                     "port":{"type":"integer","default":80},"val":{"type":"string"}}}},
      "ls":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
      "la":{"type":"array","items":{"type":"string"}},
      "m":{"type":"object","additionalProperties":{"type":"object",
           "properties":{"x":{"type":"string"}}}},
      "o":{"type":"object","properties":{"x":{"type":"string"}}},
      "ao":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"x":{"type":"string"}}},
      "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}})"));
  const field_writer by{"m", "t.example.com/v1", "", "2024-01-01T00:00:00Z"};
  const auto applied = json::parse(R"({"metadata":{"name":"s","finalizers":["e/a"]},"spec":{
      "lm":[{"name":"a","port":1},{"name":"a"}],"ls":["p","q"],"la":["z"],
      "m":{"k":{"x":"1"},"e":{}},"o":{"x":"1"},"ao":{"x":"1"},"free":{"q":{"r":1,"l":[1]}}}})");
  const auto made = apply(nullptr, applied, *type, by, false);
  BOOST_TEST_REQUIRE(made.has_value());
  BOOST_TEST(json::serialize(made->at("metadata").at("managedFields").at(0).at("fieldsV1")) ==
             R"({"f:metadata":{"f:finalizers":{"v:\"e/a\"":{}}},"f:spec":{"f:ao":{},)"
             R"("f:free":{"f:q":{".":{},"f:l":{},"f:r":{}}},"f:la":{},)"
             R"("f:lm":{"k:{\"name\":\"a\",\"port\":1}":{".":{},"f:name":{},"f:port":{}},)"
             R"("k:{\"name\":\"a\",\"port\":80}":{".":{},"f:name":{}}},)"
             R"("f:ls":{"v:\"p\"":{},"v:\"q\"":{}},"f:m":{"f:e":{},"f:k":{".":{},"f:x":{}}},)"
             R"("f:o":{"f:x":{}}}})");

  const auto refused = [&](std::string_view spec, std::string_view why) {
    const auto got = apply(nullptr, {{"spec", json::parse(spec)}}, *type, by, false);
    BOOST_TEST_REQUIRE(got.has_error(), spec);
    BOOST_TEST(got.error().message ==
                   "failed to create typed patch object (/; , Kind=): " + std::string(why),
               got.error().message);
  };
  refused(R"({"zz":1})", ".spec.zz: field not declared in schema");
  refused(R"({"lm":[{"name":"n","port":1},{"name":"n","port":1}]})",
          R"(.spec.lm: duplicate entries for key [name="n",port=1])");
  refused(R"({"lm":{},"ls":5})",
          "errors:\n  .spec.lm: expected list, got &{map[]}\n  .spec.ls: expected list, got &{5}");
}

// Validation ratcheting (Kubernetes, "Custom resources: validation ratcheting").
BOOST_AUTO_TEST_CASE(wrong_values_stay_where_an_update_does_not_touch_them) {
  const auto type = compiled(with_spec(
      R"({"n":{"type":"integer","maximum":1},"o":{"type":"object","properties":{"n":{"type":"integer","maximum":1}}},
          "m":{"type":"object","additionalProperties":{"type":"integer","maximum":1}},
          "l":{"type":"array","items":{"type":"integer","maximum":1}},
          "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object",
               "required":["name"],"properties":{"name":{"type":"string"},"n":{"type":"integer","maximum":1}}}},
          "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}})"));
  const auto is_valid = [&](std::string_view before, std::string_view after) {
    std::vector<cause> found;
    type->validate_object({{"spec", json::parse(before)}}, {{"spec", json::parse(after)}}, found);
    return found.empty();
  };
  BOOST_TEST(is_valid(R"({"n":2})", R"({"n":2,"l":[]})"));
  BOOST_TEST(!is_valid(R"({"n":2})", R"({"n":3})"));
  BOOST_TEST(is_valid(R"({"o":{"n":2}})", R"({"o":{"n":2},"n":1})"));
  BOOST_TEST(is_valid(R"({"m":{"a":2}})", R"({"m":{"a":2,"b":1}})"));
  BOOST_TEST(!is_valid(R"({"m":{"a":2}})", R"({"m":{"b":2}})"));
  // Items without keys are the same only with their list.
  BOOST_TEST(is_valid(R"({"l":[2]})", R"({"l":[2],"n":1})"));
  BOOST_TEST(!is_valid(R"({"l":[2]})", R"({"l":[2,1]})"));
  BOOST_TEST(
      is_valid(R"({"k":[{"name":"a","n":2}]})", R"({"k":[{"name":"b"},{"name":"a","n":2}]})"));
  BOOST_TEST(!is_valid(R"({"k":[{"name":"a","n":2}]})", R"({"k":[{"name":"b","n":2}]})"));
  // Duplicates count, unless there were some anywhere.
  BOOST_TEST(
      !is_valid(R"({"k":[{"name":"b"},{"name":"a"}]})", R"({"k":[{"name":"a"},{"name":"a"}]})"));
  BOOST_TEST(is_valid(R"({"s":["a","a"]})", R"({"k":[{"name":"a"},{"name":"a"}],"s":["a"]})"));
}

// The folder of RW_TEST_CRDS holds CustomResourceDefinitions as they are in use.
BOOST_AUTO_TEST_CASE(real_definitions_compile) {
  const auto* const folder = std::getenv("RW_TEST_CRDS");
  if (folder == nullptr) return;
  std::size_t versions = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    for (const auto& document : YAML::LoadAllFromFile(file.path().string())) {
      if (!document.IsMap() || document["kind"].as<std::string>() != "CustomResourceDefinition") {
        continue;
      }
      for (const auto& version : document["spec"]["versions"]) {
        const auto made = compile_schema(from_yaml(version["schema"]["openAPIV3Schema"]));
        BOOST_TEST(made.has_value(), file.path()
                                         << " " << document["metadata"]["name"].as<std::string>()
                                         << ": " << made.error().message);
        ++versions;
      }
    }
  }
  BOOST_TEST(versions > 0u);
  BOOST_TEST_MESSAGE(versions << " versions");
}

BOOST_AUTO_TEST_SUITE_END()
