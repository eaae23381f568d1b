#include "rw/k8s/objects/label_selector.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(label_selector)

namespace {

namespace k8s = rw::k8s;
namespace json = boost::json;

bool selects(std::string_view text, std::string_view labels) {
  const auto selector = k8s::label_selector::parse(text);
  BOOST_TEST_REQUIRE(selector.has_value(), text);
  const auto value = json::parse(labels);
  return selector->matches(&value);
}

bool selects_json(std::string_view text, std::string_view labels) {
  const auto selector = k8s::label_selector::from_json(json::parse(text));
  BOOST_TEST_REQUIRE(selector.has_value(), text);
  const auto value = json::parse(labels);
  return selector->matches(&value);
}

void refused(std::string_view text, std::string_view message) {
  const auto selector = k8s::label_selector::parse(text);
  BOOST_TEST_REQUIRE(selector.has_error(), text);
  BOOST_TEST(selector.error().message == message, text << ": " << selector.error().message);
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_text_selects_everything) {
  for (const auto* text : {"", " ", "\t\n"}) {
    BOOST_TEST(k8s::label_selector::parse(text)->empty());
    BOOST_TEST(k8s::label_selector::parse(text)->matches(nullptr));
    BOOST_TEST(selects(text, R"({"a":"b"})"));
  }
}

BOOST_AUTO_TEST_CASE(equality_needs_the_label_and_inequality_does_not) {
  for (const auto* text : {"a=b", "a==b", " a = b ", "a in (b)", "a in(b, c)"}) {
    BOOST_TEST(selects(text, R"({"a":"b"})"), text);
    BOOST_TEST(!selects(text, R"({"a":"x"})"), text);
    BOOST_TEST(!selects(text, "{}"), text);
    BOOST_TEST(!k8s::label_selector::parse(text)->matches(nullptr), text);
  }
  for (const auto* text : {"a!=b", "a notin (b)", "a notin (c,b)"}) {
    BOOST_TEST(!selects(text, R"({"a":"b"})"), text);
    BOOST_TEST(selects(text, R"({"a":"x"})"), text);
    BOOST_TEST(selects(text, "{}"), text);
    BOOST_TEST(k8s::label_selector::parse(text)->matches(nullptr), text);
  }
}

BOOST_AUTO_TEST_CASE(presence_and_absence) {
  BOOST_TEST(selects("a", R"({"a":""})"));
  BOOST_TEST(!selects("a", R"({"b":""})"));
  for (const auto* text : {"!a", "! a"}) {
    BOOST_TEST(!selects(text, R"({"a":""})"));
    BOOST_TEST(selects(text, R"({"b":""})"));
  }
}

BOOST_AUTO_TEST_CASE(values_may_be_empty) {
  for (const auto* text : {"a=", "a==", "a in ()", "a in ( )", "a in (,)", "a in (b,)"}) {
    BOOST_TEST(selects(text, R"({"a":""})"), text);
    BOOST_TEST(!selects(text, R"({"a":"c"})"), text);
  }
  BOOST_TEST(selects("a in (b,,c)", R"({"a":"c"})"));
  BOOST_TEST(selects("a=,b", R"({"a":"","b":"1"})"));
}

BOOST_AUTO_TEST_CASE(integers_are_compared) {
  BOOST_TEST(selects("a>1", R"({"a":"2"})"));
  BOOST_TEST(!selects("a>1", R"({"a":"1"})"));
  BOOST_TEST(selects("a < 10", R"({"a":"9"})"));
  BOOST_TEST(!selects("a<10", R"({"a":"x"})"));
  BOOST_TEST(!selects("a<10", "{}"));
}

BOOST_AUTO_TEST_CASE(selector_matches_if_all_terms_hold) {
  BOOST_TEST(selects("a=1,b!=2, !c ,d in (x, y)", R"({"a":"1","b":"3","d":"y"})"));
  BOOST_TEST(!selects("a=1,b!=2,!c,d in (x,y)", R"({"a":"1","b":"2","d":"y"})"));
  BOOST_TEST(!selects("a=1,a=2", R"({"a":"1"})"));
}

BOOST_AUTO_TEST_CASE(words_of_the_grammar_may_be_keys_and_values) {
  BOOST_TEST(selects("in in (in, notin)", R"({"in":"notin"})"));
  BOOST_TEST(selects("notin", R"({"notin":"x"})"));
  BOOST_TEST(selects("in=in", R"({"in":"in"})"));
  BOOST_TEST(selects("x-y.io/z=1", R"({"x-y.io/z":"1"})"));
}

// Each taken from the answer of a kube-apiserver.
BOOST_AUTO_TEST_CASE(label_selector_is_rejected_in_the_words_of_kube_apiserver) {
  refused("!a=b", "found '=', expected: ',' or 'end of string'");
  refused("a,", "found '', expected: identifier after ','");
  refused("a,,b", "found ',', expected: identifier after ','");
  refused(",a", "found ',', expected: !, identifier, or 'end of string'");
  refused("=b", "found '=', expected: !, identifier, or 'end of string'");
  refused("a=b c", "found 'c', expected: ',' or 'end of string'");
  refused("a=b=c", "found '=', expected: ',' or 'end of string'");
  refused("a in (b)c", "found 'c', expected: ',' or 'end of string'");
  refused("a in b", "unable to parse requirement: found 'b' expected: '('");
  refused("a in", "unable to parse requirement: found '' expected: '('");
  refused("a in (b", "unable to parse requirement: found '', expected: ',' or ')'");
  refused("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'");
  refused("a in (b=c)", "unable to parse requirement: found '=', expected: ',' or ')'");
  refused("a b", "unable to parse requirement: found 'b', expected: '=', '!=', '==', 'in', notin'");
  refused("a!!=b",
          "unable to parse requirement: found '!', expected: '=', '!=', '==', 'in', notin'");
  for (const auto* text : {"a===b", "a=!b", "a=(b)", "a=<b", "a<>b"}) {
    const std::string at(1, text[2] == '=' ? '=' : text[2]);
    refused(text, "unable to parse requirement: found '" + at + "', expected: identifier");
  }
  refused("!", "unable to parse requirement: found '', expected: identifier");
  for (const auto* text : {"a<x", "a > ", "a>1.5"}) {
    refused(text,
            "unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an integer");
  }
}

BOOST_AUTO_TEST_CASE(keys_and_values_must_be_well_formed) {
  refused("-a=b",
          "unable to parse requirement: invalid label key \"-a\": name part must consist of "
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')");
  refused("A/b=c",
          "unable to parse requirement: invalid label key \"A/b\": prefix part a lowercase RFC "
          "1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
          "start and end with an alphanumeric character (e.g. 'example.com', regex used for "
          "validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
  refused("a/b/c=d",
          "unable to parse requirement: invalid label key \"a/b/c\": a qualified name must consist "
          "of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
          "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
          "subdomain prefix and '/' (e.g. 'example.com/MyName')");
  refused("a=-b",
          "unable to parse requirement: invalid label value: \"-b\": at key: \"a\": a valid label "
          "must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
          "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
          "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
  const std::string longest(63, 'x');
  BOOST_TEST(k8s::label_selector::parse("a=" + longest).has_value());
  refused("a=" + longest + "x", "unable to parse requirement: invalid label value: \"" + longest +
                                    "x\": at key: \"a\": must be no more than 63 characters");
}

BOOST_AUTO_TEST_CASE(selector_object_joins_labels_and_expressions) {
  const std::string both = R"({"matchLabels":{"a":"1"},"matchExpressions":[
      {"key":"b","operator":"In","values":["x","y"]},{"key":"c","operator":"NotIn","values":["z"]},
      {"key":"d","operator":"Exists"},{"key":"e","operator":"DoesNotExist"}]})";
  BOOST_TEST(selects_json(both, R"({"a":"1","b":"y","d":""})"));
  BOOST_TEST(!selects_json(both, R"({"a":"1","b":"y","d":"","e":""})"));
  BOOST_TEST(!selects_json(both, R"({"a":"1","b":"y","c":"z","d":""})"));
  BOOST_TEST(!selects_json(both, R"({"a":"1","b":"w","d":""})"));
  BOOST_TEST(!selects_json(both, R"({"a":"1","b":"y"})"));
}

BOOST_AUTO_TEST_CASE(empty_selector_object_selects_everything_and_null_nothing) {
  for (const auto* text : {"{}", R"({"matchLabels":null,"matchExpressions":[]})"}) {
    BOOST_TEST(k8s::label_selector::from_json(json::parse(text))->empty());
    BOOST_TEST(selects_json(text, R"({"a":"b"})"));
  }
  BOOST_TEST(!k8s::label_selector::from_json(nullptr)->empty());
  BOOST_TEST(!selects_json("null", R"({"a":"b"})"));
}

BOOST_AUTO_TEST_CASE(selector_object_that_makes_no_sense_is_rejected) {
  const auto message = [](std::string_view text) {
    const auto got = k8s::label_selector::from_json(json::parse(text));
    return got.has_error() ? got.error().message : "accepted";
  };
  BOOST_TEST(message(R"({"matchExpressions":[{"key":"a","operator":"Like"}]})") ==
             "\"Like\" is not a valid label selector operator");
  BOOST_TEST(message(R"({"matchExpressions":[{"key":"a","operator":"In"}]})") ==
             "for 'in', 'notin' operators, values set can't be empty");
  BOOST_TEST(message(R"({"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]})") ==
             "values set must be empty for exists and does not exist");
  for (const auto* text :
       {"1", "[]", R"({"matchLabels":[]})", R"({"matchLabels":{"a":1}})",
        R"({"matchLabels":{"-":"a"}})", R"({"matchExpressions":{}})", R"({"matchExpressions":[1]})",
        R"({"matchExpressions":[{"key":"a","operator":"In","values":[1]}]})",
        R"({"matchExpressions":[{"key":"a","operator":"In","values":"b"}]})",
        R"({"matchExpressions":[{"operator":"Exists"}]})"}) {
    BOOST_TEST(message(text) != "accepted", text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
