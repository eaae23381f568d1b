#include "rw/reactors/intake/identity.hpp"

#include <boost/test/unit_test.hpp>

#include "tests/unit/manual_clock.hpp"
#include "tests/unit/tls/pki.hpp"
#include <cstdio>
#include <string>

BOOST_AUTO_TEST_SUITE(identity)

namespace {

using namespace rw::listener;
using namespace rw::tls::test;
using rw::tls::issuer;

/// A gateway's header. `mark` makes headers with the same certificate differ.
std::string forwarded(const std::string& certificate, const std::string& mark = "") {
  std::string out = "Hash=" + mark + ";Cert=\"";
  for (const char c : certificate) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X",
                  static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += code;
  }
  return out + "\"";
}

rw::http::request from_gateway(const std::string& header) {
  rw::http::request out;
  out.headers.add("x-forwarded-client-cert", header);
  out.peer.address = {boost::asio::ip::address_v4::loopback(), 1};
  return out;
}

struct behind_gateway {
  explicit behind_gateway(std::shared_ptr<rw::tls::credentials> ca = {})
      : who({.trusted_proxies = network_list::parse("127.0.0.0/8"), .client_ca = std::move(ca)},
            clock) {}

  auto identify(const std::string& certificate, const std::string& mark = "") {
    return who.identify(from_gateway(forwarded(certificate, mark)));
  }
  bool refuses(const std::string& certificate) {
    const auto found = identify(certificate);
    return found.has_error() && found.error() == identity_error::untrusted;
  }

  rw::core::manual_clock clock;
  identifier who;
};

std::string issued(const issuer& by, std::chrono::seconds validity) {
  return good(by.issue({.common_name = "runtime-1", .client_auth = true, .validity = validity}))
      .certificate;
}

}  // namespace

BOOST_AUTO_TEST_CASE(identity_is_remembered_for_as_long_as_its_certificate_is_valid) {
  behind_gateway f(trusting(the_pki().ca.certificate_pem()));
  const auto certificate = issued(the_pki().ca, std::chrono::hours(1));
  const auto first = f.identify(certificate);
  BOOST_REQUIRE(first.has_value());
  f.clock.advance(std::chrono::minutes(50));
  const auto again = f.identify(certificate);
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST(again->get() == first->get());
}

BOOST_AUTO_TEST_CASE(identity_is_not_used_past_the_expiry_of_its_certificate) {
  for (const bool with_ca : {true, false}) {
    behind_gateway f(with_ca ? trusting(the_pki().ca.certificate_pem()) : nullptr);
    const auto certificate = issued(the_pki().ca, std::chrono::hours(1));
    f.clock.advance(std::chrono::minutes(58) + std::chrono::seconds(30));
    BOOST_REQUIRE(f.identify(certificate).has_value());
    f.clock.advance(std::chrono::seconds(35));
    BOOST_TEST(f.refuses(certificate));
  }
}

BOOST_AUTO_TEST_CASE(identity_is_not_used_past_the_expiry_of_its_ca) {
  const auto ca =
      good(issuer::create({.common_name = "brief CA", .validity = std::chrono::hours(1)}));
  behind_gateway f(trusting(ca.certificate_pem() + the_pki().ca.certificate_pem()));
  const auto certificate = issued(ca, std::chrono::hours(48));
  f.clock.advance(std::chrono::minutes(58) + std::chrono::seconds(30));
  BOOST_REQUIRE(f.identify(certificate).has_value());
  f.clock.advance(std::chrono::seconds(35));
  BOOST_TEST(f.refuses(certificate));
}

BOOST_AUTO_TEST_CASE(connection_is_not_believed_past_the_expiry_of_its_ca) {
  const auto ca =
      good(issuer::create({.common_name = "brief CA", .validity = std::chrono::hours(1)}));
  rw::core::manual_clock clock;
  identifier who({.terminates_tls = true,
                  .trusted_proxies = {},
                  .client_ca = holding(the_pki().server, ca.certificate_pem())},
                 clock);
  const auto leaf = rw::tls::certificate::from_pem(issued(ca, std::chrono::hours(48))).value();
  rw::http::request request;
  request.peer.certificate = leaf.der();
  clock.advance(std::chrono::minutes(58) + std::chrono::seconds(30));
  BOOST_REQUIRE(who.identify(request).has_value());
  clock.advance(std::chrono::seconds(35));
  BOOST_TEST((who.identify(request).error() == identity_error::untrusted));
}

BOOST_AUTO_TEST_CASE(identity_is_not_used_past_the_expiry_of_an_intermediate) {
  const auto middle = good(the_pki().ca.intermediate(
      {.common_name = "brief intermediate", .validity = std::chrono::hours(1)}));
  behind_gateway f(trusting(the_pki().ca.certificate_pem()));
  const auto leaf = issued(middle, std::chrono::hours(48));
  const auto header =
      forwarded(leaf) + ";Chain=" + forwarded(leaf + middle.certificate_pem()).substr(11);
  f.clock.advance(std::chrono::minutes(58) + std::chrono::seconds(30));
  BOOST_REQUIRE(f.who.identify(from_gateway(header)).has_value());
  f.clock.advance(std::chrono::seconds(35));
  BOOST_TEST(f.who.identify(from_gateway(header)).has_error());
}

BOOST_AUTO_TEST_CASE(identity_is_not_used_after_its_ca_was_removed) {
  const auto ca = trusting(the_pki().ca.certificate_pem());
  behind_gateway f(ca);
  const auto& certificate = the_pki().client.certificate;
  BOOST_REQUIRE(f.identify(certificate).has_value());
  ca->replace(good(rw::tls::material::from_text(
      {.certificate = {}, .key = {}, .ca = the_pki().stranger.certificate_pem()})));
  BOOST_TEST(f.refuses(certificate));
  BOOST_TEST(f.identify(the_pki().foreign.certificate).has_value());
}

BOOST_AUTO_TEST_CASE(certificate_that_is_not_valid_yet_is_refused_and_not_remembered) {
  behind_gateway f;
  const auto certificate =
      good(the_pki().ca.issue({.common_name = "runtime-1",
                               .client_auth = true,
                               .not_before = f.clock.wall() + std::chrono::minutes(10),
                               .validity = std::chrono::hours(1)}))
          .certificate;
  BOOST_TEST(f.refuses(certificate));
  f.clock.advance(std::chrono::minutes(11));
  BOOST_TEST(f.identify(certificate).has_value());
}

BOOST_AUTO_TEST_CASE(certificate_for_servers_is_refused_where_there_is_a_ca) {
  behind_gateway f(trusting(the_pki().ca.certificate_pem()));
  BOOST_TEST(f.refuses(the_pki().server.certificate));
}

BOOST_AUTO_TEST_CASE(certificate_of_a_connection_is_outdated_when_no_ca_is_left) {
  const auto own = holding(the_pki().server, the_pki().ca.certificate_pem());
  rw::core::manual_clock clock;
  identifier who({.terminates_tls = true, .trusted_proxies = {}, .client_ca = own}, clock);
  const auto leaf = rw::tls::certificate::from_pem(the_pki().client.certificate).value();
  rw::http::request request;
  request.peer.certificate = leaf.der();
  BOOST_REQUIRE(who.identify(request).has_value());
  own->replace(good(rw::tls::material::from_text(
      {.certificate = the_pki().server.certificate, .key = the_pki().server.key, .ca = {}})));
  BOOST_TEST((who.identify(request).error() == identity_error::outdated));
}

BOOST_AUTO_TEST_CASE(identity_in_use_stays_while_thousands_of_others_come) {
  behind_gateway f;
  const auto& certificate = the_pki().client.certificate;
  const auto first = f.identify(certificate);
  BOOST_REQUIRE(first.has_value());
  for (int i = 0; i < 20'000; ++i) {
    f.identify(certificate, std::to_string(i));
    if (i % 1000 == 0) BOOST_TEST(f.identify(certificate)->get() == first->get());
  }
}

BOOST_AUTO_TEST_CASE(identity_of_another_header_is_another) {
  behind_gateway f;
  const auto other = good(the_pki().ca.issue({.common_name = "runtime-2", .client_auth = true}));
  BOOST_TEST((*f.identify(the_pki().client.certificate))->runtime_id == "runtime-1");
  BOOST_TEST((*f.identify(other.certificate))->runtime_id == "runtime-2");
  BOOST_TEST((*f.identify(the_pki().client.certificate))->runtime_id == "runtime-1");
}

BOOST_AUTO_TEST_CASE(header_of_an_untrusted_peer_is_not_believed_though_it_is_remembered) {
  behind_gateway f;
  auto request = from_gateway(forwarded(the_pki().client.certificate));
  BOOST_REQUIRE(f.who.identify(request).has_value());
  request.peer.address = {boost::asio::ip::make_address("10.0.0.1"), 1};
  BOOST_TEST((f.who.identify(request).error() == identity_error::untrusted_peer));
}

BOOST_AUTO_TEST_CASE(network_list_takes_blanks_around_its_elements) {
  const auto list = network_list::parse(" 10.0.0.0/8 ,\tfd00::/8, 192.0.2.1 ");
  for (const auto* inside : {"10.1.2.3", "fd00::1", "192.0.2.1", "::ffff:10.1.2.3"}) {
    BOOST_TEST(list.contains(boost::asio::ip::make_address(inside)), inside);
  }
  for (const auto* outside : {"11.1.2.3", "fe00::1", "192.0.2.2"}) {
    BOOST_TEST(!list.contains(boost::asio::ip::make_address(outside)), outside);
  }
  for (const auto* wrong : {"10.0.0.0/8, nonsense", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                            "10.0.0.0/8/8", "fd00::/129", "/8", "10.0.0.0/x", "10.0.0.0/8x"}) {
    BOOST_CHECK_THROW(network_list::parse(wrong), std::invalid_argument);
  }
}

BOOST_AUTO_TEST_CASE(network_list_keeps_ipv4_and_ipv6_apart) {
  const auto contains = [](const char* networks, const char* address) {
    return network_list::parse(networks).contains(boost::asio::ip::make_address(address));
  };
  BOOST_TEST(contains("0.0.0.0/0", "192.0.2.1"));
  BOOST_TEST(contains("0.0.0.0/0", "::ffff:192.0.2.1"));
  BOOST_TEST(!contains("0.0.0.0/0", "fd00::1"));
  BOOST_TEST(contains("::/0", "fd00::1"));
  BOOST_TEST(!contains("::/0", "192.0.2.1"));
  BOOST_TEST(!contains("::/0", "::ffff:192.0.2.1"));
  BOOST_TEST(contains("10.1.2.3/8", "10.9.9.9"));
  BOOST_TEST(!network_list::parse(",").contains(boost::asio::ip::make_address("::1")));
}

BOOST_AUTO_TEST_SUITE_END()
