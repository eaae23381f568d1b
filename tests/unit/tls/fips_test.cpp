#include "rw/tls/fips.hpp"

#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(fips)

using rw::tls::current_fips_mode;
using rw::tls::decide_fips_mode;
using rw::tls::fips_mode;
using names = std::vector<std::string>;

BOOST_AUTO_TEST_CASE(mode_is_only_when_no_other_provider_has_algorithms) {
  for (const bool by_default : {true, false}) {
    BOOST_TEST((decide_fips_mode(by_default, names{"fips"}) == fips_mode::only));
    BOOST_TEST((decide_fips_mode(by_default, names{"base", "fips"}) == fips_mode::only));
    BOOST_TEST((decide_fips_mode(by_default, names{"null", "fips", "base"}) == fips_mode::only));
  }
}

BOOST_AUTO_TEST_CASE(mode_is_on_when_fips_is_the_default_among_several_providers) {
  BOOST_TEST((decide_fips_mode(true, names{"default", "fips"}) == fips_mode::on));
  BOOST_TEST((decide_fips_mode(true, names{"fips", "base", "legacy"}) == fips_mode::on));
  BOOST_TEST((decide_fips_mode(true, names{"a-hardware-module"}) == fips_mode::on));
}

BOOST_AUTO_TEST_CASE(mode_is_off_when_other_algorithms_are_taken) {
  BOOST_TEST((decide_fips_mode(false, names{}) == fips_mode::off));
  BOOST_TEST((decide_fips_mode(false, names{"base"}) == fips_mode::off));
  BOOST_TEST((decide_fips_mode(false, names{"default"}) == fips_mode::off));
  BOOST_TEST((decide_fips_mode(false, names{"default", "fips"}) == fips_mode::off));
}

BOOST_AUTO_TEST_CASE(mode_of_this_process_is_that_of_its_configuration) {
  BOOST_TEST((current_fips_mode() == fips_mode::off));
}

BOOST_AUTO_TEST_SUITE_END()
