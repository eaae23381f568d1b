#include "rw/core/json_text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/test/unit_test.hpp>

#include <random>
#include <string>
#include <utility>
#include <vector>

BOOST_AUTO_TEST_SUITE(json_text)

namespace {

std::string json_string(std::string_view text) {
  std::string out = "before ";
  rw::core::append_json_string(out, text);
  BOOST_TEST(out.starts_with("before "));
  return out.substr(7);
}

std::string round_trip(std::string_view text) {
  return std::string(boost::json::parse(json_string(text)).as_string());
}

}  // namespace

BOOST_AUTO_TEST_CASE(plain_text_stands_as_it_is) {
  BOOST_TEST(json_string("") == R"("")");
  BOOST_TEST(json_string("plain text / 123") == R"("plain text / 123")");
  BOOST_TEST(json_string("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80") ==
             "\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80\"");
}

BOOST_AUTO_TEST_CASE(quotes_backslashes_and_control_characters_are_escaped) {
  BOOST_TEST(json_string("a\"b\\c") == R"("a\"b\\c")");
  BOOST_TEST(json_string("\n\r\t") == R"("\n\r\t")");
  BOOST_TEST(json_string(std::string("\0\x01\x1f", 3)) == R"("\u0000\u0001\u001f")");
  for (int c = 0; c < 0x80; ++c) {
    const std::string text(1, static_cast<char>(c));
    BOOST_TEST(round_trip(text) == text);
  }
}

/// Long texts are looked at several bytes at a time.
BOOST_AUTO_TEST_CASE(byte_is_escaped_wherever_it_stands_in_a_long_text) {
  for (std::size_t at = 0; at < 40; ++at) {
    for (int c = 0; c < 0x80; ++c) {
      std::string text(40, 'a');
      text[at] = static_cast<char>(c);
      BOOST_REQUIRE_EQUAL(round_trip(text), text);
    }
    std::string text(40, 'a');
    text[at] = '\xFF';
    BOOST_REQUIRE_EQUAL(round_trip(text),
                        text.substr(0, at) + "\xEF\xBF\xBD" + text.substr(at + 1));
  }
}

BOOST_AUTO_TEST_CASE(bytes_that_are_not_utf_8_become_the_replacement_character) {
  const std::string replacement = "\xEF\xBF\xBD";
  const std::vector<std::pair<std::string, int>> wrong = {
      {"\x80", 1},              // a continuation alone
      {"\xFF", 1},              // never a lead
      {"\xC3", 1},              // cut off
      {"\xE2\x82", 2},          // cut off
      {"\xC0\xAF", 2},          // overlong
      {"\xE0\x80\xAF", 3},      // overlong
      {"\xF0\x80\x80\xAF", 4},  // overlong
      {"\xED\xA0\x80", 3},      // surrogate
      {"\xF4\x90\x80\x80", 4},  // past U+10FFFF
      {"\xF5\x80\x80\x80", 4},  // never a lead
  };
  for (const auto& [bytes, count] : wrong) {
    std::string expected = "a";
    for (int i = 0; i < count; ++i) expected += replacement;
    expected += 'z';
    BOOST_TEST(round_trip("a" + bytes + "z") == expected);
  }
}

BOOST_AUTO_TEST_CASE(boundary_characters_of_utf_8_survive) {
  for (const auto* text :
       {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    BOOST_TEST(round_trip(text) == text);
  }
}

BOOST_AUTO_TEST_CASE(json_text_is_valid_for_any_bytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 20, '\0');
    for (auto& c : text) c = static_cast<char>(random());
    boost::system::error_code error;
    boost::json::parse(json_string(text), error);
    BOOST_TEST(!error);
  }
}

BOOST_AUTO_TEST_SUITE_END()
