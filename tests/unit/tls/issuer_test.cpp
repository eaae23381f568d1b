#include "rw/tls/issuer.hpp"

#include "rw/tls/openssl.hpp"
#include "rw/tls/trust_store.hpp"

#include <boost/test/unit_test.hpp>
#include <openssl/bn.h>

#include "tests/unit/tls/pki.hpp"
#include "tests/unit/tls/scratch.hpp"
#include <set>
#include <sys/stat.h>

BOOST_AUTO_TEST_SUITE(issuer)

using namespace rw::tls;
using namespace rw::tls::test;
using namespace std::chrono_literals;
using maker = rw::tls::issuer;

namespace {

rw::tls::certificate parsed(const std::string& pem) {
  auto out = rw::tls::certificate::from_pem(pem);
  BOOST_REQUIRE(out.has_value());
  return *out;
}

void refuses(const certificate_request& wanted) {
  const auto made = the_pki().ca.issue(wanted);
  BOOST_REQUIRE(made.has_error());
  BOOST_TEST(made.error().code == make_error_code(error::bad_request));
  BOOST_TEST(!made.error().message().empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(organizations_stand_in_the_subject) {
  const auto leaf = parsed(
      good(the_pki().ca.issue({.common_name = "admin", .organizations = {"system:masters", "dev"}}))
          .certificate);
  BOOST_TEST(leaf.common_name() == "admin");
  BOOST_TEST(leaf.subject() == "CN=admin,O=dev,O=system:masters");
}

BOOST_AUTO_TEST_CASE(rsa_keys_are_pkcs1_and_ecdsa_keys_pkcs8) {
  const auto rsa = good(the_pki().ca.issue({.common_name = "x", .key = key_type::rsa_2048}));
  BOOST_TEST(rsa.key.starts_with("-----BEGIN RSA PRIVATE KEY-----"));
  BOOST_TEST(the_pki().client.key.starts_with("-----BEGIN PRIVATE KEY-----"));
  BOOST_TEST(
      material::from_text({.certificate = rsa.certificate, .key = rsa.key, .ca = {}}).has_value());
}

BOOST_AUTO_TEST_CASE(rsa_authority_issues_too) {
  const auto ca = good(maker::create({.common_name = "rsa CA", .key = key_type::rsa_2048}));
  const auto leaf = good(ca.issue({.common_name = "x", .client_auth = true}));
  const auto store = good(trust_store::from_pem(ca.certificate_pem()));
  BOOST_TEST(store.verify(parsed(leaf.certificate)).has_value());
}

BOOST_AUTO_TEST_CASE(certificate_may_have_both_roles) {
  const auto both = parsed(
      good(the_pki().ca.issue({.common_name = "skr", .server_auth = true, .client_auth = true}))
          .certificate);
  const auto store = good(trust_store::from_pem(the_pki().ca.certificate_pem()));
  BOOST_TEST(store.verify(both, {}, purpose::client_auth).has_value());
  BOOST_TEST(store.verify(both, {}, purpose::server_auth).has_value());
}

BOOST_AUTO_TEST_CASE(extensions_are_those_of_a_leaf) {
  const auto leaf = parsed(the_pki().server.certificate);
  auto* native = leaf.native();
  BOOST_TEST(X509_get_version(native) == X509_VERSION_3);
  BOOST_TEST((X509_get_extension_flags(native) & EXFLAG_CA) == 0U);
  BOOST_TEST((X509_get_extended_key_usage(native) & XKU_SSL_SERVER) != 0U);
  BOOST_TEST((X509_get_extended_key_usage(native) & XKU_SSL_CLIENT) == 0U);
  BOOST_TEST((X509_get_key_usage(native) & KU_DIGITAL_SIGNATURE) != 0U);
  BOOST_TEST((X509_get_key_usage(native) & KU_KEY_CERT_SIGN) == 0U);
  const auto ca = parsed(the_pki().ca.certificate_pem());
  BOOST_TEST((X509_get_key_usage(ca.native()) & KU_KEY_CERT_SIGN) != 0U);
  BOOST_REQUIRE(X509_get0_subject_key_id(ca.native()));
  BOOST_REQUIRE(X509_get0_authority_key_id(native));
  BOOST_TEST(ASN1_OCTET_STRING_cmp(X509_get0_authority_key_id(native),
                                   X509_get0_subject_key_id(ca.native())) == 0);
}

BOOST_AUTO_TEST_CASE(serial_numbers_are_random_positive_and_long) {
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    const auto leaf = parsed(good(the_pki().ca.issue({.common_name = "x"})).certificate);
    const auto* serial = X509_get0_serialNumber(leaf.native());
    BOOST_TEST(ASN1_STRING_length(serial) == 16);
    BOOST_TEST(ASN1_STRING_type(serial) == V_ASN1_INTEGER);
    seen.emplace(reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)), 16);
  }
  BOOST_TEST(seen.size() == 20U);
}

BOOST_AUTO_TEST_CASE(validity_begins_a_minute_ago_unless_told) {
  const auto now = std::chrono::system_clock::now();
  const auto leaf =
      parsed(good(the_pki().ca.issue({.common_name = "x", .validity = 1h})).certificate);
  BOOST_TEST((leaf.not_before() <= now - 59s));
  BOOST_TEST((leaf.not_before() >= now - 62s));
  BOOST_TEST((leaf.not_after() - leaf.not_before() == 1h));
}

BOOST_AUTO_TEST_CASE(requests_that_make_no_certificate_are_refused_in_words) {
  refuses({});
  refuses({.common_name = std::string(65, 'x')});
  refuses({.common_name = "bad\xff"});
  refuses({.common_name = "x", .dns_names = {""}});
  refuses({.common_name = "x", .dns_names = {"a b"}});
  refuses({.common_name = "x", .uris = {"spiffe://\n"}});
  refuses({.common_name = "x", .ips = {"300.1.1.1"}});
  refuses({.common_name = "x", .validity = 0s});
  refuses({.common_name = "x", .validity = std::chrono::hours(24 * 365 * 300)});
}

BOOST_AUTO_TEST_CASE(leaf_is_no_authority) {
  BOOST_TEST(maker::load(the_pki().server).error().code == make_error_code(error::bad_request));
}

BOOST_AUTO_TEST_CASE(load_rejects_an_authority_with_a_foreign_key) {
  const auto& pki = the_pki();
  BOOST_TEST(maker::load({pki.ca.own().certificate, pki.stranger.own().key}).error().code ==
             make_error_code(error::key_mismatch));
}

BOOST_AUTO_TEST_CASE(key_types_have_names) {
  BOOST_TEST((parse_key_type("rsa-4096") == key_type::rsa_4096));
  BOOST_TEST((parse_key_type("ecdsa-p256") == key_type::ecdsa_p256));
  BOOST_TEST(!parse_key_type("dsa").has_value());
}

BOOST_AUTO_TEST_CASE(files_are_written_whole_with_the_key_for_the_owner_only) {
  const scratch dir;
  BOOST_REQUIRE(write_files(dir.path() / "new", "client", the_pki().client).has_value());
  const auto loaded = material::load({.certificate = (dir.path() / "new/client.crt").string(),
                                      .key = (dir.path() / "new/client.key").string(),
                                      .ca = {}});
  BOOST_TEST(loaded.has_value());
  struct stat about{};
  BOOST_REQUIRE(::stat((dir.path() / "new/client.key").c_str(), &about) == 0);
  BOOST_TEST((about.st_mode & 0777) == 0600U);
  BOOST_REQUIRE(::stat((dir.path() / "new/client.crt").c_str(), &about) == 0);
  BOOST_TEST((about.st_mode & 0777) == 0644U);
  const auto entries = std::distance(std::filesystem::directory_iterator(dir.path() / "new"), {});
  BOOST_TEST(entries == 2);
}

BOOST_AUTO_TEST_CASE(place_that_cannot_be_written_is_named) {
  const scratch dir;
  dir.write("file", "x");
  const auto done = write_files(dir.path() / "file", "client", the_pki().client);
  BOOST_REQUIRE(done.has_error());
  BOOST_TEST(done.error().code == make_error_code(error::unwritable_file));
  BOOST_TEST(done.error().message().find("file") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
