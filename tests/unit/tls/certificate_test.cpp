#include "rw/tls/certificate.hpp"

#include "rw/tls/trust_store.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/namesake.hpp"
#include "tests/unit/tls/pki.hpp"
#include <random>

BOOST_AUTO_TEST_SUITE(certificate)

using namespace rw::tls;
using namespace rw::tls::test;
using namespace std::chrono_literals;
using parsed = rw::tls::certificate;

namespace {

parsed from(const key_pair& pair) {
  auto out = parsed::from_pem(pair.certificate);
  BOOST_REQUIRE_MESSAGE(out.has_value(), out.error().message());
  return *out;
}

/// Replaces bytes inside the DER without changing its length.
std::string with(std::string_view der, std::string_view what, std::string_view by) {
  std::string out(der);
  const auto at = out.find(what);
  BOOST_REQUIRE(at != std::string::npos);
  return out.replace(at, by.size(), by);
}

}  // namespace

BOOST_AUTO_TEST_CASE(tells_names_validity_and_role) {
  const auto begin =
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) - 1h;
  const auto made = from(good(the_pki().ca.issue({.common_name = "runtime-ü",
                                                  .dns_names = {"a.example.com", "*.b.example.com"},
                                                  .uris = {"spiffe://x/ns/y"},
                                                  .ips = {"10.0.0.1", "2001:db8::1"},
                                                  .client_auth = true,
                                                  .not_before = begin,
                                                  .validity = 2h})));
  BOOST_TEST(made.common_name() == "runtime-ü");
  BOOST_TEST(made.subject() == "CN=runtime-ü");
  BOOST_TEST(made.issuer() == "CN=test CA");
  BOOST_TEST(made.dns_names() == (std::vector<std::string>{"a.example.com", "*.b.example.com"}),
             boost::test_tools::per_element());
  BOOST_TEST(made.uris() == std::vector<std::string>{"spiffe://x/ns/y"},
             boost::test_tools::per_element());
  BOOST_TEST(made.ips() == (std::vector<std::string>{"10.0.0.1", "2001:db8::1"}),
             boost::test_tools::per_element());
  BOOST_TEST((made.not_before() == begin));
  BOOST_TEST((made.not_after() == begin + 2h));
  BOOST_TEST(made.valid_at(begin + 1h));
  BOOST_TEST(!made.valid_at(begin + 3h));
  BOOST_TEST(!made.is_ca());
  BOOST_TEST(made.fingerprint().size() == 64U);
}

BOOST_AUTO_TEST_CASE(issuer_is_recognised_by_its_extensions) {
  BOOST_TEST(parsed::from_pem(the_pki().ca.certificate_pem())->is_ca());
}

BOOST_AUTO_TEST_CASE(der_and_pem_lead_back_to_the_same_certificate) {
  const auto made = from(the_pki().client);
  const auto again = parsed::from_der(made.der());
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST((*again == made));
  BOOST_TEST((*parsed::from_pem(made.pem()) == made));
  BOOST_TEST(again->fingerprint() == made.fingerprint());
}

BOOST_AUTO_TEST_CASE(certificate_is_parsed_once_while_it_is_in_use) {
  const auto& issuer = the_pki().ca;
  const auto pem = good(issuer.issue({.common_name = "r1"})).certificate;
  const auto first = *parsed::from_pem(pem);
  BOOST_TEST(parsed::from_pem(pem)->native() == first.native());
  const std::string other_pem = good(issuer.issue({.common_name = "r2"})).certificate;
  const auto other = *parsed::from_pem(other_pem);
  BOOST_TEST(other.native() != first.native());
  BOOST_TEST(other.common_name() == "r2");
  // Of very many, as a peer may send them, the last ones are remembered.
  for (int i = 0; i < 100; ++i) {
    const auto one = from(good(issuer.issue({.common_name = "one " + std::to_string(i)})));
    BOOST_TEST(one.common_name() == "one " + std::to_string(i));
    BOOST_TEST(parsed::from_pem(pem)->native() == first.native());
  }
  BOOST_TEST(parsed::from_pem(other_pem)->native() != other.native());
  BOOST_TEST((*parsed::from_pem(other_pem) == other));
}

BOOST_AUTO_TEST_CASE(year_beyond_the_clock_is_clamped_not_wrapped) {
  const auto begin = std::chrono::system_clock::now();
  auto der =
      std::string(from(good(the_pki().ca.issue({.common_name = "x",
                                                .not_before = begin,
                                                .validity = std::chrono::hours(24 * 36000)})))
                      .der());
  // The end of validity is the only GeneralizedTime: 0x18 0x0f YYYYMMDDHHMMSSZ.
  const auto at = der.find(std::string("\x18\x0f", 2));
  BOOST_REQUIRE(at != std::string::npos);
  der.replace(at + 2, 15, "99991231235959Z");
  const auto made = parsed::from_der(der);
  BOOST_REQUIRE(made.has_value());
  BOOST_TEST((made->not_after() > begin + std::chrono::hours(24 * 365 * 200)));
}

BOOST_AUTO_TEST_CASE(truncated_input_is_rejected_at_each_length) {
  const auto der = std::string(from(the_pki().client).der());
  for (std::size_t size = 0; size < der.size(); ++size) {
    const auto made = parsed::from_der(std::string_view(der).substr(0, size));
    BOOST_REQUIRE(made.has_error());
    BOOST_REQUIRE(made.error() == make_error_code(error::malformed_certificate));
  }
}

BOOST_AUTO_TEST_CASE(bytes_behind_the_certificate_are_refused) {
  const auto made = parsed::from_der(std::string(from(the_pki().client).der()) + "x");
  BOOST_TEST(made.error() == make_error_code(error::malformed_certificate));
}

BOOST_AUTO_TEST_CASE(huge_input_is_refused_unread) {
  BOOST_TEST(parsed::from_der(std::string(70'000, '0')).error() ==
             make_error_code(error::too_large));
  BOOST_TEST(parsed::from_pem(std::string(2'000'000, '-')).error() ==
             make_error_code(error::too_large));
  BOOST_TEST(load_pem_bundle(std::string(2'000'000, '-')).error().code ==
             make_error_code(error::too_large));
}

BOOST_AUTO_TEST_CASE(nul_byte_in_a_name_is_rejected) {
  const auto der = std::string(from(good(the_pki().ca.issue({.common_name = "good.evil"}))).der());
  const auto cn = parsed::from_der(with(der, "good.evil", std::string_view("good\0evil", 9)));
  BOOST_TEST(cn.error() == make_error_code(error::malformed_name));

  const auto named =
      from(good(the_pki().ca.issue({.common_name = "x", .dns_names = {"kcp.example.com.evil"}})));
  const auto san =
      parsed::from_der(with(named.der(), "com.evil", std::string_view("com\0evil", 8)));
  BOOST_TEST(san.error() == make_error_code(error::malformed_name));
}

BOOST_AUTO_TEST_CASE(common_name_that_is_not_utf8_is_rejected) {
  const auto made = from(good(the_pki().ca.issue({.common_name = "plain-name"})));
  const auto bad = parsed::from_der(with(made.der(), "plain-name", "plain\xff\xfe"));
  // OpenSSL's own check may come first.
  BOOST_REQUIRE(bad.has_error());
  BOOST_TEST((bad.error() == error::malformed_name || bad.error() == error::malformed_certificate));
}

BOOST_AUTO_TEST_CASE(random_damage_never_crashes) {
  std::mt19937 random(7);
  const auto der = std::string(from(the_pki().server).der());
  for (int round = 0; round < 2000; ++round) {
    auto damaged = der;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto made = parsed::from_der(damaged);
    if (made) BOOST_TEST(made->subject().size() < 10'000U);
  }
}

BOOST_AUTO_TEST_CASE(text_without_a_certificate_says_so) {
  BOOST_TEST(parsed::from_pem("").error() == make_error_code(error::not_pem));
  BOOST_TEST(parsed::from_pem("hello").error() == make_error_code(error::not_pem));
  BOOST_TEST(parsed::from_pem(the_pki().client.key).error() == make_error_code(error::not_pem));
  const auto pem = the_pki().client.certificate;
  BOOST_TEST(parsed::from_pem(pem.substr(0, pem.size() / 2)).error() ==
             make_error_code(error::truncated_pem));
}

BOOST_AUTO_TEST_CASE(bundle_holds_several_certificates_and_skips_text_between) {
  const auto& pki = the_pki();
  const auto bundle = good(load_pem_bundle("# ours\n" + pki.ca.certificate_pem() + pki.client.key +
                                           "\n# theirs\n" + pki.stranger.certificate_pem()));
  BOOST_REQUIRE(bundle.size() == 2U);
  BOOST_TEST(bundle[0].common_name() == "test CA");
  BOOST_TEST(bundle[1].common_name() == "foreign CA");
}

BOOST_AUTO_TEST_CASE(bad_block_of_a_bundle_is_named) {
  const auto& pki = the_pki();
  const auto& second = pki.stranger.certificate_pem();
  const auto cut = load_pem_bundle(pki.ca.certificate_pem() + second.substr(0, second.size() - 40));
  BOOST_REQUIRE(cut.has_error());
  BOOST_TEST(cut.error().code == make_error_code(error::truncated_pem));
  BOOST_TEST(cut.error().message().find("PEM block 2") != std::string::npos);

  const auto junk = load_pem_bundle(
      pki.ca.certificate_pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  BOOST_REQUIRE(junk.has_error());
  BOOST_TEST(junk.error().code == make_error_code(error::malformed_certificate));
  BOOST_TEST(load_pem_bundle("").error().code == make_error_code(error::not_pem));
}

BOOST_AUTO_TEST_CASE(client_is_verified_against_its_ca_and_no_other) {
  const auto& pki = the_pki();
  const auto store = good(trust_store::from_pem(pki.ca.certificate_pem()));
  BOOST_TEST(store.verify(from(pki.client)).has_value());
  const auto foreign = store.verify(from(pki.foreign));
  BOOST_REQUIRE(foreign.has_error());
  BOOST_TEST((foreign.error().code.category() == verify_category()));
  BOOST_TEST(foreign.error().message().find("issuer") != std::string::npos);
  const auto both =
      good(trust_store::from_pem(pki.ca.certificate_pem() + pki.stranger.certificate_pem()));
  BOOST_TEST(both.verify(from(pki.foreign)).has_value());
}

BOOST_AUTO_TEST_CASE(verification_looks_at_the_time_given) {
  const auto store = good(trust_store::from_pem(the_pki().ca.certificate_pem()));
  const auto leaf = from(the_pki().client);
  const auto late = store.verify(leaf, {}, purpose::client_auth, leaf.not_after() + 1s);
  BOOST_REQUIRE(late.has_error());
  BOOST_TEST(late.error().message().find("expired") != std::string::npos);
  BOOST_TEST(store.verify(leaf, {}, purpose::client_auth, leaf.not_before() - 1s).has_error());
}

BOOST_AUTO_TEST_CASE(server_certificate_is_no_client) {
  const auto store = good(trust_store::from_pem(the_pki().ca.certificate_pem()));
  BOOST_TEST(store.verify(from(the_pki().server)).has_error());
  BOOST_TEST(store.verify(from(the_pki().server), {}, purpose::server_auth).has_value());
}

BOOST_AUTO_TEST_CASE(certificate_with_the_subject_of_its_ca_is_verified) {
  const auto& ca = the_pki().ca;
  const auto store =
      good(trust_store::from_pem(the_pki().stranger.certificate_pem() + ca.certificate_pem()));
  const auto leaf = from(namesake(ca));
  BOOST_TEST(leaf.subject() == leaf.issuer());
  for (const auto use : {purpose::client_auth, purpose::server_auth}) {
    const auto verified = store.verify(leaf, {}, use);
    BOOST_TEST(verified.has_value(), verified.error().message());
  }
  const auto ca_certificate = *parsed::from_pem(ca.certificate_pem());
  BOOST_TEST(store.verify(leaf, std::vector{ca_certificate}).has_value());
}

BOOST_AUTO_TEST_CASE(self_signed_certificate_with_the_subject_of_a_ca_is_refused) {
  const auto& ca = the_pki().ca;
  const auto store = good(trust_store::from_pem(ca.certificate_pem()));
  const auto refused = store.verify(from(namesake(ca, {.signs_itself = true})));
  BOOST_REQUIRE(refused.has_error());
  BOOST_TEST(refused.error().message().find("self-signed") != std::string::npos);
  // Of another CA of the same name.
  const auto twin = good(issuer::create({.common_name = "test CA"}));
  BOOST_TEST(store.verify(from(namesake(twin))).has_error());
}

BOOST_AUTO_TEST_CASE(certificate_with_the_subject_of_its_ca_is_checked_like_any_other) {
  const auto& ca = the_pki().ca;
  const auto store = good(trust_store::from_pem(ca.certificate_pem()));
  const auto server = from(namesake(ca, {.extended_usage = "serverAuth"}));
  BOOST_TEST(store.verify(server, {}, purpose::client_auth).has_error());
  BOOST_TEST(store.verify(server, {}, purpose::server_auth).has_value());
  BOOST_TEST(store.verify(from(namesake(ca, {.digest = EVP_sha1()}))).has_error());
  const auto leaf = from(namesake(ca));
  BOOST_TEST(store.verify(leaf, {}, purpose::client_auth, leaf.not_after() + 1s).has_error());
  const auto brief = good(issuer::create({.common_name = "brief CA", .validity = 30min}));
  const auto of_brief = good(trust_store::from_pem(brief.certificate_pem()));
  const auto longer = from(namesake(brief));
  BOOST_TEST(of_brief.verify(longer).has_value());
  const auto later = std::chrono::system_clock::now() + 45min;
  BOOST_TEST(of_brief.verify(longer, {}, purpose::client_auth, later).has_error());
}

BOOST_AUTO_TEST_CASE(restricted_ca_has_issued_no_certificate_with_its_subject) {
  const auto& ca = the_pki().ca;
  const std::pair<int, const char*> restrictions[] = {
      {NID_ext_key_usage, "serverAuth"},
      {NID_ext_key_usage, "clientAuth"},
      {NID_name_constraints, "critical,permitted;DNS:localhost"}};
  for (const auto& [kind, value] : restrictions) {
    const auto store = good(trust_store::from_pem(restricted(ca, kind, value)));
    for (const auto use : {purpose::client_auth, purpose::server_auth}) {
      BOOST_TEST(store.verify(from(namesake(ca)), {}, use).has_error(), value);
    }
  }
  const auto both =
      good(trust_store::from_pem(restricted(ca, NID_ext_key_usage, "clientAuth,serverAuth")));
  BOOST_TEST(both.verify(from(namesake(ca))).has_value());
}

BOOST_AUTO_TEST_CASE(store_skips_a_damaged_block_and_says_so) {
  const std::string damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const auto& ca = the_pki().ca;
  const auto store = good(trust_store::from_pem(ca.certificate_pem() + damaged));
  BOOST_TEST(store.anchors().size() == 1U);
  BOOST_TEST(store.damage().find("PEM block 2") != std::string::npos, store.damage());
  BOOST_TEST(good(trust_store::from_pem(ca.certificate_pem())).damage().empty());
  BOOST_TEST(trust_store::from_pem(damaged).has_error());
}

BOOST_AUTO_TEST_CASE(intermediates_lead_to_the_anchor_or_are_one) {
  const auto between = good(the_pki().ca.intermediate({.common_name = "between"}));
  const auto leaf = from(good(between.issue({.common_name = "leaf", .client_auth = true})));
  const std::vector given{*parsed::from_pem(between.certificate_pem())};
  const auto root = good(trust_store::from_pem(the_pki().ca.certificate_pem()));
  BOOST_TEST(root.verify(leaf).has_error());
  BOOST_TEST(root.verify(leaf, given).has_value());
  const auto anchored = good(trust_store::from_pem(between.certificate_pem()));
  BOOST_TEST(anchored.verify(leaf).has_value());
  const auto other = good(trust_store::from_pem(the_pki().stranger.certificate_pem()));
  BOOST_TEST(other.verify(leaf, given).has_error());
}

BOOST_AUTO_TEST_SUITE_END()
