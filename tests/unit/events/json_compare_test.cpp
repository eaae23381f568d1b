#include "rw/reactors/events/json_compare.hpp"

#include "rw/core/json/canonical_number.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/oracle/review_reference.hpp"
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(json_compare)

namespace {

/// Compares two texts, and checks that the reference says the same.
bool json_equal(const std::string& a, const std::string& b) {
  const rw::core::json_document left(a);
  const rw::core::json_document right(b);
  const bool are_values = left.root().exists() && right.root().exists();
  const bool equal = a == b || (are_values && rw::admission::json_equal(left.root(), right.root()));
  BOOST_TEST(equal == rw::admission::reference_equal(a, b));
  return equal;
}

std::string canonical(std::string_view number) {
  std::string out;
  rw::core::append_canonical_number(out, number);
  return out;
}

std::string nested(std::size_t levels, const std::string& inner) {
  return std::string(levels, '[') + inner + std::string(levels, ']');
}

}  // namespace

BOOST_AUTO_TEST_CASE(spelling_of_numbers_does_not_matter) {
  for (const auto* one :
       {"1", "1.0", "1e0", "10e-1", "0.1e1", "1.00", "1E+0", "1e-0", "0.0001e4"}) {
    BOOST_TEST(json_equal("[1]", '[' + std::string(one) + ']'), one);
  }
  for (const auto* zero : {"0", "-0", "0.0", "-0.0", "0e7", "0E-3"}) {
    BOOST_TEST(json_equal("0", zero), zero);
  }
  BOOST_TEST(json_equal("1200", "1.2e3"));
  BOOST_TEST(json_equal("-0.0012", "-12e-4"));
}

BOOST_AUTO_TEST_CASE(numbers_are_never_rounded) {
  BOOST_TEST(!json_equal("9007199254740993", "9007199254740992"));
  BOOST_TEST(!json_equal("9007199254740993", "9007199254740992.0"));
  BOOST_TEST(json_equal("9007199254740993", "9007199254740993.0"));
  BOOST_TEST(!json_equal("18446744073709551616", "18446744073709551617"));
  BOOST_TEST(json_equal("18446744073709551616", "1.8446744073709551616e19"));
  BOOST_TEST(!json_equal("0.1", "0.1000000000000000000000001"));
  BOOST_TEST(!json_equal("1e400", "1e401"));
  BOOST_TEST(!json_equal("1", "-1"));
}

BOOST_AUTO_TEST_CASE(number_has_one_canonical_spelling) {
  BOOST_TEST(canonical("0") == "0");
  BOOST_TEST(canonical("-0.00e9") == "0");
  BOOST_TEST(canonical("120") == "12e1");
  BOOST_TEST(canonical("-1.20") == "-12e-1");
  BOOST_TEST(canonical("0.00120e5") == "12e1");
  BOOST_TEST(canonical("10.01") == "1001e-2");
  BOOST_TEST(canonical("5e-7") == "5e-7");
}

BOOST_AUTO_TEST_CASE(number_is_not_a_string) {
  BOOST_TEST(!json_equal("1", "\"1\""));
  BOOST_TEST(!json_equal("1", "\"1e0\""));
  BOOST_TEST(!json_equal("1",
                         "\"\xFF"
                         "1e0\""));
  BOOST_TEST(!json_equal("1", "true"));
  BOOST_TEST(!json_equal("0", "null"));
}

BOOST_AUTO_TEST_CASE(order_of_names_does_not_matter_but_order_of_arrays_does) {
  BOOST_TEST(json_equal(R"({"a":1,"b":{"c":2,"d":3}})", R"({"b":{"d":3,"c":2},"a":1})"));
  BOOST_TEST(!json_equal("[1,2]", "[2,1]"));
  BOOST_TEST(!json_equal("[1]", "[1,1]"));
  BOOST_TEST(!json_equal("[]", "{}"));
  BOOST_TEST(!json_equal(R"({"a":1})", R"({"a":1,"b":null})"));
}

BOOST_AUTO_TEST_CASE(strings_and_names_are_compared_decoded) {
  BOOST_TEST(json_equal(R"("\u0041\/\u00e9\ud83d\ude00")", "\"A/\xC3\xA9\xF0\x9F\x98\x80\""));
  BOOST_TEST(json_equal(R"({"\u0061":1})", R"({"a":1})"));
  BOOST_TEST(!json_equal(R"("a")", R"("A")"));
  BOOST_TEST(!json_equal(R"("\u0000")", R"("")"));
}

BOOST_AUTO_TEST_CASE(of_duplicate_names_the_last_counts) {
  BOOST_TEST(json_equal(R"({"a":1,"a":2})", R"({"a":2})"));
  BOOST_TEST(!json_equal(R"({"a":1,"a":2})", R"({"a":1})"));
  BOOST_TEST(json_equal(R"({"a":1,"\u0061":2})", R"({"a":2})"));
}

BOOST_AUTO_TEST_CASE(many_duplicates_and_escaped_names_are_one_member) {
  std::string many = R"({"b":0)";
  for (int i = 0; i < 2'000; ++i)
    many += (i % 2 == 0 ? R"(,"a":)" : R"(,"\u0061":)") + std::to_string(i);
  BOOST_TEST(json_equal(many + '}', R"({"a":1999,"b":0})"));
  BOOST_TEST(!json_equal(many + '}', R"({"a":1998,"b":0})"));
  std::string inside = R"({"x":{"b":1,"a":)" + many + R"(}},"x":{"a":1,"b":2}})";
  BOOST_TEST(json_equal(inside, R"({"x":{"b":2,"a":1}})"));
}

BOOST_AUTO_TEST_CASE(malformed_text_differs_from_everything_but_its_own_bytes) {
  BOOST_TEST(!json_equal("{", "{ "));
  BOOST_TEST(!json_equal("1", "1 x"));
  BOOST_TEST(!json_equal("", " "));
  BOOST_TEST(json_equal("{", "{"));
}

BOOST_AUTO_TEST_CASE(too_deep_text_differs) {
  BOOST_TEST(json_equal(nested(512, "1"), nested(512, "1.0")));
  BOOST_TEST(!json_equal(nested(513, "1"), nested(513, "1.0")));
  BOOST_TEST(!json_equal(nested(100'000, "1"), nested(100'000, "1.0")));
}

BOOST_AUTO_TEST_CASE(large_objects_in_another_order_are_compared_in_about_linear_time) {
  const int members = 50'000;
  std::string forward = "{";
  std::string backward = "{";
  for (int i = 0; i < members; ++i) {
    const int j = members - 1 - i;
    forward += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":" + std::to_string(i);
    backward += (i > 0 ? ",\"k" : "\"k") + std::to_string(j) + "\":" + std::to_string(j);
  }
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(json_equal(forward + '}', backward + '}'));
  BOOST_TEST(!json_equal(forward + '}', backward + ",\"more\":1}"));
  // Quadratic would be minutes; this leaves room for sanitizers on a busy machine.
  BOOST_TEST((std::chrono::steady_clock::now() - start < std::chrono::seconds(20)));
}

BOOST_AUTO_TEST_SUITE_END()
