#include "rw/core/text.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(text)

using rw::core::middle_cut;
using rw::core::printable;

BOOST_AUTO_TEST_CASE(printable_replaces_white_space_and_each_character_that_is_not_ascii) {
  BOOST_TEST(printable("az AZ 09 ~") == "az AZ 09 ~");
  BOOST_TEST(printable("\x1b[2J\r\n\t\x7f") == "?[2J   ?");
  BOOST_TEST(printable("\xc3\xa4\xe2\x80\xae\xf0\x9f\x98\x80!\xff") == "??\?!?");
  BOOST_TEST(printable("\xc2\x9b"
                       "2J") == "?2J");
  BOOST_TEST(printable("\x9b"
                       "2J") == "2J");
  BOOST_TEST(printable("") == "");
}

BOOST_AUTO_TEST_CASE(middle_cut_keeps_the_beginning_and_the_end_of_a_text) {
  BOOST_TEST(middle_cut("", 0) == "");
  BOOST_TEST(middle_cut("0123456789", 10) == "0123456789");
  BOOST_TEST(middle_cut("0123456789ab", 11) == "012 ... 9ab");
  BOOST_TEST(middle_cut("0123456789ab", 10) == "01 ... 9ab");
  BOOST_TEST(middle_cut("0123456789", 6) == " ... 9");
  BOOST_TEST(middle_cut("0123456789", 5) == "01234");
  BOOST_TEST(middle_cut("0123456789", 0) == "");
}

BOOST_AUTO_TEST_CASE(middle_cut_keeps_whole_characters) {
  std::string umlauts;
  for (int i = 0; i < 10; ++i) umlauts += "\xc3\xa4";
  BOOST_TEST(middle_cut(umlauts, 11) == "\xc3\xa4 ... \xc3\xa4");
  BOOST_TEST(middle_cut(umlauts, 13) == "\xc3\xa4\xc3\xa4 ... \xc3\xa4\xc3\xa4");
  BOOST_TEST(middle_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 7) == " ... ");
}

BOOST_AUTO_TEST_SUITE_END()
