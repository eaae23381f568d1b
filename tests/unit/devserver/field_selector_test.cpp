#include "rw/k8s/devserver/field_selector.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(field_selector)

namespace {

namespace devserver = rw::k8s::devserver;
namespace json = boost::json;

bool selects_fields(std::string_view text, std::string_view object) {
  const auto selector = devserver::field_selector::parse(text);
  BOOST_TEST_REQUIRE(selector.has_value(), text);
  return selector->matches(json::parse(object));
}

void refused(std::string_view text, std::string_view message) {
  const auto selector = devserver::field_selector::parse(text);
  BOOST_TEST_REQUIRE(selector.has_error(), text);
  BOOST_TEST(selector.error().code == 400u);
  BOOST_TEST(selector.error().reason == "BadRequest");
  BOOST_TEST(selector.error().message == message, text << ": " << selector.error().message);
}

}  // namespace

BOOST_AUTO_TEST_CASE(fields_are_selected_by_path) {
  const std::string pod = R"({"metadata":{"name":"a","namespace":"n"},"spec":{"nodeName":"x,y=z\\",
                              "unschedulable":true},"status":{"successful":3}})";
  BOOST_TEST(selects_fields("metadata.name=a", pod));
  BOOST_TEST(selects_fields("metadata.name==a,metadata.namespace=n", pod));
  BOOST_TEST(!selects_fields("metadata.name=a,metadata.name=b", pod));
  BOOST_TEST(!selects_fields("metadata.name!=a", pod));
  BOOST_TEST(selects_fields("metadata.name!=b", pod));
  BOOST_TEST(selects_fields("spec.nodeName=x\\,y\\=z\\\\", pod));
  BOOST_TEST(selects_fields("spec.unschedulable=true,status.successful=3", pod));
  BOOST_TEST(selects_fields("status.phase=", pod));
  BOOST_TEST(selects_fields("status.phase!=Running", pod));
  BOOST_TEST(!selects_fields("metadata.name.more=a", pod));
  BOOST_TEST(selects_fields(",", pod));
  BOOST_TEST(devserver::field_selector::parse("")->empty());
}

BOOST_AUTO_TEST_CASE(field_selector_is_rejected_in_the_words_of_kube_apiserver) {
  refused("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'");
  refused("metadata.name!a",
          "invalid selector: 'metadata.name!a'; can't understand 'metadata.name!a'");
  for (const auto* text : {"a=b=c", "a===b", "a!=b=c", "a\\=b=c"}) {
    refused(text, "invalid field selector: unescaped character in value: 61");
  }
  refused("a=b\\x", "invalid field selector: invalid escape sequence: \\x");
  refused("a=b\\", "invalid field selector: invalid escape sequence: \\");
}

BOOST_AUTO_TEST_CASE(terms_of_a_field_selector_can_be_looked_at) {
  const auto parsed = devserver::field_selector::parse("a.b!=c,d=e");
  BOOST_TEST_REQUIRE(parsed->terms().size() == 2u);
  BOOST_TEST(parsed->terms()[0].path == "a.b");
  BOOST_TEST(parsed->terms()[0].value == "c");
  BOOST_TEST(!parsed->terms()[0].equal);
  BOOST_TEST(parsed->terms()[1].path == "d");
  BOOST_TEST(parsed->terms()[1].equal);
}

BOOST_AUTO_TEST_SUITE_END()
