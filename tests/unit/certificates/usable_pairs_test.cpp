#include "rw/reactors/certificates/usable_pairs.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gateway_secret/world.hpp"
#include <chrono>
#include <string>

BOOST_AUTO_TEST_SUITE(usable_pairs)

using namespace rw;
using namespace rw::gateway_secret::test;

BOOST_AUTO_TEST_CASE(usable_pair_is_remembered_by_its_content) {
  const root r("r");
  const auto one = r.client("runtime-1", day0);
  const auto two = r.client("runtime-1", day0);
  certificates::usable_pairs pairs;
  for (int i = 0; i < 3; ++i) {
    const auto leaf = pairs.read(one);
    BOOST_TEST_REQUIRE(leaf.has_value(), leaf.error().message());
    BOOST_TEST(leaf->common_name() == "runtime-1");
    BOOST_TEST(pairs.size() == 1U);
  }
  BOOST_TEST(pairs.read(two).has_value());
  BOOST_TEST(pairs.size() == 2U);
}

BOOST_AUTO_TEST_CASE(unusable_pair_is_reported_each_time) {
  const root r("r");
  const auto one = r.client("runtime-1", day0);
  const auto two = r.client("runtime-1", day0);
  certificates::usable_pairs pairs;
  BOOST_TEST(pairs.read(one).has_value());
  for (int i = 0; i < 2; ++i) {
    const auto mixed = pairs.read({one.certificate, two.key});
    BOOST_TEST_REQUIRE(mixed.has_error());
    BOOST_TEST(mixed.error().message().find("tls.key") != std::string::npos);
    BOOST_TEST(pairs.read({one.certificate, "x"}).has_error());
  }
  BOOST_TEST(pairs.size() == 1U);
}

BOOST_AUTO_TEST_CASE(known_pair_costs_a_fraction) {
  const auto issued = tls::issuer::create({.common_name = "r"}).value();
  const auto pair =
      issued
          .issue({.common_name = "runtime-1", .key = tls::key_type::rsa_4096, .client_auth = true})
          .value();
  certificates::usable_pairs pairs;
  using clock = std::chrono::steady_clock;
  auto known = clock::duration::max();
  auto unknown = clock::duration::max();
  for (int i = 0; i < 20; ++i) {
    certificates::usable_pairs fresh;
    const auto begin = clock::now();
    BOOST_TEST_REQUIRE(fresh.read(pair).has_value());
    const auto middle = clock::now();
    BOOST_TEST_REQUIRE(pairs.read(pair).has_value());
    if (i > 0) known = std::min(known, clock::now() - middle);
    unknown = std::min(unknown, middle - begin);
  }
  BOOST_TEST_MESSAGE("unknown " << unknown.count() << " ns, known " << known.count() << " ns");
  BOOST_TEST((known < unknown));
}

BOOST_AUTO_TEST_SUITE_END()
