#include "rw/tls/digest.hpp"

#include "rw/core/text.hpp"

#include <boost/test/unit_test.hpp>
#include <openssl/evp.h>

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(digest)

using namespace rw;

namespace {

// Of NIST's examples for FIPS 180-4.
constexpr std::string_view of_abc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view of_nothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// While it lives, OpenSSL finds no digest that was not looked up before.
class without_digests {
 public:
  without_digests() { EVP_set_default_properties(nullptr, "provider=none"); }
  ~without_digests() { EVP_set_default_properties(nullptr, ""); }
  without_digests(const without_digests&) = delete;
  without_digests& operator=(const without_digests&) = delete;
};

}  // namespace

// Where something else has looked the algorithm up before, it is there, and the digest is right.
BOOST_AUTO_TEST_CASE(digest_that_cannot_be_made_is_no_constant) {
  std::optional<std::string> made;
  {
    const without_digests here;
    try {
      made = core::hex(tls::sha256("abc"));
    } catch (const std::exception&) {
    }
  }
  BOOST_TEST((!made || *made == of_abc));
}

BOOST_AUTO_TEST_CASE(digests_are_those_of_the_standard) {
  BOOST_TEST(core::hex(tls::sha256("abc")) == of_abc);
  BOOST_TEST(core::hex(tls::sha256("")) == of_nothing);
}

BOOST_AUTO_TEST_CASE(digest_of_parts_is_that_of_the_whole) {
  BOOST_TEST(core::hex(tls::sha256_stream().add("a").add("").add("bc").finish()) == of_abc);
  BOOST_TEST(core::hex(tls::sha256_stream().finish()) == of_nothing);
}

BOOST_AUTO_TEST_CASE(digest_that_has_ended_takes_no_more) {
  tls::sha256_stream ended;
  ended.add("abc").finish();
  BOOST_CHECK_THROW(ended.add("d"), std::runtime_error);
  BOOST_CHECK_THROW(ended.finish(), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
