#include "rw/tls/xfcc.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/tls/pki.hpp"
#include <random>

BOOST_AUTO_TEST_SUITE(xfcc)

using namespace rw::tls;
using namespace rw::tls::test;

namespace {

/// As nginx's $ssl_client_escaped_cert and Envoy write it.
std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

/// The client certificate that a header says.
boost::system::result<rw::tls::certificate> client_of(std::string_view header) {
  const auto found = parse_xfcc(header);
  if (!found) return found.error();
  return found->client_certificate();
}

void refuses(std::string_view header, xfcc_error why) {
  const auto out = client_of(header);
  BOOST_REQUIRE_MESSAGE(out.has_error(), header);
  BOOST_TEST(out.error() == make_error_code(why), header << " gave " << out.error().message());
}

}  // namespace

BOOST_AUTO_TEST_CASE(header_may_hold_other_pairs_whatever_is_in_them) {
  const auto cert = "Cert=" + escaped(the_pki().client.certificate);
  for (const std::string before :
       {"", ";", ",", " ; ", "Hash=1,", "By=http://frontend.lyft.com;Hash=468e;",
        "By=urn:a(b;None;c);Hash=1;", "By=spiffe://a,b;By=c;", "Future-Key=\"a,b;Cert=x\";",
        "no pair;", "=x;", "Subject=\"CN=a,O=b;Cert=d \\\"Cert=\\\" back\\\\slash\";"}) {
    for (const std::string behind :
         {"", ";", ",", ";Subject=\"/C=US/L=San Francisco/CN=Test Client\"", ";URI=urn:a(b;None;c)",
          ";URI=u1;URI=u2,with;DNS=lyft.com;DNS=www.lyft.com", " ;URI=u\t, Hash=\"2\" , Hash=3 "}) {
      const auto client = client_of(before + cert + behind);
      BOOST_TEST_REQUIRE(client.has_value(), before << " and " << behind);
      BOOST_TEST(client->common_name() == "runtime-1");
    }
  }
  BOOST_TEST(client_of("CERT" + cert.substr(4)).has_value());
}

BOOST_AUTO_TEST_CASE(header_with_two_certificates_identifies_nobody) {
  const auto cert = "Cert=\"" + escaped(the_pki().client.certificate) + "\"";
  const auto other = escaped(the_pki().client.certificate);
  // Whoever chooses a URI chooses what follows its separator.
  refuses("Hash=1;" + cert + ";URI=x,Hash=2;Cert=" + other, xfcc_error::several_certificates);
  refuses("By=x;Cert=" + other + ";Hash=1;" + cert, xfcc_error::several_certificates);
  refuses(cert + ",Hash=2;" + cert, xfcc_error::several_certificates);
  refuses(cert + ";URI=xcErT=y", xfcc_error::several_certificates);
  refuses(cert + ";URI=a\"b\"Cert=y", xfcc_error::malformed);
  refuses("URI=xCert=" + other, xfcc_error::no_certificate);
  // A reader that looks for the first "Cert=", as the existing listener does, would take this one.
  refuses("xCert=" + other + ";" + cert, xfcc_error::several_certificates);
  refuses("xCert=" + other, xfcc_error::no_certificate);
}

BOOST_AUTO_TEST_CASE(certificate_comes_out_of_nginx_and_of_envoy) {
  const auto cert = escaped(the_pki().client.certificate);
  const auto nginx = client_of("Cert=" + cert);
  BOOST_REQUIRE(nginx.has_value());
  BOOST_TEST(nginx->common_name() == "runtime-1");

  const auto chain = escaped(the_pki().client.certificate + the_pki().ca.certificate_pem());
  const auto header = "Hash=1,By=spiffe://gw;Hash=" + nginx->fingerprint() + ";Cert=\"" + cert +
                      "\";Chain=\"" + chain + "\";Subject=\"CN=runtime-1\";URI=;DNS=a.b";
  const auto envoy = parse_xfcc(header);
  BOOST_REQUIRE(envoy.has_value());
  BOOST_TEST((*envoy->client_certificate() == *nginx));
  const auto between = envoy->intermediates();
  BOOST_REQUIRE(between.has_value());
  BOOST_REQUIRE(between->size() == 1U);
  BOOST_TEST(between->front().common_name() == "test CA");
}

BOOST_AUTO_TEST_CASE(certificate_in_the_encoding_of_forms_is_read) {
  // As Go's url.QueryEscape writes it: '+' for a blank, "%2B" for a plus sign.
  auto cert = escaped(the_pki().client.certificate);
  for (auto at = cert.find("%20"); at != cert.npos; at = cert.find("%20")) cert.replace(at, 3, "+");
  BOOST_TEST(cert.starts_with("-----BEGIN+CERTIFICATE-----"));
  const auto read = client_of("Cert=" + cert);
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->common_name() == "runtime-1");
}

BOOST_AUTO_TEST_CASE(lower_case_escapes_and_a_bare_plus_are_read) {
  BOOST_TEST(*percent_decode("a%2bb+c%2F") == "a+b+c/");
}

BOOST_AUTO_TEST_CASE(header_without_a_client_has_its_own_error) {
  refuses("", xfcc_error::missing);
  refuses("  ", xfcc_error::missing);
  refuses(std::string(xfcc_limit + 1, 'a'), xfcc_error::too_large);
  refuses("Hash=1;Subject=\"CN=x\"", xfcc_error::no_certificate);
  refuses("Cert=", xfcc_error::no_certificate);
  refuses("Cert=\"\"", xfcc_error::no_certificate);
  refuses("Cert=%", xfcc_error::undecodable);
  refuses("Cert=%4", xfcc_error::undecodable);
  refuses("Cert=%zz", xfcc_error::undecodable);
  refuses("Cert=hello", xfcc_error::unparsable_certificate);
  refuses("Cert=" + escaped(the_pki().client.key), xfcc_error::unparsable_certificate);
  const auto& whole = the_pki().client.certificate;
  refuses("Cert=" + escaped(whole.substr(0, whole.size() / 2)), xfcc_error::unparsable_certificate);
}

BOOST_AUTO_TEST_CASE(header_that_cannot_be_read_is_malformed) {
  for (const auto* header : {"Cert=\"x", "Cert=\"x\"y", "Cert=x\"y\"", "Cert=\"x\\", "Cert=\"x\\\"",
                             "Chain=a;Chain=b", "Cert=a\r\nX: y", "Cert=\"a\nb\"", "Cert=\"\"\"\"",
                             "URI=a\"b;Cert=x", "\"Cert\"=x", "X=\"a\"b;Cert=x", "a\"b\";Cert=x"}) {
    refuses(header, xfcc_error::malformed);
  }
  refuses(std::string_view("Cert=a\0b", 8), xfcc_error::malformed);
  refuses(std::string_view("Cert=\"a\0b\"", 10), xfcc_error::malformed);
}

BOOST_AUTO_TEST_CASE(header_without_pairs_has_no_certificate) {
  for (const auto* header : {"Cert", "=x", ";", ",", "Ce rt"}) {
    refuses(header, xfcc_error::no_certificate);
  }
}

BOOST_AUTO_TEST_CASE(forged_front_part_cannot_swallow_the_element_that_the_proxy_appends) {
  const auto real = ",By=spiffe://gw;Hash=1;Cert=\"" + escaped(the_pki().client.certificate) +
                    "\";Subject=\"CN=x\"";
  refuses("X=\"" + real, xfcc_error::malformed);
  refuses("X=\"\\" + real, xfcc_error::malformed);
  refuses("Cert=forged" + real, xfcc_error::several_certificates);
  // A quote of the client's meets the one of the proxy's Cert, and a name in its own certificate
  // evens them out.
  for (const std::string behind : {"", ";URI=spiffe://x\"y", ";Subject=\"CN=a\\\"b\""}) {
    refuses("Cert=forged;X=\"" + real + behind, xfcc_error::malformed);
    refuses("Cert=forged;X=\"a\";Y=\"" + real + behind, xfcc_error::malformed);
  }
  BOOST_TEST(client_of("Hash=forged" + real)->common_name() == "runtime-1");
}

BOOST_AUTO_TEST_CASE(size_limit_can_be_set) {
  BOOST_TEST(parse_xfcc("Cert=1", 5).error() == make_error_code(xfcc_error::too_large));
  BOOST_TEST(parse_xfcc("Cert=1", 6).has_value());
}

BOOST_AUTO_TEST_CASE(random_headers_never_crash) {
  std::mt19937 random(11);
  constexpr std::string_view alphabet = "Cert=\"\\,;%4 \tabHashURI";
  for (int round = 0; round < 20'000; ++round) {
    std::string header;
    for (auto size = random() % 40; size > 0; --size)
      header += alphabet[random() % alphabet.size()];
    const auto found = parse_xfcc(header);
    if (found) BOOST_TEST(!found->cert.empty());
    (void)client_of(header);
  }
}

BOOST_AUTO_TEST_CASE(written_element_of_a_client_parses_back) {
  const auto pair = good(the_pki().ca.issue({.common_name = "a,b;c=\"d\\e",
                                             .dns_names = {"skr.example.com", "other.example.com"},
                                             .uris = {"spiffe://a/ns/b?x=1"},
                                             .client_auth = true}));
  const auto client = *rw::tls::certificate::from_pem(pair.certificate);
  const auto text = xfcc_of(client, {"spiffe://gateway"});
  const auto found = parse_xfcc(text);
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST((*found->client_certificate() == client));
  // As Envoy orders and quotes it.
  BOOST_TEST(text.starts_with("By=spiffe://gateway;Hash=" + client.fingerprint() +
                              ";Cert=\"-----BEGIN%20CERTIFICATE-----%0A"));
  BOOST_TEST(text.find("-----END%20CERTIFICATE-----%0A\";Subject=\"CN=") != std::string::npos);
  BOOST_TEST(
      text.ends_with(";URI=spiffe://a/ns/b?x=1;DNS=skr.example.com;"
                     "DNS=other.example.com"));
}

BOOST_AUTO_TEST_SUITE_END()
