#include "rw/reactors/cli/yaml_text.hpp"

#include "rw/k8s/objects/yaml.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>

BOOST_AUTO_TEST_SUITE(yaml_text)

BOOST_AUTO_TEST_CASE(block_style_is_that_of_kubectl) {
  const auto value = boost::json::parse(
      R"({"a":{"b":[1,{"c":"x","d":[]},[2,"3"]],"e":{}},"f":null,"g":"2026-01-01T00:00:00Z"})");
  BOOST_TEST(rw::cli::yaml_text(value) ==
             "a:\n"
             "  b:\n"
             "  - 1\n"
             "  - c: x\n"
             "    d: []\n"
             "  - - 2\n"
             "    - \"3\"\n"
             "  e: {}\n"
             "f: null\n"
             "g: \"2026-01-01T00:00:00Z\"\n");
}

BOOST_AUTO_TEST_CASE(text_of_several_lines_is_a_literal_block) {
  const auto value = boost::json::parse(R"({"a":{"b":"x: 1\n\n  y\n","c":["1\n2"]},"d":"\n"})");
  BOOST_TEST(rw::cli::yaml_text(value) ==
             "a:\n"
             "  b: |\n"
             "    x: 1\n"
             "\n"
             "      y\n"
             "  c:\n"
             "  - |-\n"
             "    1\n"
             "    2\n"
             "d: \"\\n\"\n");
}

BOOST_AUTO_TEST_CASE(fraction_is_a_number_by_yaml_1_1_as_well) {
  BOOST_TEST(rw::cli::yaml_text(boost::json::parse(R"({"a":0.0,"b":0.05,"c":15.0,"d":1e-7})")) ==
             "a: 0.0\nb: 0.05\nc: 15.0\nd: 0.0000001\n");
}

BOOST_AUTO_TEST_CASE(value_is_read_back_as_it_was) {
  for (
      const auto* text :
      {R"({"a":"true","b":"No","c":"1e3","d":"0x1","e":"~","f":"","g":" x","h":"x ","i":"a: b"})",
       R"({"a":"- x","b":"x #y","c":"line\nline","d":"\"'","e":"é","f":"n","g":"null","yes":1})",
       R"({"a":["x\ny\n",{"b":"x \n\n y\n"}],"c":" x\ny","d":"x\n\n","e":"x\ty\n","f":"#\n---\n"})",
       R"([[],{},[[{}]],{"a":[{"b":[{"c":1.5}]}]},true,-7])", R"("x")", R"({})"}) {
    const auto value = boost::json::parse(text);
    const rw::k8s::yaml_stream stream(rw::cli::yaml_text(value), 1000);
    BOOST_REQUIRE_EQUAL(stream.documents().size(), 1u);
    rw::k8s::yaml_reader reader(1000, 1u << 20);
    BOOST_TEST(reader.read(*stream.documents().front()) == value, text);
  }
}

BOOST_AUTO_TEST_SUITE_END()
