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

std::vector<xfcc_element> parse(std::string_view header) {
  auto out = parse_xfcc(header);
  BOOST_REQUIRE_MESSAGE(out.has_value(), header);
  return *out;
}

void refuses(std::string_view header, xfcc_error why) {
  const auto out = nearest_certificate(header);
  BOOST_REQUIRE_MESSAGE(out.has_error(), header);
  BOOST_TEST(out.error() == make_error_code(why), header << " gave " << out.error().message());
}

}  // namespace

BOOST_AUTO_TEST_CASE(element_with_by_hash_subject_and_uri_is_read) {
  const auto all = parse(
      "By=http://frontend.lyft.com;"
      "Hash=468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688;"
      "Subject=\"/C=US/ST=CA/L=San Francisco/OU=Lyft/CN=Test Client\";"
      "URI=http://testclient.lyft.com");
  BOOST_REQUIRE(all.size() == 1U);
  BOOST_TEST(all[0].by.at(0) == "http://frontend.lyft.com");
  BOOST_TEST(all[0].hash == "468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688");
  BOOST_TEST(all[0].subject == "/C=US/ST=CA/L=San Francisco/OU=Lyft/CN=Test Client");
  BOOST_TEST(all[0].uri.at(0) == "http://testclient.lyft.com");
}

BOOST_AUTO_TEST_CASE(several_elements_and_the_last_is_the_nearest) {
  const std::string header =
      "By=http://frontend.lyft.com;Hash=468e;URI=http://testclient.lyft.com,"
      "By=http://backend.lyft.com;Hash=9ba6;URI=http://frontend.lyft.com";
  const auto all = parse(header);
  BOOST_REQUIRE(all.size() == 2U);
  BOOST_TEST(all[0].hash == "468e");
  BOOST_TEST(nearest(header)->hash == "9ba6");
}

BOOST_AUTO_TEST_CASE(uri_dns_and_by_may_repeat) {
  const auto all = parse(
      "By=spiffe://a;By=spiffe://"
      "b;Hash=1;Subject=\"\";URI=u1;URI=u2;DNS=lyft.com;DNS=www.lyft.com");
  BOOST_TEST(all[0].by.size() == 2U);
  BOOST_TEST(all[0].uri == (std::vector<std::string>{"u1", "u2"}),
             boost::test_tools::per_element());
  BOOST_TEST(all[0].dns == (std::vector<std::string>{"lyft.com", "www.lyft.com"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(quoted_values_may_hold_every_separator) {
  const auto all = parse(R"(Subject="CN=a,O=b;c=d \"quoted\" back\\slash";Hash=1,Hash=2)");
  BOOST_REQUIRE(all.size() == 2U);
  BOOST_TEST(all[0].subject == R"(CN=a,O=b;c=d "quoted" back\slash)");
  BOOST_TEST(all[0].hash == "1");
}

BOOST_AUTO_TEST_CASE(keys_match_case_insensitively_and_unknown_keys_are_skipped) {
  const auto all = parse("hash=1;SUBJECT=x;Future-Key=\"a,b\";uri=u");
  BOOST_REQUIRE(all.size() == 1U);
  BOOST_TEST(all[0].hash == "1");
  BOOST_TEST(all[0].subject == "x");
  BOOST_TEST(all[0].uri.at(0) == "u");
}

BOOST_AUTO_TEST_CASE(blanks_around_separators_do_not_count) {
  const auto all = parse(" Hash=1 ; URI=u\t,  Hash=\"2\" , Hash=3 ");
  BOOST_REQUIRE(all.size() == 3U);
  BOOST_TEST(all[0].hash == "1");
  BOOST_TEST(all[1].hash == "2");
  BOOST_TEST(all[2].hash == "3");
}

BOOST_AUTO_TEST_CASE(certificate_comes_out_of_nginx_and_of_envoy) {
  const auto cert = escaped(the_pki().client.certificate);
  const auto nginx = nearest_certificate("Cert=" + cert);
  BOOST_REQUIRE(nginx.has_value());
  BOOST_TEST(nginx->common_name() == "runtime-1");

  const auto chain = escaped(the_pki().client.certificate + the_pki().ca.certificate_pem());
  const auto header = "Hash=1,By=spiffe://gw;Hash=" + nginx->fingerprint() + ";Cert=\"" + cert +
                      "\";Chain=\"" + chain + "\";Subject=\"CN=runtime-1\";URI=;DNS=a.b";
  const auto envoy = nearest(header);
  BOOST_REQUIRE(envoy.has_value());
  BOOST_TEST((*envoy->client_certificate() == *nginx));
  BOOST_TEST(envoy->hash == envoy->client_certificate()->fingerprint());
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
  const auto read = nearest_certificate("Cert=" + cert);
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

BOOST_AUTO_TEST_CASE(certificate_of_an_earlier_hop_does_not_stand_in_for_the_nearest) {
  refuses("Cert=" + escaped(the_pki().client.certificate) + ",Hash=1", xfcc_error::no_certificate);
}

BOOST_AUTO_TEST_CASE(header_without_pairs_is_malformed) {
  for (const auto* header : {"Cert",
                             "=x",
                             ";",
                             ",",
                             "Cert=x,",
                             ",Cert=x",
                             "Cert=x;",
                             ";Cert=x",
                             "Cert=\"x",
                             "Cert=\"x\"y",
                             "Cert=x\"y\"",
                             "Cert=\"x\\",
                             "Cert=\"x\\\"",
                             "Ce rt=x",
                             "Cert=x;;Hash=1",
                             "Cert=a;Cert=b",
                             "Hash=a;hash=b",
                             "Subject=a;Subject=b",
                             "Chain=a;Chain=b",
                             "Cert=a\r\nX: y",
                             "Cert=\"a\nb\"",
                             "Cert=\"\"\"\"",
                             "\"Cert\"=x"}) {
    refuses(header, xfcc_error::malformed);
  }
  refuses(std::string_view("Cert=a\0b", 8), xfcc_error::malformed);
  refuses(std::string_view("Cert=\"a\0b\"", 10), xfcc_error::malformed);
}

BOOST_AUTO_TEST_CASE(forged_front_part_cannot_swallow_the_element_that_the_proxy_appends) {
  const auto real = ",By=spiffe://gw;Hash=1;Cert=\"" + escaped(the_pki().client.certificate) +
                    "\";Subject=\"CN=x\"";
  refuses("X=\"" + real, xfcc_error::malformed);
  refuses("X=\"\\" + real, xfcc_error::malformed);
  BOOST_TEST(nearest_certificate("Cert=forged" + real)->common_name() == "runtime-1");
}

BOOST_AUTO_TEST_CASE(size_limit_can_be_set) {
  BOOST_TEST(parse_xfcc("Hash=1", 5).error() == make_error_code(xfcc_error::too_large));
  BOOST_TEST(parse_xfcc("Hash=1", 6).has_value());
}

BOOST_AUTO_TEST_CASE(random_headers_never_crash) {
  std::mt19937 random(11);
  constexpr std::string_view alphabet = "Cert=\"\\,;%4 \tabHashURI";
  for (int round = 0; round < 20'000; ++round) {
    std::string header;
    for (auto size = random() % 40; size > 0; --size)
      header += alphabet[random() % alphabet.size()];
    const auto all = parse_xfcc(header);
    if (all) BOOST_TEST(!all->empty());
    (void)nearest_certificate(header);
  }
}

BOOST_AUTO_TEST_CASE(written_element_of_a_client_parses_back) {
  const auto pair = good(the_pki().ca.issue({.common_name = "a,b;c=\"d\\e",
                                             .dns_names = {"skr.example.com", "other.example.com"},
                                             .uris = {"spiffe://a/ns/b?x=1"},
                                             .client_auth = true}));
  const auto client = *rw::tls::certificate::from_pem(pair.certificate);
  const auto text = xfcc_of(client, {"spiffe://gateway"});
  const auto all = parse_xfcc(text);
  BOOST_TEST_REQUIRE(all.has_value());
  BOOST_TEST_REQUIRE(all->size() == 1u);
  const auto& one = all->front();
  BOOST_TEST(one.by == std::vector<std::string>{"spiffe://gateway"});
  BOOST_TEST(one.hash == client.fingerprint());
  BOOST_TEST(one.subject == client.subject());
  BOOST_TEST(one.uri == client.uris());
  BOOST_TEST(one.dns == client.dns_names());
  BOOST_TEST((*one.client_certificate() == client));
  // As Envoy orders and quotes it.
  BOOST_TEST(text.starts_with("By=spiffe://gateway;Hash=" + client.fingerprint() +
                              ";Cert=\"-----BEGIN%20CERTIFICATE-----%0A"));
  BOOST_TEST(text.find("-----END%20CERTIFICATE-----%0A\";Subject=\"CN=") != std::string::npos);
  BOOST_TEST(
      text.ends_with(";URI=\"spiffe://a/ns/b?x=1\";DNS=skr.example.com;"
                     "DNS=other.example.com"));
}

BOOST_AUTO_TEST_SUITE_END()
