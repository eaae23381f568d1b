#include "rw/tls/ca_bundle.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/pki.hpp"
#include <string>
#include <vector>

BOOST_AUTO_TEST_SUITE(ca_bundle)

using namespace rw::tls;
using namespace rw::tls::test;
using namespace std::chrono_literals;
using bundle = rw::tls::ca_bundle;
using parsed = rw::tls::certificate;

namespace {

parsed from(const std::string& pem) {
  auto out = parsed::from_pem(pem);
  BOOST_REQUIRE_MESSAGE(out.has_value(), out.error().message());
  return *out;
}

parsed authority(const std::string& name, std::chrono::seconds validity = 1h) {
  return from(good(issuer::create({.common_name = name, .validity = validity})).certificate_pem());
}

std::vector<std::string> names(const bundle& of) {
  std::vector<std::string> out;
  for (const auto& one : of.authorities()) out.push_back(one.common_name());
  return out;
}

const parsed& ca() {
  static const auto made = from(the_pki().ca.certificate_pem());
  return made;
}
const parsed& stranger() {
  static const auto made = from(the_pki().stranger.certificate_pem());
  return made;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bundle_keeps_its_order_and_leads_back_to_itself) {
  const auto one = good(bundle::parse(stranger().pem() + "# a comment\n" + ca().pem()));
  BOOST_TEST(names(one) == (std::vector<std::string>{"foreign CA", "test CA"}),
             boost::test_tools::per_element());
  BOOST_TEST(one.pem() == stranger().pem() + ca().pem());
  BOOST_TEST((good(bundle::parse(one.pem())) == one));
}

BOOST_AUTO_TEST_CASE(of_a_certificate_that_stands_there_twice_the_first_stays) {
  const auto one = good(bundle::parse(ca().pem() + stranger().pem() + ca().pem()));
  BOOST_TEST(names(one) == (std::vector<std::string>{"test CA", "foreign CA"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(garbage_is_refused_and_the_block_is_named) {
  const std::string damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const auto wrong = bundle::parse(ca().pem() + damaged + stranger().pem());
  BOOST_REQUIRE(wrong.has_error());
  BOOST_TEST(wrong.error().message().find("PEM block 2") != std::string::npos);
  BOOST_TEST(bundle::parse("no certificate").has_error());
  BOOST_TEST(bundle::parse("").has_error());
}

BOOST_AUTO_TEST_CASE(salvage_returns_the_valid_blocks_of_a_damaged_text) {
  const std::string damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const auto cut = ca().pem().substr(0, 200);
  BOOST_TEST(names(bundle::salvage(damaged + ca().pem() + "junk" + stranger().pem())) ==
                 (std::vector<std::string>{"test CA", "foreign CA"}),
             boost::test_tools::per_element());
  // A block that does not end must not swallow the next one.
  BOOST_TEST(
      names(bundle::salvage(cut + stranger().pem())) == std::vector<std::string>{"foreign CA"},
      boost::test_tools::per_element());
  BOOST_TEST(
      names(bundle::salvage(stranger().pem() + cut)) == std::vector<std::string>{"foreign CA"},
      boost::test_tools::per_element());
  BOOST_TEST(bundle::salvage("").empty());
}

BOOST_AUTO_TEST_CASE(bundle_adds_only_absent_certificates) {
  bundle one;
  BOOST_TEST(one.empty());
  BOOST_TEST(one.prepend(ca()));
  BOOST_TEST(one.prepend(stranger()));
  BOOST_TEST(!one.prepend(ca()));
  BOOST_TEST(!one.append(stranger()));
  BOOST_TEST(names(one) == (std::vector<std::string>{"foreign CA", "test CA"}),
             boost::test_tools::per_element());
  const auto last = authority("last");
  BOOST_TEST(!one.contains(last));
  BOOST_TEST(one.append(last));
  BOOST_TEST(one.contains(last));
  BOOST_TEST((one.authorities().back() == last));
}

BOOST_AUTO_TEST_CASE(namesake_is_another_authority) {
  bundle one;
  BOOST_TEST(one.append(ca()));
  BOOST_TEST(one.append(authority("test CA")));
  BOOST_TEST(one.size() == 2U);
}

BOOST_AUTO_TEST_CASE(drop_expired_removes_expired_certificates_unless_kept) {
  const auto brief = authority("brief", 1h);
  const auto held = authority("held", 1h);
  const auto lasting = authority("lasting", 100h);
  const bundle all({lasting, brief, held});
  auto one = all;
  BOOST_TEST(one.drop_expired(brief.not_after() - 1s).empty());
  BOOST_TEST((one == all));
  const auto later = std::max(brief.not_after(), held.not_after()) + 1s;
  const auto dropped = one.drop_expired(later, [&](const parsed& each) { return each == held; });
  BOOST_REQUIRE(dropped.size() == 1U);
  BOOST_TEST((dropped.front() == brief));
  BOOST_TEST(names(one) == (std::vector<std::string>{"lasting", "held"}),
             boost::test_tools::per_element());
  BOOST_TEST(one.drop_expired(later).size() == 1U);
  BOOST_TEST(names(one) == std::vector<std::string>{"lasting"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(digest_depends_on_the_certificates_only) {
  const bundle one({ca(), stranger()});
  BOOST_TEST(one.digest().size() == 64U);
  BOOST_TEST(one.digest() == good(bundle::parse("# x\n" + one.pem())).digest());
  BOOST_TEST(one.digest() != bundle({stranger(), ca()}).digest());
  BOOST_TEST(one.digest() != bundle({ca()}).digest());
  BOOST_TEST(bundle().digest() != bundle({ca()}).digest());
}

BOOST_AUTO_TEST_CASE(issuer_of_finds_the_signing_authority_among_equal_names) {
  const auto leaf = from(the_pki().client.certificate);
  const auto namesake = authority("test CA");
  BOOST_TEST(is_issued_by(leaf, ca()));
  BOOST_TEST(!is_issued_by(leaf, namesake));
  BOOST_TEST(!is_issued_by(leaf, stranger()));
  BOOST_TEST(!is_issued_by(leaf, leaf));
  BOOST_TEST(is_issued_by(ca(), ca()));
  const bundle one({namesake, stranger(), ca()});
  BOOST_REQUIRE(one.issuer_of(leaf) != nullptr);
  BOOST_TEST((*one.issuer_of(leaf) == ca()));
  BOOST_TEST(bundle({namesake}).issuer_of(leaf) == nullptr);
}

BOOST_AUTO_TEST_CASE(verification_tells_whether_a_leaf_chains_to_one_of_them) {
  const auto leaf = from(the_pki().client.certificate);
  const bundle one({stranger(), ca()});
  BOOST_TEST(one.verify(leaf, purpose::client_auth, leaf.not_before() + 1min).has_value());
  BOOST_TEST(one.verify(leaf, purpose::client_auth, leaf.not_after() + 1min).has_error());
  BOOST_TEST(bundle({stranger()})
                 .verify(leaf, purpose::client_auth, leaf.not_before() + 1min)
                 .has_error());
  BOOST_TEST(bundle().verify(leaf, purpose::client_auth, leaf.not_before()).has_error());
}

BOOST_AUTO_TEST_SUITE_END()
