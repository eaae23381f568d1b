#include "rw/reactors/shared/content_digest.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <string_view>

BOOST_AUTO_TEST_SUITE(content_digest)

// Digests are stored on objects in all runtimes: another one is a roll-out everywhere. The value
// was made by another implementation of the form that the header describes.
BOOST_AUTO_TEST_CASE(digest_is_the_same_in_every_version) {
  const auto value = boost::json::parse(R"({"b": [null, true, 1], "a": {"c": ""}})");
  BOOST_TEST(rw::content_digest().add(std::string_view("text")).add(value).hex() ==
             "265075088554b96ce2c444a1e535eb77");
}

BOOST_AUTO_TEST_CASE(values_that_read_alike_differ) {
  const auto of = [](const char* text) {
    return rw::content_digest().add(boost::json::parse(text)).hex();
  };
  BOOST_TEST(of(R"(["ab", "c"])") != of(R"(["a", "bc"])"));
  BOOST_TEST(of("1") != of(R"("1")"));
  BOOST_TEST(of(R"([["a"], "b"])") != of(R"([["a", "b"]])"));
  BOOST_TEST(of(R"({"a": 1, "b": 2})") == of(R"({"b": 2, "a": 1})"));
}

BOOST_AUTO_TEST_SUITE_END()
