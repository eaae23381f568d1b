#include "rw/core/text.hpp"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(text)

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

BOOST_AUTO_TEST_SUITE_END()
