#include "rw/k8s/devserver/yaml.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(yaml)

using rw::k8s::devserver::parse_yaml;
namespace json = boost::json;

namespace {

/// As JSON, or why it is none.
std::string read(const std::string& text) {
  std::string why;
  const auto value = parse_yaml(text, why);
  return value ? json::serialize(*value) : why;
}

}  // namespace

// What kubectl makes of the same texts.
BOOST_AUTO_TEST_CASE(unquoted_scalars_are_typed_as_in_kubectl) {
  BOOST_TEST(read("{defaultMode: 0644}") == R"({"defaultMode":420})");
  BOOST_TEST(read("[0o17, 0x1F, 0b11, -010, 08, 1_000]") == R"([15,31,3,-8,8E0,1000])");
  BOOST_TEST(read("[\"0644\", !!str 0644, yes, \"yes\", ~, 1.5, 1e3, 2001-01-01]") ==
             R"(["0644","0644",true,"yes",null,1.5E0,1E3,"2001-01-01"])");
}

BOOST_AUTO_TEST_CASE(documents_aliases_and_merges_are_followed) {
  BOOST_TEST(read("") == "null");
  BOOST_TEST(read("a: 1\n---\nb: 2\n") == R"({"a":1})");
  BOOST_TEST(read("a: &x {k: v}\nb: *x\nc: {<<: *x, l: w}\n") ==
             R"({"a":{"k":"v"},"b":{"k":"v"},"c":{"l":"w","k":"v"}})");
}

BOOST_AUTO_TEST_CASE(error_names_the_line) {
  BOOST_TEST(read("a: 1\nb: [") == "line 2: is not YAML: end of sequence flow not found");
  BOOST_TEST(read("a: 1\na: 2\n") == "line 2: \"a\" is there twice");
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += '[';
  for (int i = 0; i < 200; ++i) deep += ']';
  BOOST_TEST(read(deep).find("nested too deeply") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
