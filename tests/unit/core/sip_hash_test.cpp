#include "rw/core/sip_hash.hpp"

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>

BOOST_AUTO_TEST_SUITE(sip_hash)

using namespace rw::core;

BOOST_AUTO_TEST_CASE(hash_is_that_of_the_paper) {
  // Appendix A of the paper; the others are of its reference implementation, for 0 to 8 bytes.
  const sip_key key{0x0706050403020100ULL, 0x0F0E0D0C0B0A0908ULL};
  std::string text;
  for (char c = 0; c < 15; ++c) text += c;
  BOOST_TEST((rw::core::sip_hash(key, text) == 0xA129CA6149BE45E5ULL));
  BOOST_TEST((rw::core::sip_hash(key, "") == 0x726FDB47DD0E0E31ULL));
  BOOST_TEST((rw::core::sip_hash(key, text.substr(0, 1)) == 0x74F839C593DC67FDULL));
  BOOST_TEST((rw::core::sip_hash(key, text.substr(0, 2)) == 0x0D6C8009D9A94F5AULL));
  BOOST_TEST((rw::core::sip_hash(key, text.substr(0, 3)) == 0x85676696D7FB7E2DULL));
  BOOST_TEST((rw::core::sip_hash(key, text.substr(0, 4)) == 0xCF2794E0277187B7ULL));
  BOOST_TEST((rw::core::sip_hash(key, text.substr(0, 5)) == 0x18765564CD99A68DULL));
  BOOST_TEST((rw::core::sip_hash(key, text.substr(0, 6)) == 0xCBC9466E58FEE3CEULL));
  BOOST_TEST((rw::core::sip_hash(key, text.substr(0, 7)) == 0xAB0200F58B01D137ULL));
  BOOST_TEST((rw::core::sip_hash(key, text.substr(0, 8)) == 0x93F5F5799A932462ULL));
}

BOOST_AUTO_TEST_CASE(hash_of_texts_depends_on_where_each_ends) {
  const std::set<std::size_t> all{foreign_hash("ab", "c"), foreign_hash("a", "bc"),
                                  foreign_hash("abc", ""), foreign_hash("", "abc"),
                                  foreign_hash(std::string("abc\0", 4), "")};
  BOOST_TEST(all.size() == 5u);
  BOOST_TEST(foreign_hash("12345678") != foreign_hash("123456780"));
  const std::string large(70'000, 'a');
  BOOST_TEST(foreign_hash(large, "") !=
             foreign_hash(large.substr(65'536), large.substr(0, 65'536)));
  BOOST_TEST(foreign_hash("abc") == foreign_text_hash()("abc"));
}

BOOST_AUTO_TEST_CASE(key_is_the_same_in_the_process_and_not_zero) {
  const auto& key = sip_key::of_process();
  BOOST_TEST((key.k0 != 0 || key.k1 != 0));
  BOOST_TEST(&key == &sip_key::of_process());
}

BOOST_AUTO_TEST_SUITE_END()
