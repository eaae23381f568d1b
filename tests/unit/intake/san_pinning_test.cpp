#include "rw/reactors/intake/san_pinning.hpp"

#include "rw/tls/issuer.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/pki.hpp"
#include <map>
#include <string>

BOOST_AUTO_TEST_SUITE(san_pinning)

using namespace rw::listener;
using rw::tls::test::good;
using rw::tls::test::the_pki;

namespace {

/// Of a runtime whose certificate has these names.
event_sender runtime(const std::string& id) {
  const auto pair = good(the_pki().ca.issue({.common_name = id,
                                             .dns_names = {"skr.Example.com", "other.example.com"},
                                             .uris = {"spiffe://skr/1"},
                                             .ips = {"10.1.2.3"},
                                             .client_auth = true}));
  return {id, rw::tls::certificate::from_pem(pair.certificate).value()};
}

bool taken(const std::string& domain) {
  const auto verify = pin_san([&](std::string_view id) {
    BOOST_TEST(id == "runtime-1");
    return domain == "no Kyma" ? std::nullopt : std::optional<std::string>(domain);
  });
  return verify({}, {}, runtime("runtime-1"));
}

}  // namespace

BOOST_AUTO_TEST_CASE(certificate_with_the_domain_of_its_kyma_is_taken) {
  BOOST_TEST(taken("skr.example.com"));
  BOOST_TEST(taken("OTHER.example.com"));
  BOOST_TEST(taken("spiffe://skr/1"));
  BOOST_TEST(taken("10.1.2.3"));
}

BOOST_AUTO_TEST_CASE(certificate_without_the_domain_is_rejected) {
  BOOST_TEST(!taken("skr2.example.com"));
  BOOST_TEST(!taken("example.com"));
  BOOST_TEST(!taken("*.example.com"));
  BOOST_TEST(!taken("spiffe://SKR/1"));
}

BOOST_AUTO_TEST_CASE(without_a_kyma_or_its_domain_nothing_is_taken) {
  BOOST_TEST(!taken("no Kyma"));
  BOOST_TEST(!taken(""));
}

BOOST_AUTO_TEST_SUITE_END()
