#include "rw/k8s/objects/difference.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(difference)

namespace {

std::string differs(std::string_view desired, std::string_view live) {
  const auto found = rw::k8s::find_difference(boost::json::parse({desired.data(), desired.size()}),
                                              boost::json::parse({live.data(), live.size()}));
  return found.value_or("no");
}

}  // namespace

BOOST_AUTO_TEST_CASE(difference_considers_desired_fields_only) {
  BOOST_TEST(differs(R"({"spec":{"a":1}})", R"({"spec":{"a":1,"b":2},"status":{}})") == "no");
  BOOST_TEST(differs(R"({"spec":{"a":1}})", R"({"spec":{"a":2}})") == "spec.a");
  BOOST_TEST(differs(R"({"spec":{"a":1}})", R"({"spec":{}})") == "spec.a");
  BOOST_TEST(differs(R"({"spec":{"a":1}})", R"({"spec":"a"})") == "spec");
  BOOST_TEST(differs(R"({"spec":{"a":null}})", R"({"spec":{}})") == "no");
  BOOST_TEST(differs(R"({"spec":{"a":5}})", R"({"spec":{"a":5.0}})") == "no");
}

BOOST_AUTO_TEST_CASE(absent_and_empty_are_equal) {
  BOOST_TEST(differs(R"({"a":"","b":{},"c":[],"d":false,"e":0})", R"({})") == "no");
  BOOST_TEST(differs(R"({"a":"","b":{},"c":[]})", R"({"a":null,"b":null,"c":null})") == "no");
  BOOST_TEST(differs(R"({"a":false})", R"({"a":true})") == "a");
  BOOST_TEST(differs(R"({"a":0})", R"({"a":1})") == "a");
  BOOST_TEST(differs(R"({"automountServiceAccountToken":false})", "{}") ==
             "automountServiceAccountToken");
  for (const auto* present : {R"({"a":true})", R"({"a":1})", R"({"a":"x"})", R"({"a":[0]})"}) {
    BOOST_TEST(differs(present, "{}") == "a");
  }
  BOOST_TEST(differs(R"({"a":{}})", R"({"a":"x"})") == "a");
  BOOST_TEST(differs(R"({"a":""})", R"({"a":"x"})") == "a");
  BOOST_TEST(differs(R"({"a":[]})", R"({"a":["x"]})") == "a");
}

BOOST_AUTO_TEST_CASE(merged_lists_are_compared_by_their_keys) {
  const auto* live = R"({"spec":{"containers":[{"name":"other"},
    {"name":"server","image":"a","terminationMessagePath":"/dev/x",
     "env":[{"name":"X","value":"1"},{"name":"Y","value":"2"}],
     "ports":[{"containerPort":2112,"protocol":"TCP"},{"containerPort":8443,"protocol":"TCP"}],
     "volumeMounts":[{"name":"tls","mountPath":"/tls"}]}]}})";
  BOOST_TEST(differs(R"({"spec":{"containers":[{"name":"server","image":"a",
    "env":[{"name":"Y","value":"2"}],"ports":[{"containerPort":8443}],
    "volumeMounts":[{"name":"tls","mountPath":"/tls"}]}]}})",
                     live) == "no");
  BOOST_TEST(differs(R"({"spec":{"containers":[{"name":"server","image":"b"}]}})", live) ==
             "spec.containers[server].image");
  BOOST_TEST(differs(R"({"spec":{"containers":[{"name":"third"}]}})", live) ==
             "spec.containers[third]");
  BOOST_TEST(differs(R"({"spec":{"containers":[{"name":"server",
    "ports":[{"containerPort":8443,"protocol":"UDP"}]}]}})",
                     live) == "spec.containers[server].ports[8443]");
}

BOOST_AUTO_TEST_CASE(lists_without_keys_are_compared_by_position) {
  BOOST_TEST(differs(R"({"rules":[{"resources":["a"]}]})",
                     R"({"rules":[{"resources":["a"],"scope":"*"}]})") == "no");
  BOOST_TEST(differs(R"({"rules":[{"resources":["a"]}]})",
                     R"({"rules":[{"resources":["a","b"]}]})") == "rules[0].resources");
  BOOST_TEST(differs(R"({"egress":[{"ports":[{"port":443,"protocol":"TCP"}]}]})",
                     R"({"egress":[{"ports":[{"port":443,"protocol":"TCP"},
                         {"port":1,"protocol":"TCP"}]}]})") == "egress[0].ports");
}

BOOST_AUTO_TEST_CASE(elements_with_the_same_key_are_compared_one_by_one) {
  const auto* twice = R"({"env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]})";
  BOOST_TEST(differs(twice, twice) == "no");
  BOOST_TEST(differs(twice, R"({"env":[{"name":"A","value":"2"}]})") == "env");
}

BOOST_AUTO_TEST_CASE(further_label_in_a_selector_is_a_difference) {
  const auto* live = R"({"objectSelector":{"matchLabels":{"a":"b","c":"d"}}})";
  BOOST_TEST(differs(R"({"objectSelector":{"matchLabels":{"a":"b"}}})", live) == "objectSelector");
  BOOST_TEST(differs(R"({"objectSelector":{}})", live) == "objectSelector");
  BOOST_TEST(differs(R"({"matchLabels":{"a":"b"}})", R"({"matchLabels":{"a":"b","c":"d"}})") ==
             "no");
}

BOOST_AUTO_TEST_CASE(quantities_are_compared_by_value) {
  BOOST_TEST(differs(R"({"limits":{"cpu":"0.1","memory":"200Mi"}})",
                     R"({"limits":{"cpu":"100m","memory":"209715200"}})") == "no");
  BOOST_TEST(differs(R"({"limits":{"cpu":"0.1"}})", R"({"limits":{"cpu":"1"}})") == "limits.cpu");
  BOOST_TEST(differs(R"({"limits":{"cpu":2}})", R"({"limits":{"cpu":"2"}})") == "no");
  using rw::k8s::same_quantity;
  BOOST_TEST(same_quantity("1Ki", "1024"));
  BOOST_TEST(same_quantity("1k", "1e3"));
  BOOST_TEST(same_quantity("1.50", "1500m"));
  BOOST_TEST(same_quantity("0", "0Mi"));
  BOOST_TEST(same_quantity("1E", "1e18"));
  BOOST_TEST(!same_quantity("-1", "1"));
  BOOST_TEST(!same_quantity("1M", "1Mi"));
  BOOST_TEST(!same_quantity("x", "y"));
  BOOST_TEST(same_quantity("x", "x"));
  BOOST_TEST(!same_quantity("", "0"));
  BOOST_TEST(!same_quantity("99999999999999999999999", "1"));
}

BOOST_AUTO_TEST_CASE(text_of_a_secret_is_compared_with_its_data) {
  BOOST_TEST(differs(R"({"kind":"Secret","stringData":{"a":"b"}})",
                     R"({"kind":"Secret","data":{"a":"Yg==","c":"ZA=="}})") == "no");
  BOOST_TEST(differs(R"({"kind":"Secret","stringData":{"a":"c"}})",
                     R"({"kind":"Secret","data":{"a":"Yg=="}})") == "data.a");
}

BOOST_AUTO_TEST_SUITE_END()
